"""Which calls may be made again: those of tools that the operator names, or marks by their hints."""

from typing import Any

import pytest

from gateway.upstream.replay import ReplayRule, hints_by_tool

HINTS = {"look": frozenset({"read-only"}), "put": frozenset({"idempotent"})}


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        (ReplayRule(), []),
        (ReplayRule(["look"]), ["look"]),
        (ReplayRule(["*o*"]), ["look", "book"]),
        (ReplayRule([], frozenset({"read-only"})), ["look"]),
        (ReplayRule([], frozenset({"read-only", "idempotent"})), ["look", "put"]),
        (ReplayRule(["book"], frozenset({"idempotent"})), ["put", "book"]),
    ],
)
def test_a_tool_is_allowed_by_name_or_by_hint(rule: ReplayRule, allowed: list[str]) -> None:
    assert [tool for tool in ("look", "put", "book") if rule.allows(tool, HINTS)] == allowed


ODD: list[Any] = [
    7,
    {"annotations": {"readOnlyHint": True}},
    {"name": 7, "annotations": {"readOnlyHint": True}},
    {"name": "a", "annotations": "readOnlyHint"},
    {"name": "b", "annotations": {"readOnlyHint": "true", "idempotentHint": 1}},
    {"name": "c", "annotations": {"readOnlyHint": False}},
    {"name": "d"},
]


def test_only_what_a_server_says_plainly_is_a_hint() -> None:
    plain = {"name": "e", "annotations": {"readOnlyHint": True, "idempotentHint": True, "title": "E"}}
    assert hints_by_tool([*ODD, plain]) == {"e": frozenset({"read-only", "idempotent"})}
