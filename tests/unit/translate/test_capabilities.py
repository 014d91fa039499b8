"""Capabilities: what crosses into `initialize`, and what a question lacks."""

import pytest

from gateway.translate.capabilities import can_ask, canonical, merge, missing_for, to_legacy_capabilities
from gateway.wire import methods, versions
from gateway.wire.jsonrpc import JsonObject

FORM: JsonObject = {"message": "Name?", "requestedSchema": {"type": "object", "properties": {}}}
URL: JsonObject = {"mode": "url", "message": "Open", "url": "https://pay.test/"}
MESSAGES: JsonObject = {"messages": [], "maxTokens": 5}
WITH_TOOLS: JsonObject = {**MESSAGES, "tools": [], "includeContext": "thisServer"}


def test_only_what_a_legacy_server_may_rely_on_is_declared() -> None:
    declared: JsonObject = {
        "elicitation": {"form": {}, "url": {}},
        "sampling": {"tools": {}},
        "roots": {},
        "experimental": {"x": {}},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
        "tasks": {},
        "vendor": {},
    }
    assert to_legacy_capabilities(declared, versions.LATEST_LEGACY) == {
        "elicitation": {"form": {}, "url": {}},
        "sampling": {"tools": {}},
        "roots": {},
        "experimental": {"x": {}},
    }


def test_an_empty_elicitation_is_declared_as_forms() -> None:
    assert to_legacy_capabilities({"elicitation": {}}, "2025-11-25") == {"elicitation": {"form": {}}}


def test_an_older_server_sees_no_sub_capabilities() -> None:
    declared = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}, "x": 1}}
    assert to_legacy_capabilities(declared, "2025-06-18") == {"elicitation": {}, "sampling": {"x": 1}}


def test_an_older_server_sees_no_elicitation_of_a_client_that_only_opens_urls() -> None:
    assert to_legacy_capabilities({"elicitation": {"url": {}}}, "2025-06-18") == {}


def test_changes_of_roots_are_not_promised_since_no_modern_client_announces_them() -> None:
    assert to_legacy_capabilities({"roots": {"listChanged": True, "x": 1}}, "2025-11-25") == {"roots": {"x": 1}}


@pytest.mark.parametrize("name", ["elicitation", "sampling", "roots"])
def test_a_session_with_any_of_the_three_may_be_asked(name: str) -> None:
    assert can_ask({name: {}})


def test_a_session_without_them_may_not_be_asked() -> None:
    assert not can_ask({"experimental": {}})


def test_the_order_of_keys_does_not_make_another_session() -> None:
    assert canonical({"a": {"x": 1, "y": 2}, "b": {}}) == canonical({"b": {}, "a": {"y": 2, "x": 1}})


def test_different_capabilities_make_different_sessions() -> None:
    declared: list[JsonObject] = [{}, {"roots": {}}, {"sampling": {}}, {"sampling": {"tools": {}}}]
    assert len({canonical(capabilities) for capabilities in declared}) == 4


@pytest.mark.parametrize(
    ("method", "params", "declared"),
    [
        (methods.ELICIT, FORM, {"elicitation": {}}),
        (methods.ELICIT, FORM, {"elicitation": {"form": {}}}),
        (methods.ELICIT, URL, {"elicitation": {"url": {}}}),
        (methods.SAMPLE, MESSAGES, {"sampling": {}}),
        (methods.SAMPLE, {**MESSAGES, "includeContext": "none"}, {"sampling": {}}),
        (methods.SAMPLE, WITH_TOOLS, {"sampling": {"tools": {}, "context": {}}}),
        (methods.LIST_ROOTS, None, {"roots": {"listChanged": True}}),
    ],
)
def test_nothing_is_missing_for_what_was_declared(method: str, params: JsonObject | None, declared: JsonObject) -> None:
    assert missing_for(method, params, declared) is None


@pytest.mark.parametrize(
    ("method", "params", "declared", "missing"),
    [
        (methods.ELICIT, FORM, {}, {"elicitation": {"form": {}}}),
        (methods.ELICIT, FORM, {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        (methods.ELICIT, URL, {"elicitation": {}}, {"elicitation": {"url": {}}}),
        (methods.ELICIT, URL, {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}),
        (methods.SAMPLE, MESSAGES, {}, {"sampling": {}}),
        (methods.SAMPLE, {**MESSAGES, "toolChoice": {}}, {}, {"sampling": {"tools": {}}}),
        (methods.SAMPLE, {**MESSAGES, "tools": []}, {"sampling": {"context": {}}}, {"sampling": {"tools": {}}}),
        (methods.SAMPLE, {**MESSAGES, "includeContext": "allServers"}, {"sampling": {}}, {"sampling": {"context": {}}}),
        (methods.LIST_ROOTS, {}, {"sampling": {}}, {"roots": {}}),
    ],
)
def test_exactly_the_missing_parts_are_named(
    method: str, params: JsonObject, declared: JsonObject, missing: JsonObject
) -> None:
    assert missing_for(method, params, declared) == missing


def test_what_several_questions_miss_is_united() -> None:
    parts: list[JsonObject | None] = [
        {"elicitation": {"form": {}}},
        None,
        {"sampling": {}},
        {"elicitation": {"url": {}}},
    ]
    assert merge(parts) == {"elicitation": {"form": {}, "url": {}}, "sampling": {}}


def test_nothing_missing_unites_to_nothing() -> None:
    assert merge([None, None]) is None
