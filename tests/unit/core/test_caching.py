from typing import Any

import pytest

from gateway.core.caching import (
    changed_lists,
    doubted_lists,
    identity,
    is_public,
    kept_for_s,
    may_be_cached,
    updated_resources,
    with_time_left,
)
from gateway.core.outcome import Outcome
from tests.support.fake_upstream import request

TOOLS, CALL, GET, READ = "tools/list", "tools/call", "prompts/get", "resources/read"


def result(**members: Any) -> Outcome:
    return Outcome.of_result({"resultType": "complete", **members})


def error(code: int) -> Outcome:
    return Outcome({"error": {"code": code, "message": "no"}})


@pytest.mark.parametrize(
    ("asked", "may_be"),
    [
        (request(TOOLS), True),
        (request("resources/templates/list"), True),
        (request(READ, {"uri": "x:1"}), True),
        (request(READ, {"uri": "x:1"}, request_state="s"), False),
        (request(READ, {"uri": "x:1"}, input_responses={"a": {}}), False),
        (request("server/discover"), False),
        (request(CALL, {"name": "x"}), False),
        (request(GET, {"name": "x"}), False),
    ],
)
def test_lists_and_resources_are_kept_and_no_rounds(asked: Any, may_be: bool) -> None:
    assert may_be_cached(asked) is may_be


def test_an_answer_depends_on_the_parameters_and_on_what_others_wrote_into_meta() -> None:
    plain = identity(request(TOOLS))
    of_one_request = {
        "progressToken": 7,
        "traceparent": "00-1",
        "tracestate": "x",
        "baggage": "y",
        "io.modelcontextprotocol/logLevel": "info",
    }
    assert identity(request(TOOLS, meta=of_one_request)) == plain
    different = [
        request(TOOLS, {"cursor": ""}),
        request(TOOLS, {"cursor": "p2"}),
        request(TOOLS, meta={"x/tenant": "a"}),
        request(READ, {"uri": "x:1"}),
        request(READ, {"uri": "x:\ud83d"}),
    ]
    assert len({plain, *map(identity, different)}) == len(different) + 1


@pytest.mark.parametrize(
    ("outcome", "seconds"),
    [
        (result(ttlMs=1500), 1.5),
        (result(ttlMs=0), 0),
        (result(ttlMs=-1), 0),
        (result(ttlMs="9"), 0),
        (result(ttlMs=True), 0),
        (result(), 0),
        (Outcome.of_result({"resultType": "input_required", "ttlMs": 1500}), 0),
        (error(-32603), 0),
    ],
)
def test_a_complete_result_is_kept_for_as_long_as_it_says(outcome: Outcome, seconds: float) -> None:
    assert kept_for_s(outcome) == seconds


def test_what_is_public_says_so() -> None:
    assert is_public(result(cacheScope="public"))
    assert not any(map(is_public, (result(cacheScope="private"), result(), error(1))))


def test_what_is_kept_goes_out_with_the_time_that_is_left() -> None:
    kept = {"tools": [], "ttlMs": 5000}
    assert with_time_left(kept, 1.2345).body["result"] == {"tools": [], "ttlMs": 1234}
    assert with_time_left(kept, -1).body["result"]["ttlMs"] == 0
    assert kept["ttlMs"] == 5000


TEXT = {"type": "text"}


@pytest.mark.parametrize(
    ("method", "outcome", "lists"),
    [
        (CALL, error(-32602), ["tools/list"]),
        (CALL, error(-32601), ["tools/list"]),
        (CALL, error(-32020), ["tools/list"]),
        (CALL, error(-32603), []),
        (CALL, result(isError=True, content=[{**TEXT, "text": "Unknown tool: x"}]), ["tools/list"]),
        (CALL, result(isError=True, content=[{**TEXT, "text": "MCP error -32602: Tool x not found"}]), ["tools/list"]),
        (CALL, result(isError=True, content=[{**TEXT, "text": "no such file"}]), []),
        (CALL, result(isError=False, content=[{**TEXT, "text": "Unknown tool: x"}]), []),
        (CALL, result(isError=True, content=[None]), []),
        (CALL, result(isError=True, content=[]), []),
        (CALL, result(isError=True), []),
        (GET, error(-32602), ["prompts/list"]),
        (READ, error(-32602), ["resources/list", "resources/templates/list"]),
        ("completion/complete", error(-32602), ["prompts/list", "resources/templates/list"]),
        (TOOLS, error(-32602), []),
        (GET, result(isError=True, content=[{**TEXT, "text": "Unknown tool"}]), []),
    ],
)
def test_a_refusal_shows_that_a_list_is_out_of_date(method: str, outcome: Outcome, lists: list[str]) -> None:
    params = {CALL: {"name": "x"}, GET: {"name": "x"}, READ: {"uri": "x:1"}}.get(method, {})
    assert list(doubted_lists(request(method, params), outcome)) == lists


@pytest.mark.parametrize(
    ("kind", "methods"),
    [
        ("tools", ["tools/list"]),
        ("prompts", ["prompts/list"]),
        ("resources", ["resources/list", "resources/templates/list", "resources/read"]),
    ],
)
def test_a_change_of_a_list_concerns_what_stands_in_it(kind: str, methods: list[str]) -> None:
    assert list(changed_lists({"method": f"notifications/{kind}/list_changed"})) == methods


def test_an_update_of_a_part_concerns_the_whole() -> None:
    updated = {"method": "notifications/resources/updated", "params": {"uri": "file:///a/b"}}
    concerned = updated_resources(updated)
    assert concerned is not None
    assert {"file:///a/b", "file:///a/", "file:///a"} <= set(concerned)
    for params in ({}, {"uri": ""}, {"uri": "x:" + "a/" * 2000}):
        assert updated_resources({"method": "notifications/resources/updated", "params": params}) is None
