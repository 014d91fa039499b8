"""Questions of legacy servers as input requests, and the answers to them."""

import re

import pytest

from gateway.translate.input_rounds import check_answer, to_input_request, to_legacy_answer
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject

BLOCK: JsonObject = {"type": "text", "text": "Paris"}
SAMPLED: JsonObject = {"role": "assistant", "content": BLOCK, "model": "m"}
URL: JsonObject = {"method": methods.ELICIT, "params": {"mode": "url", "message": "Open", "url": "https://pay.test/"}}
SAMPLING: JsonObject = {"method": methods.SAMPLE, "params": {"messages": [], "maxTokens": 5}}
ROOTS: JsonObject = {"method": methods.LIST_ROOTS, "params": {}}


def form(properties: JsonObject | None = None, **schema: Json) -> JsonObject:
    requested = {"type": "object", "properties": properties or {}, **schema}
    return {"method": methods.ELICIT, "params": {"message": "?", "requestedSchema": requested}}


FORM = form({"name": {"type": "string"}}, required=["name"])


def test_what_a_modern_client_must_not_see_goes() -> None:
    params = {"mode": "url", "message": "Open", "url": "https://pay.test/x?y=1", "elicitationId": "el-9", "task": {}}
    assert to_input_request(methods.ELICIT, {**params, "_meta": {"progressToken": 1}}) == {
        "method": methods.ELICIT,
        "params": {"mode": "url", "message": "Open", "url": "https://pay.test/x?y=1"},
    }


def test_a_form_without_mode_stays_without() -> None:
    assert "mode" not in to_input_request(methods.ELICIT, FORM["params"])["params"]


def test_a_mode_that_was_given_stays() -> None:
    assert to_input_request(methods.ELICIT, {**FORM["params"], "mode": "form"})["params"]["mode"] == "form"


def test_old_names_of_enum_values_stay() -> None:
    schema = {"type": "object", "properties": {"c": {"type": "string", "enum": ["r"], "enumNames": ["Red"]}}}
    assert to_input_request(methods.ELICIT, {"message": "?", "requestedSchema": schema})["params"] == {
        "message": "?",
        "requestedSchema": schema,
    }


def test_a_sampling_request_passes_but_for_nulls() -> None:
    params = {"messages": [{"role": "user", "content": BLOCK}], "maxTokens": 5, "systemPrompt": None, "vendor": 1}
    assert to_input_request(methods.SAMPLE, params)["params"] == {
        "messages": [{"role": "user", "content": BLOCK}],
        "maxTokens": 5,
        "vendor": 1,
    }


@pytest.mark.parametrize("params", [None, {}, {"_meta": {"progressToken": 1}}])
def test_a_roots_request_has_nothing_to_say(params: JsonObject | None) -> None:
    assert to_input_request(methods.LIST_ROOTS, params) == {"method": methods.LIST_ROOTS, "params": {}}


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (FORM, {"action": "accept", "content": {"name": "Alice"}}),
        (FORM, {"action": "accept", "content": {"name": "Alice", "more": {"x": 1}}}),
        (FORM, {"action": "decline"}),
        (FORM, {"action": "cancel", "content": None}),
        (FORM, {"action": "decline", "content": {}}),
        (form(), {"action": "accept"}),
        (URL, {"action": "accept"}),
        (SAMPLING, SAMPLED),
        (SAMPLING, {**SAMPLED, "content": [BLOCK, {"type": "image"}], "stopReason": "endTurn", "x": 1}),
        (ROOTS, {"roots": []}),
        (ROOTS, {"roots": [{"uri": "file:///a", "name": "A"}, {"uri": "file:///b"}]}),
    ],
)
def test_an_answer_of_the_right_shape_is_taken(question: JsonObject, answer: JsonObject) -> None:
    check_answer(question, answer)


@pytest.mark.parametrize(
    ("question", "answer", "fault"),
    [
        (FORM, 12345, "the answer must be an object"),
        (FORM, None, "the answer must be an object"),
        (FORM, {}, "action must be accept, decline or cancel"),
        (FORM, {"action": "yes"}, "action must be accept, decline or cancel"),
        (FORM, {"action": []}, "action must be accept, decline or cancel"),
        (FORM, {"action": "accept", "content": "Alice"}, "content must be an object"),
        (FORM, {"action": "accept"}, "content.name is required"),
        (FORM, {"action": "decline", "content": {"name": "Alice"}}, "content is only for an accepted form"),
        (URL, {"action": "accept", "content": {"a": 1}}, "content is only for an accepted form"),
        (SAMPLING, {**SAMPLED, "role": "system"}, "role must be assistant or user"),
        (SAMPLING, {**SAMPLED, "content": []}, "content must be a content block or a list of them"),
        (SAMPLING, {**SAMPLED, "content": "Paris"}, "content must be a content block or a list of them"),
        (SAMPLING, {**SAMPLED, "content": {"type": "text"}}, "content must be a content block or a list of them"),
        (SAMPLING, {**SAMPLED, "model": None}, "model must be a string"),
        (SAMPLING, {**SAMPLED, "stopReason": 1}, "stopReason must be a string"),
        (ROOTS, {"roots": {}}, "roots must be a list"),
        (ROOTS, {"roots": [None]}, "roots[0].uri must be a file:// URI"),
        (ROOTS, {"roots": [{"uri": "file:///a"}, {"uri": "http://a"}]}, "roots[1].uri must be a file:// URI"),
        (ROOTS, {"roots": [{"uri": "file:///a", "name": 1}]}, "roots[0].name must be a string"),
    ],
)
def test_an_answer_of_the_wrong_shape_is_refused_by_field(question: JsonObject, answer: Json, fault: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}$"):
        check_answer(question, answer)


def test_an_answer_loses_what_only_the_modern_era_knows() -> None:
    answer = {"resultType": "complete", "_meta": {"io.modelcontextprotocol/x": 1, "com.ex/k": 1}, "roots": []}
    assert to_legacy_answer(answer) == {"roots": [], "_meta": {"com.ex/k": 1}}


def test_an_accepted_form_keeps_its_content() -> None:
    assert to_legacy_answer({"action": "accept", "content": {"a": [1]}}) == {"action": "accept", "content": {"a": [1]}}


@pytest.mark.parametrize("answer", [{"action": "decline", "content": {}}, {"action": "decline", "content": None}])
def test_a_refusal_has_no_content(answer: JsonObject) -> None:
    assert to_legacy_answer(answer) == {"action": "decline"}


def test_a_list_of_one_block_becomes_the_block_that_older_servers_expect() -> None:
    assert to_legacy_answer({**SAMPLED, "content": [BLOCK]}) == SAMPLED


def test_a_list_of_several_blocks_stays() -> None:
    assert to_legacy_answer({**SAMPLED, "content": [BLOCK, BLOCK]})["content"] == [BLOCK, BLOCK]
