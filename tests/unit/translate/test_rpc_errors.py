"""JSON-RPC errors, from legacy servers to modern clients."""

import pytest

from gateway.translate.rpc_errors import is_url_round, to_modern_error, url_questions
from gateway.wire import codes, methods
from gateway.wire.jsonrpc import Json, JsonObject

READ: JsonObject = {"uri": "note://1"}
GET: JsonObject = {"name": "greet"}


def error(code: Json, message: Json = "Nope", **more: Json) -> JsonObject:
    return {"code": code, "message": message, **more}


@pytest.mark.parametrize("code", [4001, -32603, -32600, -32602, -32700, -32000, -32001, -32010, -32019, 1])
def test_a_code_without_a_meaning_of_its_own_passes_with_message_and_data(code: int) -> None:
    original = error(code, data={"k": 1}, vendor=True)
    assert to_modern_error(methods.TOOLS_CALL, {"name": "t"}, original) == original


def test_a_missing_resource_has_the_modern_code_and_its_uri() -> None:
    modern = to_modern_error(methods.RESOURCES_READ, READ, error(-32002, data={"k": 1}))
    assert modern == error(-32602, data={"k": 1, "uri": "note://1"})


def test_a_missing_resource_of_a_completion_has_its_uri_too() -> None:
    modern = to_modern_error(methods.COMPLETE, {"ref": {"uri": "note://{id}"}}, error(-32002))
    assert modern == error(-32602, data={"uri": "note://{id}"})


def test_where_nothing_is_named_data_stays_as_it_was() -> None:
    assert to_modern_error(methods.COMPLETE, {"ref": {"name": "greet"}}, error(-32002)) == error(-32602)


def test_a_resource_that_a_tool_missed_is_not_the_tool() -> None:
    assert to_modern_error(methods.TOOLS_CALL, {"name": "t"}, error(-32002)) == error(-32602)


def test_data_of_any_kind_stays_readable() -> None:
    modern = to_modern_error(methods.RESOURCES_READ, READ, error(-32002, data="text"))
    assert modern["data"] == {"originalData": "text", "uri": "note://1"}


@pytest.mark.parametrize("code", [-32020, -32021, -32022, -32042, -32062, -32099])
def test_a_code_that_the_specification_keeps_for_itself_is_not_passed_on(code: int) -> None:
    modern = to_modern_error(methods.TOOLS_CALL, {}, error(code, data={"k": 1}))
    assert modern == error(-32603, data={"k": 1, "originalCode": code})


@pytest.mark.parametrize("code", [0, "-32602", None, 1.5, True, -32602.0])
def test_a_code_that_says_nothing_is_an_internal_error_with_its_message(code: Json) -> None:
    assert to_modern_error(methods.TOOLS_CALL, {"name": "t"}, error(code, "Unknown tool: t")) == error(
        -32603, "Unknown tool: t"
    )


@pytest.mark.parametrize(
    "message", ["Unknown resource: note://1", "Resource note://1 not found", "note://1 does not exist", "NOT FOUND"]
)
def test_a_message_that_plainly_says_not_found_is_believed(message: str) -> None:
    modern = to_modern_error(methods.RESOURCES_READ, READ, error(0, message))
    assert modern == error(-32602, message, data={"uri": "note://1"})


def test_an_unknown_prompt_is_named() -> None:
    modern = to_modern_error(methods.PROMPTS_GET, GET, error(0, "Unknown prompt: greet"))
    assert modern == error(-32602, "Unknown prompt: greet", data={"name": "greet"})


@pytest.mark.parametrize("message", ["An unknown error occurred", "foundation is down", "Connection refused"])
def test_any_other_message_is_not_about_the_name(message: str) -> None:
    assert to_modern_error(methods.RESOURCES_READ, READ, error(0, message)) == error(-32603, message)


def test_a_missing_resource_with_the_modern_code_gains_its_uri() -> None:
    modern = to_modern_error(methods.RESOURCES_READ, READ, error(-32602, "Resource note://1 not found"))
    assert modern["data"] == {"uri": "note://1"}


@pytest.mark.parametrize(
    ("method", "params", "data"),
    [
        (methods.TOOLS_CALL, {"name": "t"}, {"name": "t"}),
        (methods.PROMPTS_GET, GET, {"name": "greet"}),
        (methods.RESOURCES_READ, READ, {"uri": "note://1"}),
    ],
)
def test_method_not_found_in_answer_to_a_name_means_the_name(method: str, params: JsonObject, data: JsonObject) -> None:
    assert to_modern_error(method, params, error(-32601)) == error(-32602, data=data)


def test_method_not_found_in_answer_to_a_list_passes() -> None:
    assert to_modern_error(methods.TOOLS_LIST, None, error(-32601)) == error(-32601)


@pytest.mark.parametrize("message", [None, "", 5])
def test_an_error_always_has_a_message(message: Json) -> None:
    assert to_modern_error(methods.TOOLS_CALL, None, error(4001, message))["message"] == "The server gave no reason"


@pytest.mark.parametrize("nonsense", [None, "text", [], 5])
def test_an_error_that_is_no_object_is_an_internal_one(nonsense: Json) -> None:
    assert to_modern_error(methods.TOOLS_CALL, None, nonsense)["code"] == codes.INTERNAL_ERROR


def url_error(*elicitations: Json) -> JsonObject:
    return error(-32042, "Authorize", data={"elicitations": list(elicitations)})


def test_a_url_that_must_be_opened_is_a_round() -> None:
    question = {"mode": "url", "elicitationId": "el-9", "url": "https://pay.test/x?y=1", "message": "Open"}
    assert is_url_round(url_error(question))
    assert url_questions(url_error(question)) == [question]


def test_a_url_without_mode_or_message_is_completed() -> None:
    assert url_questions(url_error({"url": "https://pay.test/"})) == [
        {"url": "https://pay.test/", "mode": "url", "message": "Authorize"}
    ]


def test_what_has_no_url_is_not_asked() -> None:
    usable = {"mode": "url", "url": "https://pay.test/", "message": "Open"}
    assert url_questions(url_error(None, {}, {"url": 5}, {"url": "u:x", "mode": "form"}, usable)) == [usable]


@pytest.mark.parametrize(
    "other",
    [
        error(-32042),
        error(-32042, data={"elicitations": None}),
        url_error(),
        url_error({"message": "no url"}),
        error(-32602, data={"elicitations": [{"url": "https://pay.test/"}]}),
        None,
    ],
)
def test_any_other_error_is_no_round(other: Json) -> None:
    assert not is_url_round(other)
