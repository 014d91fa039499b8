"""What the configuration's contract names and this release does not serve yet.

Each such key is a problem of its own, so that nobody believes that it works; it is taken out of the tree, so that the
rest is checked as usual.
"""

from collections.abc import Iterator
from typing import Final

from gateway.config.document import Document, KeyPath
from gateway.config.problems import Problem
from gateway.wire.jsonrpc import JsonObject

_LATER: Final = "not available in this release"


def set_aside(document: Document, tree: JsonObject) -> list[Problem]:
    """Remove from `tree` what a later release will serve.

    Returns:
        A problem for each thing removed.
    """
    problems: list[Problem] = []
    for name, entry in _section(tree, "upstreams").items():
        if isinstance(entry, dict):
            problems += _upstream(document, ("upstreams", name), entry)
    auth = _section(tree, "auth")
    if auth.get("type") == "jwt":
        problems.append(_problem(document, ("auth", "type"), "jwt", "none, api_key", "write type: api_key"))
        del tree["auth"]
    return problems


def _upstream(document: Document, path: KeyPath, entry: JsonObject) -> Iterator[Problem]:
    kind = _section(entry, "auth").get("type")
    if kind in ("client_credentials", "token_exchange"):
        remedy = "write type: passthrough, or a static credential under headers"
        yield _problem(document, (*path, "auth", "type"), kind, "none, passthrough", remedy)
        del entry["auth"]


def _section(holder: JsonObject, key: str) -> JsonObject:
    section = holder.get(key)
    return section if isinstance(section, dict) else {}


def _problem(document: Document, path: KeyPath, found: str, allowed: str, remedy: str) -> Problem:
    return document.problem(path, _LATER, f'"{found}"', allowed, remedy)
