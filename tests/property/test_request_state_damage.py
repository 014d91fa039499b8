"""A request state is accepted exactly as it was issued, or not at all; and the client never learns why not."""

import base64
import string
from dataclasses import replace
from typing import Final

import pytest
from cryptography.fernet import Fernet, MultiFernet
from hypothesis import assume, given
from hypothesis import strategies as st

from gateway.core.request_state import RequestState, RequestStateSealer, digest, request_digest
from gateway.core.tokens import Sealer
from gateway.errors import ProtocolError, to_reply
from gateway.wire.jsonrpc import encode

KEY: Final = Fernet(base64.urlsafe_b64encode(bytes(range(32))))
OTHER_KEY: Final = Fernet(base64.urlsafe_b64encode(bytes(range(1, 33))))
NOW_S: Final = 1_000_000.0
REQUEST: Final = request_digest("tools/call", {"name": "book", "arguments": {"seat": 1}})
ALPHABET: Final = string.ascii_letters + string.digits + "-_"

FROZEN: Final = {"code": -32602, "message": "Invalid or expired request state"}

tokens = st.integers(0, 40).map(lambda length: _seal("h" * length))
"""Of every length modulo 3, so with and without unused bits in the last character."""


def _sealer(*keys: Fernet, now_s: float = NOW_S) -> RequestStateSealer:
    return RequestStateSealer(Sealer(MultiFernet(keys or (KEY,))), lambda: now_s)


def _state(handle: str = "handle") -> RequestState:
    return RequestState("suspended", "docs", digest("alice"), REQUEST, int(NOW_S) + 600, handle, "owner")


def _seal(handle: str) -> str:
    return _sealer().seal(_state(handle))


def _open(token: str, sealer: RequestStateSealer | None = None) -> RequestState:
    return (sealer or _sealer()).open(token, upstream="docs", principal_id="alice", request=REQUEST)


def assert_refused(token: str, sealer: RequestStateSealer | None = None) -> None:
    """The one frozen message, with nothing in it that depends on what was wrong."""
    with pytest.raises(ProtocolError) as caught:
        _open(token, sealer)
    reply = to_reply(caught.value)
    assert (reply.status, reply.error, reply.headers) == (400, FROZEN, ())
    assert caught.value.reason


@given(st.text(ALPHABET, max_size=60))
def test_what_was_sealed_is_what_is_opened(handle: str) -> None:
    assert _open(_seal(handle)) == _state(handle)


@given(tokens, st.data())
def test_one_changed_bit(token: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(token) - 1))
    bit = data.draw(st.integers(0, 6))
    damaged = token[:position] + chr(ord(token[position]) ^ (1 << bit)) + token[position + 1 :]
    assert_refused(damaged)


@given(tokens, st.data())
def test_one_changed_bit_of_what_the_base64_stands_for(token: str, data: st.DataObject) -> None:
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    position = data.draw(st.integers(0, len(raw) - 1))
    raw[position] ^= 1 << data.draw(st.integers(0, 7))
    assert_refused(base64.urlsafe_b64encode(raw).decode().rstrip("="))


@given(tokens, st.sampled_from(ALPHABET))
def test_another_last_character_even_if_only_its_unused_bits_differ(token: str, last: str) -> None:
    assume(last != token[-1])
    assert_refused(token[:-1] + last)


@given(tokens, st.data())
def test_a_part_of_it(token: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(token)))
    end = data.draw(st.integers(start, len(token)))
    assume((start, end) != (0, len(token)))
    assert_refused(token[start:end])


@given(tokens, st.sampled_from(["", "=", "==", "==="]), st.text(min_size=1, max_size=20))
def test_text_appended_with_or_without_padding_before_it(token: str, padding: str, more: str) -> None:
    assert_refused(token + padding + more)


@given(tokens, st.sampled_from(["=", "==", "===", "\n", " ", "\t", "%3D"]))
def test_its_own_padding_is_no_part_of_it(token: str, padding: str) -> None:
    assert_refused(token + padding)


@given(tokens, st.text(min_size=1, max_size=5), st.data())
def test_text_put_before_it_or_into_it(token: str, more: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(token) - 1))
    assert_refused(token[:position] + more + token[position:])


@given(tokens, st.data())
def test_its_halves_swapped(token: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(1, len(token) - 1))
    assert_refused(token[position:] + token[:position])


@given(tokens, tokens, st.data())
def test_the_first_half_of_one_and_the_second_of_another(one: str, other: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(1, len(one) - 1))
    spliced = one[:position] + other[position:]
    assume(spliced not in (one, other))
    assert_refused(spliced)


@given(tokens)
def test_the_other_base64_alphabet(token: str) -> None:
    standard = token.replace("-", "+").replace("_", "/")
    assume(standard != token)
    assert_refused(standard)


@given(tokens)
def test_another_case(token: str) -> None:
    assert_refused(token.swapcase())


@given(st.text(max_size=200))
def test_any_other_text(text: str) -> None:
    assert_refused(text)


@pytest.mark.parametrize("filler", ["A", "=", "gAAAAA", "\u00e9", "\ud800", "\x00"])
def test_a_hundred_thousand_characters(filler: str) -> None:
    assert_refused(filler * (100_000 // len(filler)))


def test_more_than_any_token_can_have() -> None:
    assert_refused("A" * 2_000_000)


@given(tokens)
def test_a_token_of_another_key(token: str) -> None:
    assert_refused(token, _sealer(OTHER_KEY))


@given(tokens, st.integers(600, 10**9))
def test_an_expired_one(token: str, later_s: int) -> None:
    assert_refused(token, _sealer(now_s=NOW_S + later_s))


@given(st.binary(max_size=50))
def test_other_things_sealed_with_the_same_key(payload: bytes) -> None:
    assert_refused(KEY.encrypt(payload).decode().rstrip("="))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(json_values, st.sampled_from([{}, {"v": 1}, {"v": 2}, {"v": True}]))
def test_other_json_sealed_with_the_same_key(value: object, version: dict[str, object]) -> None:
    payload = {**value, **version} if isinstance(value, dict) else value
    assert_refused(KEY.encrypt(encode(payload)).decode().rstrip("="))


def test_the_frozen_message_is_the_same_for_a_wrong_binding() -> None:
    token = _seal("h")
    bindings = {"upstream": "docs", "principal_id": "alice", "request": REQUEST}
    for name, other in (("upstream", "git"), ("principal_id", "bob"), ("request", request_digest("tools/call", {}))):
        with pytest.raises(ProtocolError) as caught:
            _sealer().open(token, **{**bindings, name: other})
        assert to_reply(caught.value).error == FROZEN


def test_a_state_says_nothing_of_itself() -> None:
    token = _sealer().seal(replace(_state("visible-handle"), inner="visible-inner"))
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    for secret in (b"visible-handle", b"visible-inner", b"docs", b"suspended", REQUEST.encode()):
        assert secret not in raw
    assert token != _sealer().seal(replace(_state("visible-handle"), inner="visible-inner"))
