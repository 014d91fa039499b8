"""Requests, from modern clients to legacy servers."""

import pytest

from gateway.translate.requests import to_legacy_request
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject

ENVELOPE: JsonObject = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "host", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    "io.modelcontextprotocol/logLevel": "info",
}
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def call(**params: Json) -> JsonObject:
    legacy = to_legacy_request(methods.TOOLS_CALL, {"name": "echo", **params}, None)
    assert legacy is not None
    return legacy


def test_the_envelope_of_the_modern_era_never_reaches_a_legacy_server() -> None:
    assert call(arguments={"a": 1}, _meta=ENVELOPE) == {"name": "echo", "arguments": {"a": 1}}


def test_answers_and_state_never_reach_a_legacy_server() -> None:
    assert call(inputResponses={"user_name": {"action": "accept"}}, requestState="token") == {"name": "echo"}


def test_a_call_is_never_made_a_task() -> None:
    assert call(task={"ttl": 60000}) == {"name": "echo"}


def test_vendor_keys_of_meta_pass_as_they_are() -> None:
    assert call(_meta={**ENVELOPE, "com.example/tenant": [1, None]})["_meta"] == {"com.example/tenant": [1, None]}


def test_the_client_s_progress_token_is_replaced_by_the_gateway_s() -> None:
    legacy = to_legacy_request(methods.TOOLS_CALL, {"name": "echo", "_meta": {"progressToken": 0}}, "gw-1")
    assert legacy == {"name": "echo", "_meta": {"progressToken": "gw-1"}}


def test_without_a_token_of_the_gateway_s_there_is_no_progress_token() -> None:
    assert call(_meta={"progressToken": "abc"}) == {"name": "echo"}


@pytest.mark.parametrize("method", sorted(methods.LIST_KEYS))
def test_a_list_without_anything_to_say_has_no_params(method: str) -> None:
    assert to_legacy_request(method, {"_meta": ENVELOPE, "cursor": None}, None) is None


@pytest.mark.parametrize("cursor", ["", "p2"])
def test_a_cursor_passes_even_if_it_is_empty(cursor: str) -> None:
    assert to_legacy_request(methods.TOOLS_LIST, {"cursor": cursor}, None) == {"cursor": cursor}


def test_a_request_that_needs_params_keeps_them_even_if_empty() -> None:
    assert to_legacy_request(methods.COMPLETE, None, None) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("traceparent", TRACEPARENT),
        ("traceparent", "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-later"),
        ("tracestate", "congo=t61rcWkgMzE,rojo=00f067aa0ba902b7"),
        ("tracestate", "fw529a3039@dt=FfffC;1 , , x=y"),
        ("baggage", "userId=alice,serverNode=DF%2028;isProduction=false; flag"),
    ],
)
def test_a_well_formed_trace_key_passes(key: str, value: str) -> None:
    assert call(_meta={key: value})["_meta"] == {key: value}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331"),
        ("traceparent", TRACEPARENT + "-more"),
        ("traceparent", TRACEPARENT.upper()),
        ("traceparent", "ff" + TRACEPARENT[2:]),
        ("traceparent", "00-" + "0" * 32 + "-b7ad6b7169203331-01"),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01"),
        ("traceparent", TRACEPARENT + "\n"),
        ("traceparent", 7),
        ("tracestate", "no value"),
        ("tracestate", "UPPER=x"),
        ("tracestate", ",".join(f"k{n}=v" for n in range(33))),
        ("baggage", "key"),
        ("baggage", 'a="quoted"'),
        ("baggage", "a=" + "x" * 9000),
    ],
)
def test_a_malformed_trace_key_is_left_out(key: str, value: Json) -> None:
    assert "_meta" not in call(_meta={key: value})
