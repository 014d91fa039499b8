"""What replicas say to each other, as bytes and back."""

from typing import Any

import pytest

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller, Principal
from gateway.core.relay import (
    Cancel,
    Done,
    Ended,
    Message,
    Notice,
    Serve,
    Still,
    Unknown,
    Working,
    caller_members,
    decode_message,
    encode_message,
    end_of_error,
    end_of_outcome,
    request_members,
    to_caller,
    to_outcome,
    to_request,
)
from gateway.errors import GatewayError, ListenError, ProtocolError, UpstreamError
from gateway.wire.jsonrpc import decode, encode

AWKWARD: dict[str, Any] = {"big": 1 << 200, "surrogate": "\ud800", "null": None, "nul": "\0", "": [[[-0.5]]], "to": "x"}
MESSAGES: list[Message] = [
    Serve("r", "here", "docs", "h", {"params": AWKWARD}, {"principal": {}}),
    Still("r", "here", 3, True),
    Cancel("r"),
    Done(["r", "s"]),
    Done([]),
    Notice("r", 0, AWKWARD),
    Ended("r", {"outcome": AWKWARD}),
    Unknown("r"),
    Working("r"),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_every_message_comes_back_as_it_was(message: Message) -> None:
    assert decode_message(encode_message(message, "there"), "there") == message


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_for_somebody_else_is_not_taken(message: Message) -> None:
    for recipient in ("here", "", "ther"):
        with pytest.raises(ValueError, match="not for this replica"):
            decode_message(encode_message(message, "there"), recipient)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"rubbish",
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        b'{"to":["me"],"kind":"cancel","relay":"r"}',
        b'{"to":"me"}',
        b'{"to":"me","kind":"other","relay":"r"}',
        b'{"to":"me","kind":["cancel"],"relay":"r"}',
        b'{"to":"me","kind":null,"relay":"r"}',
        b'{"to":"me","kind":"cancel"}',
        b'{"to":"me","kind":"cancel","relay":"r","more":1}',
        b'{"to":"me","kind":"still","relay":"r","relayer":"b","taken":1}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_message_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_message(data, "me")


def test_a_message_that_cannot_be_written_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode_message(Notice("r", 0, {"x": float("inf"), "big": 1 << 70}), "there")


REQUESTS = [
    InboundRequest("1", "tools/call", {"name": "t"}, {}, {}),
    InboundRequest(
        -(2**63),
        "tools/call",
        {"arguments": AWKWARD},
        {"m": 1},
        {"elicitation": {"url": {}}},
        {"name": "c"},
        "debug",
        0,
        "t",
        {"a": bytes(range(256))},
        {"q": {"action": "accept"}},
        "token",
    ),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=["least", "full"])
def test_a_request_comes_back_as_it_was(request_: InboundRequest) -> None:
    assert to_request(decode(encode(request_members(request_)))) == request_


CALLERS = [
    Caller(Principal("anonymous", "anonymous")),
    Caller(Principal("i", "n", frozenset()), "Bearer x"),
    Caller(Principal("i", "n", frozenset({"b", "a"})), None, {"x-user": "ü"}),
]


@pytest.mark.parametrize("caller", CALLERS, ids=["anonymous", "of no upstream", "full"])
def test_a_caller_comes_back_as_it_was(caller: Caller) -> None:
    assert to_caller(decode(encode(caller_members(caller)))) == caller


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"param_headers": None},
        {"param_headers": {"a": 1}},
        {"param_headers": {}, "id": 1},
        {**request_members(REQUESTS[0]), "later": 1},
    ],
)
def test_a_request_of_another_version_is_a_value_error(members: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a request"):
        to_request(members)


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"principal": None},
        {"principal": {"id": "i"}},
        {"principal": {"id": "i", "name": "n", "scopes": 1}},
        {**caller_members(CALLERS[0]), "later": 1},
    ],
)
def test_a_caller_of_another_version_is_a_value_error(members: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a caller"):
        to_caller(members)


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome({"result": AWKWARD}),
        Outcome({"error": {"code": -1, "message": "m"}}, 429, (("retry-after", "3"), ("x-a", "b"))),
    ],
)
def test_an_outcome_comes_back_as_it_was(outcome: Outcome) -> None:
    assert to_outcome(decode(encode(end_of_outcome(outcome)))) == outcome


@pytest.mark.parametrize(
    "error",
    [
        ProtocolError(-32602, "m"),
        ProtocolError(-32603, "m", {"a": [1]}, status=503, reason="r", headers=(("retry-after", "2"),)),
        UpstreamError("docs", "timeout", "m"),
        UpstreamError("docs", "full", "m", retryable=True, retry_after_s=3),
    ],
)
def test_an_error_is_raised_as_it_was(error: ProtocolError | UpstreamError) -> None:
    with pytest.raises(type(error)) as raised:
        to_outcome(decode(encode(end_of_error(error))))
    assert vars(raised.value) == vars(error)
    assert str(raised.value) == str(error)


@pytest.mark.parametrize("error", [ListenError("m"), GatewayError("m")])
def test_an_error_that_no_client_is_told_of_cannot_be_sent(error: GatewayError) -> None:
    with pytest.raises(ValueError, match="never reaches a client"):
        end_of_error(error)
