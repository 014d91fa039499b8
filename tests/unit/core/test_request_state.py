"""What a request state is bound to, and how its keys rotate. Damage of every kind: tests/property."""

import pytest
from cryptography.fernet import Fernet, MultiFernet

from gateway.core.request_state import RequestState, RequestStateSealer, digest, request_digest
from gateway.core.tokens import MAX_TOKEN_CHARS, Sealer
from gateway.errors import ProtocolError
from gateway.wire.jsonrpc import JsonObject

NOW_S = 1_000_000.0
OLD, NEW, FOREIGN = (Fernet(Fernet.generate_key()) for _ in range(3))
CALL: JsonObject = {"name": "book", "arguments": {"seat": "4a", "meal": {"kind": "fish", "salt": False}}}


def _sealer(*keys: Fernet, now_s: float = NOW_S) -> RequestStateSealer:
    return RequestStateSealer(Sealer(MultiFernet(keys)), lambda: now_s)


def _state(request: str = "r", inner: str | None = None) -> RequestState:
    return RequestState("suspended", "docs", digest("alice"), request, int(NOW_S) + 600, "handle", "owner", inner)


def _open(sealer: RequestStateSealer, token: str, request: str = "r") -> RequestState:
    return sealer.open(token, upstream="docs", principal_id="alice", request=request)


# --- keys ---


def test_the_newest_key_seals() -> None:
    token = _sealer(NEW, OLD).seal(_state())
    assert _open(_sealer(NEW), token) == _state()
    with pytest.raises(ProtocolError):
        _open(_sealer(OLD), token)


def test_every_key_opens() -> None:
    token = _sealer(OLD).seal(_state())
    assert _open(_sealer(NEW, OLD), token) == _state()


def test_a_retired_key_opens_nothing() -> None:
    token = _sealer(OLD).seal(_state())
    with pytest.raises(ProtocolError) as caught:
        _open(_sealer(NEW), token)
    assert caught.value.reason == "not a token of ours"


# --- time ---


def test_it_is_good_until_it_expires() -> None:
    token = _sealer(NEW).seal(_state())
    assert _open(_sealer(NEW, now_s=NOW_S + 599.9), token)
    with pytest.raises(ProtocolError) as caught:
        _open(_sealer(NEW, now_s=NOW_S + 600), token)
    assert caught.value.reason == "expired"


# --- what it is bound to ---


@pytest.mark.parametrize(
    ("binding", "other", "reason"),
    [
        ("upstream", "git", "another upstream"),
        ("principal_id", "mallory", "another principal"),
        ("principal_id", "", "another principal"),
        ("request", "s", "another request"),
    ],
)
def test_it_is_bound_to(binding: str, other: str, reason: str) -> None:
    token = _sealer(NEW).seal(_state())
    bindings = {"upstream": "docs", "principal_id": "alice", "request": "r", binding: other}
    with pytest.raises(ProtocolError) as caught:
        _sealer(NEW).open(token, **bindings)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", CALL),
        ("tools/call", {**CALL, "name": "cancel"}),
        ("tools/call", {"name": "book"}),
        ("tools/call", {"name": "book", "arguments": {}}),
        ("tools/call", {"name": "book", "arguments": {"seat": "4b", "meal": {"kind": "fish", "salt": False}}}),
        ("tools/call", {"name": "book", "arguments": {"seat": "4a", "meal": {"kind": "fish", "salt": 0}}}),
        ("tools/call", {"name": "book", "arguments": {"seat": "4a", "meal": {"kind": "fish", "salt": None}}}),
        ("tools/call", {"name": "book", "arguments": {"seat": "4a", "meal": {"kind": "fish"}}}),
        ("tools/call", {**CALL, "extra": 1}),
    ],
)
def test_another_request(method: str, params: JsonObject) -> None:
    assert request_digest(method, params) != request_digest("tools/call", CALL)


def test_the_order_of_members_makes_no_other_request() -> None:
    reordered = {"arguments": {"meal": {"salt": False, "kind": "fish"}, "seat": "4a"}, "name": "book"}
    assert request_digest("tools/call", reordered) == request_digest("tools/call", CALL)


def test_the_order_of_a_list_does() -> None:
    one, other = ({"name": "t", "arguments": {"x": order}} for order in ([1, 2], [2, 1]))
    assert request_digest("tools/call", one) != request_digest("tools/call", other)


def test_what_belongs_to_the_round_makes_no_other_request() -> None:
    retry = {**CALL, "_meta": {"progressToken": 2}, "inputResponses": {"a": {}}, "requestState": "t"}
    assert request_digest("tools/call", retry) == request_digest("tools/call", CALL)


@pytest.mark.parametrize("odd", [2**70, "\ud800", -(2**64), 1.5, "\u00e9"])
def test_values_that_few_parsers_can_write(odd: object) -> None:
    one, same, other = (
        {"name": "t", "arguments": {"x": odd, "y": 1}},
        {"arguments": {"y": 1, "x": odd}, "name": "t"},
        {"name": "t", "arguments": {"x": odd, "y": 2}},
    )
    assert request_digest("tools/call", one) == request_digest("tools/call", same)
    assert request_digest("tools/call", one) != request_digest("tools/call", other)


# --- a modern upstream's own state inside ---


@pytest.mark.parametrize("inner", [None, "", "opaque", "\u00e9\U0001f600", "\ud800", "x" * 300_000])
def test_an_upstreams_state_comes_back_as_it_was(inner: str | None) -> None:
    assert _open(_sealer(NEW), _sealer(NEW).seal(_state(inner=inner))).inner == inner


def test_a_state_too_long_to_come_back_is_not_given_out() -> None:
    with pytest.raises(ValueError, match="too long"):
        _sealer(NEW).seal(_state(inner="x" * MAX_TOKEN_CHARS))
