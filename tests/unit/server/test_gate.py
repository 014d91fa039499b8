"""Whom a process lets in that is about to end."""

from dataclasses import replace

import pytest

from gateway.core.front_door import Headers
from gateway.core.inbound import validate
from gateway.core.inbound_request import InboundRequest
from gateway.errors import ProtocolError
from gateway.server.gate import Gate
from tests.support.messages import good_request, to_asgi


def a_call(state: str | None = None) -> InboundRequest:
    headers, body = good_request("tools/call", {"name": "greet", "arguments": {}})
    request = validate(Headers(to_asgi(headers)), body)
    assert isinstance(request, InboundRequest)
    return replace(request, request_state=state)


def test_everything_is_let_in_at_first() -> None:
    gate = Gate()
    gate.check(a_call())
    gate.check(a_call(state="token"))


def test_retries_are_let_in_as_long_as_rounds_are_kept() -> None:
    gate = Gate()
    gate.is_closed = True
    gate.check(a_call(state="token"))
    with pytest.raises(ProtocolError) as refusal:
        gate.check(a_call())
    assert refusal.value.data == {"reason": "draining", "retryable": True}


def test_retries_are_sent_elsewhere_once_the_rounds_are_handed_over() -> None:
    gate = Gate()
    gate.is_closed = gate.is_shut = True
    with pytest.raises(ProtocolError) as refusal:
        gate.check(a_call(state="token"))
    assert (refusal.value.status, refusal.value.data) == (503, {"reason": "draining", "retryable": True})
