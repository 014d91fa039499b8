from typing import Any

import pytest

from gateway.core.merged_replies import (
    MAX_LINKS,
    has_resource,
    links_of,
    may_be_elsewhere,
    with_public_name,
    with_server_info,
)
from gateway.core.outcome import Outcome
from gateway.core.unknown import unknown_method, unknown_target

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
US = {"name": "gateway", "version": "1"}


def result(**members: Any) -> Outcome:
    return Outcome.of_result({"resultType": "complete", **members})


def error(code: int, data: Any = None) -> Outcome:
    return Outcome({"error": {"code": code, "message": "no"} | ({} if data is None else {"data": data})}, 404)


@pytest.mark.parametrize("before", [None, {SERVER_INFO: {"name": "u"}, "x": 1}])
def test_it_is_the_gateway_that_answers(before: dict[str, Any] | None) -> None:
    outcome = result(n=1) if before is None else result(n=1, _meta=before)
    signed = with_server_info(outcome, US).body["result"]
    assert signed == {"resultType": "complete", "n": 1, "_meta": {**(before or {}), SERVER_INFO: US}}
    assert with_server_info(error(1), US) == error(1)


def test_an_error_names_things_as_the_client_does() -> None:
    assert with_public_name(error(-32602, {"name": "x", "k": 1}), "x", "a__x") == error(
        -32602, {"name": "a__x", "k": 1}
    )
    for other in (error(-32602, {"name": "y"}), error(-32602, ["x"]), error(-32602), result()):
        assert with_public_name(other, "x", "a__x") == other


def test_links_are_found_in_the_content_of_tools_and_prompts() -> None:
    link = {"type": "resource_link", "uri": "file:///a", "name": "a"}
    embedded = {"type": "resource", "resource": {"uri": "file:///b", "text": ""}}
    noise = [{"type": "text", "text": "file:///c"}, None, {"type": "resource", "resource": None}, {"uri": "file:///d"}]
    assert links_of(result(content=[link, embedded, *noise, link])) == ["file:///a", "file:///b"]
    assert links_of(result(messages=[{"role": "user", "content": embedded}, None, {}])) == ["file:///b"]
    assert links_of(result(content=None)) == links_of(result()) == links_of(error(1)) == []
    many = [{"type": "resource_link", "uri": f"x:{number}"} for number in range(MAX_LINKS + 5)]
    assert len(links_of(result(content=many))) == MAX_LINKS


CONTENTS = [{"uri": "x:y", "text": ""}]


def test_an_empty_answer_is_no_resource_but_a_question_is() -> None:
    assert has_resource(result(contents=CONTENTS))
    assert has_resource(Outcome.of_result({"resultType": "input_required"}))
    assert not has_resource(result(contents=[]))
    assert not has_resource(error(-32602))


@pytest.mark.parametrize(
    ("outcome", "if_likely", "if_not"),
    [
        (result(contents=CONTENTS), False, False),
        (result(contents=[]), True, True),
        (error(-32602), True, True),
        (error(-32601), True, True),
        (error(-32603), False, True),
        (error(-32021), False, False),
    ],
)
def test_the_search_goes_on_until_somebody_has_the_resource(outcome: Outcome, if_likely: bool, if_not: bool) -> None:
    assert may_be_elsewhere(outcome, is_likely=True) is if_likely
    assert may_be_elsewhere(outcome, is_likely=False) is if_not


def test_what_is_unknown_is_named() -> None:
    unknown = [unknown_target("tools/call", "a__x"), unknown_target("resources/read", "x:y")]
    assert [(refused.code, refused.status, refused.message, refused.data) for refused in unknown] == [
        (-32602, 200, "Unknown tool", {"name": "a__x"}),
        (-32602, 200, "Unknown resource", {"uri": "x:y"}),
    ]
    assert (unknown_method("prompts/list").code, unknown_method("prompts/list").status) == (-32601, 404)
