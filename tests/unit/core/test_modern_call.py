"""gateway.core.modern_call: what a modern server is sent, and what of its notifications a client sees."""

from typing import Any

import pytest

from gateway.core.inbound_request import InboundRequest
from gateway.core.modern_call import ModernCall

MODERN = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"


def call(method: str = "tools/call", params: Any = None, *, state: str | None = None, **members: Any) -> ModernCall:
    capabilities = members.pop("capabilities", {})
    about = {
        PREFIX + "protocolVersion": MODERN,
        PREFIX + "clientCapabilities": capabilities,
        **members.pop("meta", {}),
    }
    params = {**(params or {}), "_meta": about}
    return ModernCall(InboundRequest(7, method, params, about, capabilities, **members), "era-1", state)


def notification(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/" + method, "params": params}


def progress(value: Any, *, of: Any = "era-1", **params: Any) -> dict[str, Any]:
    return notification("progress", progressToken=of, progress=value, **params)


# --- what is sent ---


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "echo"}, "echo"),
        ("prompts/get", {"name": "天气"}, "=?base64?5aSp5rCU?="),
        ("resources/read", {"uri": "file:///dát/ž.txt"}, "=?base64?ZmlsZTovLy9kw6F0L8W+LnR4dA==?="),
        ("tools/call", {"name": " lead"}, "=?base64?IGxlYWQ=?="),
        ("tools/call", {"name": "=?base64?aGk=?="}, "=?base64?PT9iYXNlNjQ/YUdrPT89?="),
        ("tools/list", {"name": "echo"}, None),
        ("tools/call", {"name": 5}, None),
    ],
)
def test_headers_are_built_from_the_body(method: str, params: Any, name: str | None) -> None:
    headers = call(method, params).headers()
    assert headers.pop("Mcp-Name", None) == name
    assert headers == {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}


def test_parameter_headers_pass_if_they_are_plain() -> None:
    headers = call(param_headers={"region": b"eu", "city": b"=?base64?w6E=?=", "bad": b"\xe1"}).headers()
    assert headers["Mcp-Param-region"] == "eu"
    assert headers["Mcp-Param-city"] == "=?base64?w6E=?="
    assert "Mcp-Param-bad" not in headers


def test_the_body_passes_under_the_gateways_own_id_and_token() -> None:
    original = call(
        params={"name": "echo", "arguments": {"n": 1}, "x": None},
        meta={"progressToken": "p", "com.example/k": [1], "traceparent": "00-1"},
        progress_token="p",
    )
    before = repr(original.request)
    message = original.message()
    assert (message["id"], message["method"]) == ("era-1", "tools/call")
    assert message["params"]["_meta"] == {
        PREFIX + "protocolVersion": MODERN,
        PREFIX + "clientCapabilities": {},
        "progressToken": "era-1",
        "com.example/k": [1],
        "traceparent": "00-1",
    }
    assert {key: value for key, value in message["params"].items() if key != "_meta"} == {
        "name": "echo",
        "arguments": {"n": 1},
        "x": None,
    }
    assert repr(original.request) == before


@pytest.mark.parametrize(("state", "sent"), [("server's own", {"requestState": "server's own"}), (None, {})])
def test_a_retry_carries_the_servers_own_state(state: str | None, sent: dict[str, str]) -> None:
    retry = call(
        params={"name": "x", "requestState": "sealed", "inputResponses": {"a": {}}}, state=state, request_state="sealed"
    )
    params = retry.message()["params"]
    assert {key: params[key] for key in params.keys() - {"_meta", "name"}} == {"inputResponses": {"a": {}}, **sent}


def test_an_extension_whose_methods_are_not_served_is_not_declared() -> None:
    declared = {"extensions": {PREFIX + "tasks": {}, PREFIX + "ui": {"v": 1}}, "elicitation": {}}
    about = call(capabilities=declared).message()["params"]["_meta"]
    assert about[PREFIX + "clientCapabilities"] == {"extensions": {PREFIX + "ui": {"v": 1}}, "elicitation": {}}


# --- what is the response ---


@pytest.mark.parametrize(
    ("message", "is_alone", "expected"),
    [
        ({"id": "era-1", "result": {}}, False, True),
        ({"id": "era-1", "error": {}}, False, True),
        ({"id": "era-1"}, False, False),
        ({"id": "era-2", "result": {}}, True, False),
        ({"id": None, "error": {}}, False, False),
        ({"id": None, "error": {}}, True, True),
        ({"id": "server-error", "error": {}}, True, True),
        ({"id": "era-1", "method": "ping"}, True, False),
        ([], True, False),
        (None, True, False),
    ],
)
def test_a_response_has_the_calls_id_or_is_the_only_error(message: Any, is_alone: bool, expected: bool) -> None:
    assert call().is_response(message, is_alone=is_alone) is expected


# --- progress ---


@pytest.mark.parametrize("token", ["abc", 0, 7])
def test_progress_goes_to_the_clients_token_with_its_type(token: str | int) -> None:
    relayed = call(progress_token=token).relay(progress(1, total=3, message="on it"))
    assert relayed == notification("progress", progressToken=token, progress=1, total=3, message="on it")


def test_progress_only_goes_up() -> None:
    under_test = call(progress_token="p")
    relayed = [under_test.relay(progress(value)) for value in (1, 1, 0.5, 2, 1.5, 2.5)]
    assert [message["params"]["progress"] for message in relayed if message] == [1, 2, 2.5]


@pytest.mark.parametrize(
    "message",
    [
        progress(1, of="p"),
        progress(1, of="era-2"),
        progress(1, of=None),
        progress("1"),
        progress(True),
        {"jsonrpc": "2.0", "method": "notifications/progress"},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": [1]},
    ],
)
def test_progress_of_others_and_nonsense_is_dropped(message: Any) -> None:
    assert call(progress_token="p").relay(message) is None


def test_without_a_token_there_is_no_progress() -> None:
    assert call().relay(progress(1)) is None


# --- logs and the rest ---


@pytest.mark.parametrize(
    ("level", "passing"), [(None, []), ("warning", ["warning", "error"]), ("debug", ["info", "warning", "error"])]
)
def test_logs_pass_at_the_level_that_was_asked_for(level: str | None, passing: list[str]) -> None:
    under_test = call(log_level=level)
    messages = [notification("message", level=sent, data="x") for sent in ("info", "warning", "error", "loud")]
    relayed = [under_test.relay(message) for message in messages]
    assert [message["params"]["level"] for message in relayed if message] == passing


@pytest.mark.parametrize(
    "message",
    [
        notification("tools/list_changed"),
        notification("elicitation/complete", elicitationId="e"),
        notification("cancelled", requestId="era-1"),
        {"jsonrpc": "2.0", "id": 1, "method": "roots/list"},
        {"jsonrpc": "2.0", "id": 1, "method": "notifications/progress", "params": {"progressToken": "era-1"}},
        {"jsonrpc": "2.0", "method": 5},
        "text",
        None,
    ],
)
def test_nothing_else_reaches_a_calls_stream(message: Any) -> None:
    assert call(progress_token="p", log_level="debug").relay(message) is None


# --- subscriptions ---


def tagged(method: str, subscription: Any, **params: Any) -> dict[str, Any]:
    return notification(method, **params, _meta={PREFIX + "subscriptionId": subscription})


def acknowledged(subscription: Any) -> dict[str, Any]:
    return tagged("subscriptions/acknowledged", subscription, notifications={"toolsListChanged": True})


def test_a_subscription_is_told_under_the_clients_id_after_its_acknowledgement() -> None:
    listen = call("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    assert listen.relay(tagged("tools/list_changed", "era-1")) is None
    assert listen.relay(acknowledged("era-1")) == acknowledged(7)
    assert listen.is_acknowledged
    assert listen.relay(tagged("tools/list_changed", "era-1")) == tagged("tools/list_changed", 7)
    assert listen.relay(tagged("resources/updated", "era-1", uri="a:b")) == tagged("resources/updated", 7, uri="a:b")
    assert listen.relay(acknowledged("era-1")) is None


def test_a_change_without_an_id_can_only_be_about_this_stream() -> None:
    listen = call("subscriptions/listen")
    listen.relay(acknowledged("era-1"))
    assert listen.relay(notification("tools/list_changed")) == tagged("tools/list_changed", 7)


@pytest.mark.parametrize(
    "message",
    [
        tagged("tools/list_changed", "era-2"),
        progress(1),
        notification("message", level="error", data="x"),
        notification("cancelled", requestId="era-2"),
        notification("cancelled", requestId=7),
    ],
)
def test_nothing_else_reaches_a_subscription(message: Any) -> None:
    listen = call("subscriptions/listen", progress_token="p", log_level="debug")
    listen.relay(acknowledged("era-1"))
    assert listen.relay(message) is None


def test_the_server_may_end_a_subscription() -> None:
    ended = call("subscriptions/listen").relay(notification("cancelled", requestId="era-1", reason="shutdown"))
    assert ended == notification("cancelled", requestId=7, reason="shutdown")
