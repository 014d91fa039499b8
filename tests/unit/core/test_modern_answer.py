"""gateway.core.modern_answer: what is changed in the answer of a modern server, and what is not."""

from typing import Any

import pytest

from gateway.core.inbound_request import InboundRequest
from gateway.core.modern_answer import Policy, to_error_outcome, to_result_outcome
from gateway.core.outcome import Outcome

PREFIX = "io.modelcontextprotocol/"


class Sealing:
    """A policy that remembers what it was asked."""

    def __init__(self) -> None:
        self.states: list[str | None] = []
        self.warnings: list[str] = []

    def seal(self, state: str | None) -> str:
        self.states.append(state)
        return f"sealed:{state}"

    @property
    def policy(self) -> Policy:
        return Policy(500, "public", self.seal, self.warnings.append)


def request(method: str, capabilities: Any = None, **members: Any) -> InboundRequest:
    params = {"name": "echo", "uri": "a:b", "_meta": {}}
    return InboundRequest("c", method, params, {}, capabilities or {}, **members)


def outcome(method: str, result: dict[str, Any], **members: Any) -> Outcome:
    return to_result_outcome(request(method, **members), result, Sealing().policy)


def passed(method: str, result: dict[str, Any], **members: Any) -> dict[str, Any]:
    answer: dict[str, Any] = outcome(method, result, **members).body["result"]
    return answer


def test_a_result_passes_as_it_is() -> None:
    result = {
        "resultType": "complete",
        "content": [{"type": "x-card", "n": 1.0}],
        "structuredContent": None,
        "vendor": {"k": [1]},
        "_meta": {PREFIX + "serverInfo": {"name": "s", "version": "1"}, "com.example/k": 1},
    }
    assert passed("tools/call", result) == result


def test_a_result_that_does_not_say_what_it_is_is_complete() -> None:
    assert passed("tools/call", {"content": []}) == {"resultType": "complete", "content": []}


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        ({}, {"ttlMs": 500, "cacheScope": "public"}),
        ({"ttlMs": 0, "cacheScope": "private"}, {"ttlMs": 0, "cacheScope": "private"}),
        ({"ttlMs": -1, "cacheScope": "shared"}, {"ttlMs": 500, "cacheScope": "public"}),
        ({"ttlMs": True, "cacheScope": []}, {"ttlMs": 500, "cacheScope": "public"}),
        ({"ttlMs": "9", "cacheScope": None}, {"ttlMs": 500, "cacheScope": "public"}),
    ],
)
def test_cacheable_results_get_the_hints_that_they_lack(hints: Any, expected: Any) -> None:
    result = passed("resources/read", {"contents": [], **hints})
    assert {key: result[key] for key in expected} == expected


def test_other_results_get_none() -> None:
    assert passed("prompts/get", {"messages": []}) == {"resultType": "complete", "messages": []}


@pytest.mark.parametrize("round_", [{"request_state": "t"}, {"input_responses": {"a": {}}}])
def test_what_a_user_answered_is_not_to_be_kept(round_: Any) -> None:
    result = passed("resources/read", {"contents": [], "ttlMs": 9000, "cacheScope": "public"}, **round_)
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


def test_discover_names_the_gateways_versions_and_what_it_can_serve() -> None:
    result = passed(
        "server/discover",
        {
            "supportedVersions": ["2026-07-28", "2025-11-25"],
            "capabilities": {"tools": {"listChanged": True}, "extensions": {PREFIX + "tasks": {}, PREFIX + "ui": {}}},
            "instructions": "hi",
        },
    )
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["capabilities"] == {"tools": {"listChanged": True}, "extensions": {PREFIX + "ui": {}}}
    assert result["instructions"] == "hi"


def test_a_discover_result_without_the_revision_is_no_answer() -> None:
    with pytest.raises(ValueError, match="no longer speaks"):
        outcome("server/discover", {"supportedVersions": ["2025-11-25"], "capabilities": {}})


def test_a_tool_with_an_invalid_header_mark_is_left_out_with_a_warning() -> None:
    good = {"name": "good", "inputSchema": {"properties": {"r": {"type": "string", "x-mcp-header": "Region"}}}}
    bad = {"name": "bad", "inputSchema": {"properties": {"r": {"type": "object", "x-mcp-header": "Region"}}}}
    sealing = Sealing()
    answer = to_result_outcome(request("tools/list"), {"tools": [good, bad, {"name": "plain"}]}, sealing.policy)
    assert answer.body["result"]["tools"] == [good, {"name": "plain"}]
    [warning] = sealing.warnings
    assert "'bad' is left out" in warning


def test_a_tools_list_without_tools_is_no_empty_list() -> None:
    with pytest.raises(ValueError, match="without tools"):
        outcome("tools/list", {"tools": None})


def test_a_subscription_ends_under_the_clients_id() -> None:
    result = passed("subscriptions/listen", {"_meta": {PREFIX + "subscriptionId": "era-1", "k": 1}})
    assert result["_meta"] == {PREFIX + "subscriptionId": "c", "k": 1}


# --- rounds ---

FORM = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object"}}}
SAMPLE = {"method": "sampling/createMessage", "params": {"messages": [], "tools": []}}


@pytest.mark.parametrize("state", ["server's own", None])
def test_the_servers_state_becomes_the_gateways(state: str | None) -> None:
    result = {"resultType": "input_required", "inputRequests": {"name": FORM}}
    if state is not None:
        result["requestState"] = state
    answer = to_result_outcome(request("tools/call", {"elicitation": {}}), result, Sealing().policy)
    assert answer.body["result"] == {**result, "requestState": f"sealed:{state}"}
    assert answer.status == 200


def test_a_round_with_state_alone_passes() -> None:
    result = passed("prompts/get", {"resultType": "input_required", "requestState": "s"})
    assert result == {"resultType": "input_required", "requestState": "sealed:s"}


def test_what_the_request_did_not_declare_is_not_asked() -> None:
    questions = {"a": FORM, "b": SAMPLE, "c": {"method": "roots/list"}}
    answer = to_result_outcome(
        request("tools/call", {"roots": {}}),
        {"resultType": "input_required", "inputRequests": questions},
        Sealing().policy,
    )
    assert answer.status == 400
    assert answer.body["error"]["code"] == -32021
    assert answer.body["error"]["data"] == {
        "requiredCapabilities": {"elicitation": {"form": {}}, "sampling": {"tools": {}}}
    }


@pytest.mark.parametrize(
    ("method", "result", "fault"),
    [
        ("tools/list", {"inputRequests": {"a": FORM}}, "cannot ask"),
        ("tools/call", {}, "without saying which"),
        ("tools/call", {"inputRequests": []}, "without saying which"),
        ("tools/call", {"inputRequests": {"a": {"method": "x"}}}, "unknown kind"),
        ("tools/call", {"inputRequests": {"a": None}}, "unknown kind"),
        ("tools/call", {"requestState": 5}, "not a string"),
    ],
)
def test_a_malformed_round_is_no_answer(method: str, result: Any, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        outcome(method, {"resultType": "input_required", **result}, capabilities={"elicitation": {}})


# --- errors ---


@pytest.mark.parametrize(
    ("code", "status"), [(-32020, 400), (-32021, 400), (-32601, 404), (-32602, 200), (-32603, 200), (4001, 200)]
)
def test_an_error_passes_with_the_status_that_belongs_to_it(code: int, status: int) -> None:
    error = {"code": code, "message": "no", "data": {"k": 1}}
    assert to_error_outcome(request("tools/call"), error) == Outcome({"error": error}, status)


@pytest.mark.parametrize(
    ("code", "becomes"),
    [(-32002, -32602), (-32042, -32603), (-32022, -32603), (-32099, -32603), ("5", -32603), (0, -32603)],
)
def test_codes_that_mean_something_else_here_are_translated(code: Any, becomes: int) -> None:
    answer = to_error_outcome(request("resources/read"), {"code": code, "message": "no"})
    assert (answer.body["error"]["code"], answer.status) == (becomes, 200)


@pytest.mark.parametrize("error", [None, [], {}, {"code": [], "message": None}])
def test_an_error_that_is_none_still_has_a_code_and_a_message(error: Any) -> None:
    answer = to_error_outcome(request("tools/call"), error).body["error"]
    assert answer["code"] == -32603
    assert answer["message"]
