"""Marked arguments against their `Mcp-Param-*` headers."""

from typing import Any

import pytest

from gateway.core.inbound import Headers, InboundError, InboundRequest, check_param_headers, validate
from gateway.translate.param_marks import marks_of
from tests.support.malformed import MARKED_TOOL
from tests.support.messages import HeaderChange, good_request, to_asgi

MARKS = marks_of(MARKED_TOOL)


def check(arguments: Any, headers: dict[str, HeaderChange]) -> None:
    raw, body = good_request("tools/call", {"name": "route", "arguments": arguments}, request_id="r", headers=headers)
    request = validate(Headers(to_asgi(raw)), body)
    assert isinstance(request, InboundRequest)
    check_param_headers(request, MARKS)


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, {}),
        ({"region": None, "shard": None}, {}),
        ({"region": "us-west1"}, {"Mcp-Param-Region": "us-west1"}),
        ({"region": "us-west1"}, {"mcp-param-REGION": " us-west1 "}),
        ({"region": "Hello, 世界"}, {"Mcp-Param-Region": "=?base64?SGVsbG8sIOS4lueVjA==?="}),
        ({"region": " padded "}, {"Mcp-Param-Region": "=?base64?IHBhZGRlZCA=?="}),
        ({"region": "=?base64?SGVsbG8="}, {"Mcp-Param-Region": "=?base64?SGVsbG8="}),
        ({"region": ""}, {"Mcp-Param-Region": ""}),
        ({"shard": 42}, {"Mcp-Param-Shard": "42"}),
        ({"shard": 42}, {"Mcp-Param-Shard": "42.0"}),
        ({"shard": 42.0}, {"Mcp-Param-Shard": "42"}),
        ({"shard": -7}, {"Mcp-Param-Shard": "=?base64?LTc=?="}),
        ({"shard": 0.1}, {"Mcp-Param-Shard": "0.1"}),
        ({"dry": True}, {"Mcp-Param-Dry-Run": "true"}),
        ({"deep": {"tenant": "a"}}, {"Mcp-Param-Tenant": "a"}),
        ({"deep": "not an object"}, {}),
        ({}, {"Mcp-Param-Unheard-Of": "\xff"}),
        ([], {}),
    ],
)
def test_headers_that_mirror_their_arguments_pass(arguments: Any, headers: dict[str, HeaderChange]) -> None:
    check(arguments, headers)


@pytest.mark.parametrize(
    ("arguments", "headers", "message"),
    [
        ({"region": "eu"}, {}, "Mcp-Param-Region is missing: it must mirror params.arguments.region"),
        (
            {"deep": {"tenant": "a"}},
            {"Mcp-Param-Tenant": "b"},
            "Mcp-Param-Tenant differs from params.arguments.deep.tenant",
        ),
        ({}, {"Mcp-Param-Shard": "1"}, "Mcp-Param-Shard was sent without params.arguments.shard"),
        ({"region": ["eu"]}, {"Mcp-Param-Region": "eu"}, "Mcp-Param-Region differs from params.arguments.region"),
        ({"shard": True}, {"Mcp-Param-Shard": "1"}, "Mcp-Param-Shard differs from params.arguments.shard"),
        ({"shard": 1e300}, {"Mcp-Param-Shard": "1e300"}, "Mcp-Param-Shard differs from params.arguments.shard"),
    ],
)
def test_a_refusal_names_the_header_and_the_argument(
    arguments: Any, headers: dict[str, HeaderChange], message: str
) -> None:
    with pytest.raises(InboundError) as error:
        check(arguments, headers)
    assert (error.value.message, error.value.code, error.value.request_id) == (message, -32020, "r")


def test_a_tool_without_marks_wants_no_headers() -> None:
    raw, body = good_request("tools/call", {"name": "echo"}, headers={"Mcp-Param-Region": "eu"})
    request = validate(Headers(to_asgi(raw)), body)
    assert isinstance(request, InboundRequest)
    check_param_headers(request, ())
    assert request.param_headers == {"region": b"eu"}
