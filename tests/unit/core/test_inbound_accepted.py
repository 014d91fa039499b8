"""What the ladder lets through, and what it makes of it."""

import json
from typing import Any

import pytest

from gateway.core.inbound import Headers, InboundNotification, InboundRequest, check_params, validate
from tests.support.messages import PREFIX, VERSION, HeaderChange, good_meta, good_request, to_asgi


def accept(method: str = "tools/list", params: dict[str, Any] | None = None, **more: Any) -> InboundRequest:
    headers, body = good_request(method, params, **more)
    request = validate(Headers(to_asgi(headers)), body)
    assert isinstance(request, InboundRequest)
    check_params(request)
    return request


def notify(message: object) -> InboundNotification:
    taken = validate(Headers([]), json.dumps(message).encode())
    assert isinstance(taken, InboundNotification)
    return taken


@pytest.mark.parametrize("request_id", [1, 0, -1, "1", "", 2**53 - 1, 2**63 - 1, -(2**63), "b7e0-uuid", "é" * 128])
def test_an_id_keeps_its_value_and_type(request_id: str | int) -> None:
    taken = accept(request_id=request_id).id
    assert (taken, type(taken)) == (request_id, type(request_id))


def test_everything_that_a_request_says_is_read_once() -> None:
    capabilities = {"elicitation": {"form": {}}, "vendor": 1}
    meta = {f"{PREFIX}logLevel": "info", "progressToken": "p", "traceparent": "00-a", "com.example/x": None}
    params = {"name": "echo", "arguments": {}, "inputResponses": {"q": {"action": "accept"}}, "requestState": "s"}
    request = accept("tools/call", params, capabilities=capabilities, meta=meta, headers={"Mcp-Param-Region": "eu "})
    assert request == InboundRequest(
        id=1,
        method="tools/call",
        params={**params, "_meta": good_meta(capabilities) | meta},
        meta=good_meta(capabilities) | meta,
        capabilities=capabilities,
        client_info={"name": "test-client", "version": "1.0"},
        log_level="info",
        progress_token="p",
        target="echo",
        param_headers={"region": b"eu"},
        input_responses={"q": {"action": "accept"}},
        request_state="s",
    )


def test_a_request_without_client_info_is_served() -> None:
    meta = good_meta()
    del meta[f"{PREFIX}clientInfo"]
    headers, _ = good_request()
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    request = validate(Headers(to_asgi(headers)), json.dumps(message).encode())
    assert isinstance(request, InboundRequest)
    assert request.client_info is None


@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        {"elicitation": {}},
        {
            "elicitation": {"form": {}, "url": {}},
            "sampling": {"tools": {}, "context": {}},
            "roots": {"listChanged": True},
        },
        {"experimental": {"x": {}}, "extensions": {"com.example/x": {"a": 1}}},
        {"somethingNew": True},
    ],
)
def test_capabilities_are_an_open_set(capabilities: dict[str, Any]) -> None:
    assert accept(capabilities=capabilities).capabilities == capabilities


@pytest.mark.parametrize(
    "changes",
    [
        {"Mcp-Session-Id": "stray", "Last-Event-ID": "e-1"},
        {"Mcp-Name": "ignored"},
        {"MCP-Protocol-Version": f"  {VERSION}\t"},
        {"Mcp-Method": " tools/list "},
        {"Cookie": ["a=b", "c=d"]},
    ],
)
def test_headers_that_matter_to_nobody_are_ignored_and_values_are_trimmed(changes: dict[str, HeaderChange]) -> None:
    assert accept(headers=changes).target is None


def test_a_byte_order_mark_and_escaped_colons_are_accepted() -> None:
    headers, body = good_request("tools/call", {"name": "a:b", "arguments": {"a:b": ":"}})
    escaped = b"\xef\xbb\xbf" + body.replace(b"a:b", b"a\\u003ab")
    request = validate(Headers(to_asgi(headers)), escaped)
    assert isinstance(request, InboundRequest)
    assert request.params["arguments"] == {"a:b": ":"}


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("note add", "note add"),
        ("a/b", "a/b"),
        ("天气", "=?base64?5aSp5rCU?="),
        (" lead", "=?base64?IGxlYWQ=?="),
        ("get", "=?base64?Z2V0?="),
        ("=?base64?aGk=?=", "=?base64?PT9iYXNlNjQ/YUdrPT89?="),
        ("=?base64?aGk=", "=?base64?aGk="),
        ("=?BASE64?aGk=?=", "=?BASE64?aGk=?="),
        ("a\nb", "=?base64?YQpi?="),
    ],
)
def test_a_name_header_is_compared_after_decoding(name: str, header: str) -> None:
    assert accept("tools/call", {"name": name}, headers={"Mcp-Name": header}).target == name


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("server/discover", {"anything": 1}),
        ("tools/list", {"cursor": ""}),
        ("prompts/list", {"cursor": None}),
        ("resources/templates/list", {"cursor": "abc"}),
        ("prompts/get", {"name": "p", "arguments": {"a": "b"}}),
        ("resources/read", {"uri": "test+x:a"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/resource", "uri": "{+path}"},
                "argument": {"name": "a", "value": "x"},
                "context": {"arguments": {"b": "c"}},
            },
        ),
        ("subscriptions/listen", {"notifications": {}}),
        (
            "subscriptions/listen",
            {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["a:b"], "new": 1}},
        ),
    ],
)
def test_well_formed_parameters_pass(method: str, params: dict[str, Any]) -> None:
    assert accept(method, params).method == method


def test_answers_to_a_method_that_never_asks_are_nobodys() -> None:
    request = accept("tools/list", {"inputResponses": {"q": {}}, "requestState": "s"})
    assert (request.input_responses, request.request_state) == (None, None)


@pytest.mark.parametrize("params", [{}, {"requestId": 1}, {"_meta": 7}])
def test_a_notification_needs_no_headers(params: dict[str, Any]) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    assert notify(message) == InboundNotification("notifications/cancelled", params)


@pytest.mark.parametrize("params", [[1], None, "x"])
def test_a_notification_is_taken_whatever_its_params(params: object) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/initialized", "params": params}
    assert notify(message) == InboundNotification("notifications/initialized", {})
