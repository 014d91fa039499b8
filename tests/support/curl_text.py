"""Reads curl commands out of a text, as a shell would pass them; so that tests need no curl."""

import json
import shlex
from dataclasses import dataclass, field

from gateway.wire.jsonrpc import JsonObject


@dataclass
class Curl:
    """One command: where it goes, with which headers and which JSON body."""

    url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: JsonObject = field(default_factory=dict)


def curls_in(text: str) -> list[Curl]:
    """All commands of a text, in order. Of its variables only the names are known."""
    words = iter(shlex.split(text, comments=True))
    found: list[Curl] = []
    for word in words:
        if word.endswith("curl"):
            found.append(Curl())
        elif word.startswith("http"):
            found[-1].url = word
        elif word == "-H":
            name, _, value = next(words).partition(": ")
            found[-1].headers[name] = value
        elif word == "-d":
            # inside $( ) the closing parenthesis follows the body
            found[-1].body = json.JSONDecoder().raw_decode(next(words))[0]
    return found
