"""gateway.core.affinity: which of its sessions a client means."""

import json

import pytest

from gateway.core.affinity import LONGEST, affinity_of, affinity_to
from gateway.core.front_door import Headers
from gateway.core.principal import ANONYMOUS, Caller
from gateway.core.relay import caller_members, to_caller
from gateway.errors import ProtocolError

NAME = b"x-conversation"


def found(*values: bytes) -> object:
    return affinity_of(Headers([(NAME, value) for value in values]), [NAME, b"x-other"])


def test_the_value_is_taken_without_space_around_it() -> None:
    assert found(b" one two ") == {"x-conversation": "one two"}
    assert found(b"a" * LONGEST) == {"x-conversation": "a" * LONGEST}


@pytest.mark.parametrize("values", [(), (b"",), (b"  ",)])
def test_a_request_without_a_value_means_the_session_without_a_name(values: tuple[bytes, ...]) -> None:
    assert found(*values) is None


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ((b"one", b"one"), "was sent more than once"),
        ((b"a" * (LONGEST + 1),), "at most 256 printable"),
        ((b"caf\xc3\xa9",), "printable ASCII"),
        ((b"a\x7fb",), "printable ASCII"),
    ],
)
def test_what_cannot_name_a_session_is_refused_and_never_shown(values: tuple[bytes, ...], fault: str) -> None:
    with pytest.raises(ProtocolError, match=f"x-conversation .*{fault}") as caught:
        found(*values)
    assert (caught.value.status, caught.value.data) == (400, None)
    assert "caf" not in caught.value.message


def test_a_relayed_retry_means_the_session_that_it_meant_where_it_landed() -> None:
    caller = Caller(ANONYMOUS, "Bearer x", {"x-one": "1"})
    assert to_caller(json.loads(json.dumps(caller_members(caller)))) == caller


def test_each_upstream_looks_at_its_own_header() -> None:
    caller = Caller(ANONYMOUS, affinity={"x-one": "1"})
    assert affinity_to("x-one", caller) == "1"
    assert affinity_to("x-two", caller) == affinity_to(None, caller) == affinity_to("x-one", Caller(ANONYMOUS)) == ""
