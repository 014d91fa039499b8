"""`server/discover`, answered from a legacy `initialize`."""

import pytest

from gateway.translate.discovery import server_info_of, to_discover_result, to_modern_capabilities
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject

INITIALIZED: JsonObject = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "u", "version": "1"},
}


def discover(**changes: Json) -> JsonObject:
    return to_discover_result({**INITIALIZED, **changes}, watchable=True)


def test_the_versions_are_the_gateway_s_own() -> None:
    assert discover()["supportedVersions"] == ["2026-07-28"]


def test_the_server_is_named_in_meta_beside_its_own_keys() -> None:
    meta = discover(_meta={"com.ex/k": 1, "io.modelcontextprotocol/other": 2})["_meta"]
    assert meta == {"com.ex/k": 1, "io.modelcontextprotocol/serverInfo": {"name": "u", "version": "1"}}


@pytest.mark.parametrize("instructions", ["Use it", ""])
def test_instructions_pass(instructions: str) -> None:
    assert discover(instructions=instructions)["instructions"] == instructions


@pytest.mark.parametrize("instructions", [None, 5])
def test_instructions_that_are_no_text_are_left_out(instructions: Json) -> None:
    assert "instructions" not in discover(instructions=instructions)


def test_only_what_the_gateway_can_keep_is_promised() -> None:
    declared: JsonObject = {
        "tools": {},
        "completions": {},
        "logging": {},
        "tasks": {},
        "extensions": {"a/b": {}},
        "elicitation": {},
    }
    assert to_modern_capabilities(declared, watchable=True) == {"tools": {}, "completions": {}, "logging": {}}


def test_changes_are_promised_where_they_can_be_seen() -> None:
    declared: JsonObject = {"resources": {"listChanged": True, "subscribe": True, "x": 1}}
    assert to_modern_capabilities(declared, watchable=True) == declared
    assert to_modern_capabilities(declared, watchable=False) == {"resources": {"x": 1}}


def test_a_denied_promise_is_left_out() -> None:
    assert to_modern_capabilities({"tools": {"listChanged": False}}, watchable=True) == {"tools": {}}


@pytest.mark.parametrize("value", [None, False])
def test_a_capability_that_is_null_or_false_is_not_there(value: Json) -> None:
    assert to_modern_capabilities({"logging": value}, watchable=True) == {}


def test_a_capability_that_is_merely_true_is_there() -> None:
    assert to_modern_capabilities({"logging": True}, watchable=True) == {"logging": {}}


@pytest.mark.parametrize("absent", [{"prompts"}, {methods.PROMPTS_LIST}])
def test_what_turned_out_to_be_absent_is_not_promised(absent: set[str]) -> None:
    declared: JsonObject = {"tools": {}, "prompts": {}}
    assert to_modern_capabilities(declared, absent=frozenset(absent), watchable=True) == {"tools": {}}


def test_resources_stay_while_one_of_their_lists_works() -> None:
    one = frozenset({methods.RESOURCE_TEMPLATES_LIST})
    both = one | {methods.RESOURCES_LIST}
    assert to_modern_capabilities({"resources": {}}, absent=one, watchable=True) == {"resources": {}}
    assert to_modern_capabilities({"resources": {}}, absent=both, watchable=True) == {}


def test_what_works_undeclared_is_promised() -> None:
    assert to_modern_capabilities({}, present=frozenset({"tools"}), watchable=True) == {"tools": {}}


def test_experimental_capabilities_pass_if_they_are_objects() -> None:
    assert to_modern_capabilities({"experimental": {"a": {"x": 1}, "b": True}}, watchable=True) == {
        "experimental": {"a": {"x": 1}}
    }


@pytest.mark.parametrize("capabilities", [None, [], "text"])
def test_capabilities_that_are_no_object_are_none(capabilities: Json) -> None:
    assert discover(capabilities=capabilities)["capabilities"] == {}


def test_a_server_s_identity_has_a_version_and_no_nulls() -> None:
    assert server_info_of({"serverInfo": {"name": "u", "title": None, "x": 1}}) == {"name": "u", "x": 1, "version": ""}


@pytest.mark.parametrize("info", [None, {}, {"name": None}, "u"])
def test_a_server_without_a_name_has_no_identity(info: Json) -> None:
    assert server_info_of({"serverInfo": info}) is None


def test_a_result_without_an_identity_has_no_meta() -> None:
    assert "_meta" not in discover(serverInfo=None)
