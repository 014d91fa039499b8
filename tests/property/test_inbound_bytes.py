"""No bytes from a client raise anything but a refusal, and a refusal can always be written."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.inbound import (
    FrontDoor,
    Headers,
    InboundError,
    InboundRequest,
    check_head,
    check_param_headers,
    check_params,
    cors_headers,
    preflight,
    validate,
)
from gateway.errors import ProtocolError, to_reply
from gateway.translate.param_marks import marks_of
from gateway.wire.jsonrpc import encode, error_response
from tests.support.malformed import MARKED_TOOL
from tests.support.messages import PREFIX, VERSION, good_headers, to_asgi

MARKS = marks_of(MARKED_TOOL)
DOOR = FrontDoor(frozenset({"https://app.test"}), frozenset({"gw.test"}), 1000)

NAMES = st.sampled_from(
    [
        *(b"host", b"origin", b"accept", b"content-type", b"content-length", b"access-control-request-headers"),
        *(b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"mcp-param-region", b"mcp-param-shard", b"mcp-param-"),
    ]
)
VALUES = st.one_of(
    st.binary(max_size=20),
    st.sampled_from(
        [
            *(
                VERSION.encode(),
                b"tools/call",
                b"route",
                b"application/json",
                b"*/*",
                b"localhost:1",
                b"http://localhost",
            ),
            *(b"=?base64?cm91dGU=?=", b"=?base64?", b"=?base64?=", b"q=0;q", b"9" * 30, b"42.0", b"-", b"true"),
        ]
    ),
)
HEADERS = st.lists(st.tuples(st.one_of(NAMES, st.binary(max_size=8)), VALUES), max_size=10)

TEXT = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["\ud800", "route", "tools/call", VERSION, "info", "ref/prompt", "file:///a", "notifications/x"]),
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXT),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def mapping(*keys: str) -> st.SearchStrategy[Any]:
    """Objects with some of the members that the ladder looks at, and any value in each."""
    return st.one_of(JSON, st.dictionaries(st.one_of(st.sampled_from(keys), TEXT), JSON, max_size=4))


META = mapping(*(PREFIX + key for key in ("protocolVersion", "clientCapabilities", "clientInfo", "logLevel")))
METHODS = st.sampled_from(
    [
        "tools/call",
        "tools/list",
        "prompts/get",
        "resources/read",
        "completion/complete",
        "subscriptions/listen",
        "tasks/get",
    ]
)
ARGUMENTS = mapping("region", "shard", "dry", "deep")


def climb(headers: Headers, body: bytes) -> None:
    request = validate(headers, body)
    if isinstance(request, InboundRequest):
        check_params(request)
        check_param_headers(request, MARKS)


def assert_refused_or_taken(headers: Headers, body: bytes) -> None:
    try:
        climb(headers, body)
    except InboundError as error:
        assert 400 <= error.status < 500
        assert encode(error_response(error.request_id, to_reply(error).error))


@given(headers=HEADERS, body=st.binary(max_size=200))
def test_any_bytes_are_refused_in_words(headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    assert_refused_or_taken(Headers(headers), body)


@given(headers=HEADERS, method=st.sampled_from(["POST", "GET", "OPTIONS", ""]))
def test_any_head_is_refused_in_words(headers: list[tuple[bytes, bytes]], method: str) -> None:
    for check in (lambda h: check_head(method, h, DOOR), lambda h: preflight(h, DOOR), lambda h: cors_headers(h, DOOR)):
        try:
            check(Headers(headers))
        except ProtocolError as error:
            assert error.status in {403, 405, 406, 413, 415}


@given(headers=HEADERS, message=mapping("jsonrpc", "id", "method", "params"))
def test_any_message_is_refused_in_words(headers: list[tuple[bytes, bytes]], message: Any) -> None:
    assert_refused_or_taken(Headers(headers), encode(message))


@given(
    method=METHODS,
    params=st.dictionaries(
        st.sampled_from(
            [
                "name",
                "uri",
                "cursor",
                "taskId",
                "ref",
                "argument",
                "context",
                "notifications",
                "inputResponses",
                "requestState",
            ]
        ),
        st.one_of(
            TEXT, mapping("type", "name", "uri", "value", "arguments", "toolsListChanged", "resourceSubscriptions")
        ),
        max_size=4,
    ),
    arguments=ARGUMENTS,
    meta=META,
    is_meta_good=st.booleans(),
    more=HEADERS,
)
def test_any_params_behind_good_headers_are_refused_in_words(
    method: str,
    params: dict[str, Any],
    arguments: Any,
    meta: Any,
    is_meta_good: bool,
    more: list[tuple[bytes, bytes]],
) -> None:
    if is_meta_good:
        good = {f"{PREFIX}protocolVersion": VERSION, f"{PREFIX}clientCapabilities": {}}
        meta = good | meta if isinstance(meta, dict) else good
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": method,
        "params": {**params, "arguments": arguments, "_meta": meta},
    }
    headers = Headers([*to_asgi(good_headers(method, {})), *more])
    assert_refused_or_taken(headers, encode(message))
