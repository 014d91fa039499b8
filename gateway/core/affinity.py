"""Which of its sessions a client means, where each value of a header has one (`sessions.affinity`).

The value is a name that the client chooses, and no secret: it picks among the sessions of one principal, never beyond.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from gateway.core.front_door import Headers
from gateway.core.principal import Caller
from gateway.errors import ProtocolError
from gateway.wire import codes

LONGEST: Final = 256
"""How long a value may be; longer ones would make sessions' keys a place to keep things."""

_VISIBLE: Final = frozenset(range(0x20, 0x7F))


def affinity_of(headers: Headers, names: Sequence[bytes]) -> Mapping[str, str] | None:
    """The values that a request has of the headers that choose sessions.

    Args:
        headers: of the request.
        names: the headers in question, in lower case.

    Returns:
        What was sent, by name in lower case; an empty value is none. None: nothing was sent.

    Raises:
        ProtocolError: 400; a header was sent twice, is too long, or is not text.
    """
    found = {name.decode("ascii"): value for name in names if (value := _value(headers, name))}
    return found or None


def affinity_to(header: str | None, caller: Caller) -> str:
    """The session that a caller means at an upstream that chooses by this header; "" for the one without a name."""
    return caller.affinity.get(header, "") if header is not None and caller.affinity is not None else ""


def _value(headers: Headers, name: bytes) -> str:
    value = headers.get(name)
    if value is None:
        return ""
    if headers.is_repeated(name):
        raise _refused(name, "was sent more than once")
    value = value.strip()
    if len(value) > LONGEST or not _VISIBLE.issuperset(value):
        raise _refused(name, f"must be at most {LONGEST} printable ASCII characters: it names a session")
    return value.decode("ascii")


def _refused(name: bytes, fault: str) -> ProtocolError:
    return ProtocolError(codes.INVALID_REQUEST, f"The header {name.decode('ascii')} {fault}")
