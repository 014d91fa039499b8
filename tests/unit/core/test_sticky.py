"""gateway.core.sticky: what replicas tell each other of a session."""

import pytest

from gateway.core.session import SessionKey, negotiate
from gateway.core.sticky import MOST_BYTES, SharingTimes, decode_session, encode_session, name_of

KEY = SessionKey("alice", "token", "{}", "info", "one")
RESULT = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "u", "version": "1"}}


def test_a_name_tells_apart_whatever_a_session_is_keyed_by() -> None:
    keys = [KEY, *(KEY._replace(**{field: "other"}) for field in KEY._fields)]
    names = {name_of("https://a.example/mcp", key) for key in keys}
    names.add(name_of("https://b.example/mcp", KEY))
    assert len(names) == len(keys) + 1


def test_a_name_does_not_confuse_where_one_member_ends_and_the_next_begins() -> None:
    assert name_of("s", SessionKey('a", "b', "", "")) != name_of("s", SessionKey("a", "b", ""))


def test_a_session_is_read_as_it_was_written() -> None:
    session_id, negotiated = decode_session("n", encode_session("n", "sess-1", negotiate(RESULT)))
    assert (session_id, negotiated) == ("sess-1", negotiate(RESULT))


@pytest.mark.parametrize(
    "data", [b"", b"nonsense", b"[]", b'{"name": "n"}', b'{"name": "n", "id": 1}', b'{"name": "n", "id": "s"}']
)
def test_what_is_no_session_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode_session("n", data)


def test_the_session_of_another_name_is_refused() -> None:
    with pytest.raises(ValueError, match="not this session"):
        decode_session("other", encode_session("n", "sess-1", negotiate(RESULT)))


def test_a_server_that_says_too_much_of_itself_is_not_shared() -> None:
    with pytest.raises(ValueError, match="too large"):
        encode_session("n", "sess-1", negotiate({**RESULT, "instructions": "x" * MOST_BYTES}))


@pytest.mark.parametrize("idle_s", [0.5, 30.0, 300.0, 86_400.0])
def test_nobody_has_used_a_session_for_idle_when_its_entry_was_quiet_for_long_enough(idle_s: float) -> None:
    times = SharingTimes(idle_s, handshake_s=10.0)
    assert times.quiet_s >= idle_s + times.touch_s + 5.0  # a use may be as old as a touch, or a look at long calls
    assert times.keep_s - times.left_s == times.quiet_s
    assert times.left_s > times.quiet_s  # so that whoever is left to end it finds its entry
