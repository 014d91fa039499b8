"""Where the gateway's words are not those that the rules make of the server's."""

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.sweep import rules
from tests.sweep.catalog import Server
from tests.sweep.direct import Message, Said
from tests.sweep.questions import LISTS
from tests.sweep.through import Through


@dataclass
class Verdict:
    """What became of one server.

    Attributes:
        server: the server.
        said: its own words; None if it could not be asked.
        compared: how many things were looked at.
        differences: where they differ, a line each.
    """

    server: Server
    said: Said | None = None
    compared: int = 0
    differences: list[str] = field(default_factory=list)

    def compare(self, what: str, expected: Any, found: Any) -> None:
        """Compare two values; what the server says differently each time is left out."""
        self.compared += 1
        pattern = self.server.entry.get("ignore")
        if _masked(expected, pattern) != _masked(found, pattern):
            self.differences.append(f"{what}: {'; '.join(_where(expected, found))}")


def compare(verdict: Verdict, gateway: Through) -> None:
    """Ask the gateway what the server was asked, and note every difference."""
    said, name = verdict.said, verdict.server.name
    assert said is not None
    try:
        verdict.compare("server/discover", rules.expected_discovery(said), gateway.discovery(name))
    except rules.UnexpectedError as error:
        verdict.differences.append(f"server/discover: {error}")
    for method in LISTS:
        expected = rules.expected_entries(said, method, name)
        verdict.compare(method, expected, _own(gateway.lists[method], method, expected, name))
    for question, answer in said.answers:
        try:
            found = gateway.answer(question, name)
        except rules.UnexpectedError as error:
            verdict.differences.append(f"{question.label}: {error}")
            continue
        expected_answer = rules.expected_answer(said, question, copy.deepcopy(answer), name)
        if "result" in expected_answer and "result" in found:
            rules.same_text_block(expected_answer["result"], found["result"])
        verdict.compare(question.label, expected_answer, found)


def _own(entries: list[Message], method: str, expected: list[Message], upstream: str) -> list[Message]:
    """The entries of a merged list that are a server's: by its prefix, or by the URIs that it says it has."""
    if method in ("tools/list", "prompts/list"):
        return [entry for entry in entries if entry["name"].startswith(f"{upstream}__")]
    key = rules.IDS[method]
    uris = {entry[key] for entry in expected}
    return [entry for entry in entries if entry[key] in uris]


def strangers(verdicts: list[Verdict], gateway: Through) -> list[str]:
    """Entries of the merged lists that no server has said, or that stand there twice."""
    found = []
    for method, entries in gateway.lists.items():
        key = "name" if method in ("tools/list", "prompts/list") else rules.IDS[method]
        known = {
            entry[key]
            for verdict in verdicts
            if verdict.said is not None
            for entry in rules.expected_entries(verdict.said, method, verdict.server.name)
        }
        names = [entry[key] for entry in entries]
        found += [f"{method}: {name} is no server's" for name in names if name not in known]
        found += [f"{method}: {name} twice" for name in sorted(set(names)) if names.count(name) > 1]
    return found


def _masked(value: Any, pattern: str | None) -> Any:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return re.sub(pattern, "*", text.replace('\\"', '"')) if pattern else text


def _where(expected: Any, found: Any, path: str = "") -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}):
            if expected.get(key) != found.get(key) or (key in expected) != (key in found):
                yield from _where(expected.get(key, "(nothing)"), found.get(key, "(nothing)"), f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            if one != other:
                yield from _where(one, other, f"{path}[{number}]")
    else:
        yield f"{path or 'it'} is {_short(found)}, not {_short(expected)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}..."
