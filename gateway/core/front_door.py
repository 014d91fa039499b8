"""The head of an HTTP request: what is refused before its body is read.

Rungs 1 to 4 of the ladder (`core.inbound` has the rest): method, Origin and Host, Content-Type, Accept, and a declared
length. These refusals are HTTP's own; their JSON-RPC code is -32600, and there is no id yet.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from gateway.errors import ProtocolError
from gateway.wire import codes
from gateway.wire import headers as wire

RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]
"""As ASGI has them: lower-case names."""

_ORIGIN: Final = b"origin"
_HOST: Final = b"host"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_DEFAULT_PORTS: Final = {"http://": ":80", "https://": ":443"}
_USUAL_ACCEPT: Final = frozenset(
    {
        b"application/json, text/event-stream",
        b"application/json,text/event-stream",
        b"text/event-stream, application/json",
    }
)
_LONGEST_LENGTH = 15  # digits; nobody may make int() work on more
_USUAL_NAMES: Final = (wire.CONTENT_TYPE_KEY, wire.PROTOCOL_VERSION_KEY, wire.METHOD_KEY, wire.NAME_KEY)
_EXPOSED: Final = "WWW-Authenticate, Retry-After, X-Request-Id, Traceparent"
_TOKEN: Final = frozenset(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


@dataclass(frozen=True, slots=True)
class FrontDoor:
    """Who may knock, and with how much.

    Args:
        allowed_origins: `scheme://host[:port]` in any case, or `null`; loopback origins are always allowed.
        allowed_hosts: names with or without a port, beyond loopback; None: Host is not checked.
        max_body_bytes: the largest body.
    """

    allowed_origins: frozenset[str]
    allowed_hosts: frozenset[str] | None
    max_body_bytes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed_origins", frozenset(map(_canonical_origin, self.allowed_origins)))
        if self.allowed_hosts is not None:
            object.__setattr__(self, "allowed_hosts", frozenset(host.lower() for host in self.allowed_hosts))


class Headers:
    """The headers of one request, looked up by lower-case name."""

    __slots__ = ("_repeated", "_values")

    def __init__(self, raw: RawHeaders) -> None:
        self._values = dict(raw)
        self._repeated: frozenset[bytes] = frozenset()
        if len(self._values) != len(raw):
            self._join(raw)

    def _join(self, raw: RawHeaders) -> None:
        """One value per name, as HTTP combines lists; who must not be repeated is asked by `is_repeated`."""
        values: dict[bytes, list[bytes]] = {}
        for name, value in raw:
            values.setdefault(name, []).append(value.strip(b" \t"))
        self._values = {name: b", ".join(several) for name, several in values.items()}
        self._repeated = frozenset(name for name, several in values.items() if len(several) > 1)

    def get(self, name: bytes) -> bytes | None:
        """The value without whitespace around it; of a repeated header, all values joined with commas."""
        value = self._values.get(name)
        return None if value is None else value.strip(b" \t")

    def is_repeated(self, name: bytes) -> bool:
        """Whether a header came more than once."""
        return name in self._repeated

    def with_prefix(self, prefix: bytes) -> Iterable[tuple[bytes, bytes]]:
        """The names under a prefix, without it, and their values."""
        for name, value in self._values.items():
            if name.startswith(prefix):
                yield name[len(prefix) :], value.strip(b" \t")


def check_head(http_method: str, headers: Headers, door: FrontDoor) -> None:
    """Rungs 1 to 4, and rung 5 as far as `Content-Length` tells.

    Raises:
        ProtocolError: 405, 403, 415, 406 or 413, the first that applies.
    """
    if http_method != "POST":  # rung 1: no GET stream, no sessions to DELETE ("Earlier Streamable HTTP Revisions")
        raise _not_post()
    _check_origin(headers, door)  # rung 2: against DNS rebinding ("Security & Endpoint")
    _check_host(headers, door)
    content_type = headers.get(wire.CONTENT_TYPE_KEY)
    if content_type is None or not wire.is_json(content_type):  # rung 3: also keeps HTML forms out
        raise _refusal(415, "Content-Type must be application/json")
    _check_accept(headers.get(wire.ACCEPT_KEY))  # rung 4: the reply may be either ("Sending Messages")
    length = headers.get(b"content-length") or b""
    if length.isdigit() and (len(length) > _LONGEST_LENGTH or int(length) > door.max_body_bytes):
        raise body_too_large(door)


def body_too_large(door: FrontDoor) -> ProtocolError:
    """Rung 5: the refusal of a body over the limit, declared or read."""
    return _refusal(413, f"The body is over {door.max_body_bytes} bytes, the limit set by server.max_body_bytes")


def preflight(headers: Headers, door: FrontDoor) -> tuple[tuple[str, str], ...]:
    """The response headers that answer a CORS preflight; it needs no credential and touches no upstream.

    Raises:
        ProtocolError: 403 when Origin or Host is not allowed, 405 when it is no preflight at all.
    """
    if headers.get(_ORIGIN) is None:
        raise _not_post()
    _check_origin(headers, door)
    _check_host(headers, door)
    # Names are echoed: `Mcp-Param-*` cannot be listed ahead, and "*" would not cover Authorization.
    asked = headers.get(b"access-control-request-headers") or b""
    names = [name for item in asked.split(b",") if (name := item.strip()) and _TOKEN.issuperset(name)]
    return (
        *cors_headers(headers, door),
        ("access-control-allow-methods", "POST"),
        ("access-control-allow-headers", b", ".join(names or _USUAL_NAMES).decode("ascii")),
        ("access-control-max-age", "600"),
    )


def cors_headers(headers: Headers, door: FrontDoor) -> tuple[tuple[str, str], ...]:
    """What a page of an allowed origin needs on every reply, errors and streams included; else nothing."""
    origin = headers.get(_ORIGIN)
    if origin is None or headers.is_repeated(_ORIGIN) or not _is_allowed_origin(origin, door):
        return ()
    return (
        ("access-control-allow-origin", origin.decode("latin-1")),
        ("access-control-expose-headers", _EXPOSED),
        ("vary", "Origin"),
    )


def _check_origin(headers: Headers, door: FrontDoor) -> None:
    origin = headers.get(_ORIGIN)
    if origin is not None and (headers.is_repeated(_ORIGIN) or not _is_allowed_origin(origin, door)):
        raise _refusal(403, "This Origin is not allowed: the operator can add it to server.allowed_origins")


def _is_allowed_origin(origin: bytes, door: FrontDoor) -> bool:
    text = origin.decode("latin-1").lower()
    if text in door.allowed_origins:
        return True
    scheme, _, authority = text.partition("://")
    return scheme in ("http", "https") and _host_name(authority) in _LOOPBACK


def _check_host(headers: Headers, door: FrontDoor) -> None:
    if door.allowed_hosts is None:
        return
    host = (headers.get(_HOST) or b"").decode("latin-1").lower()
    name = _host_name(host)
    if name not in _LOOPBACK and name not in door.allowed_hosts and host not in door.allowed_hosts:
        raise _refusal(403, "This Host is not allowed: the operator can add it to server.allowed_hosts")


def _host_name(authority: str) -> str:
    """The name in `name[:port]`; what is no port stays in the name, which then matches nothing."""
    name, colon, port = authority.rpartition(":")
    return name if colon and port.isascii() and port.isdigit() else authority


def _check_accept(accept: bytes | None) -> None:
    if accept in _USUAL_ACCEPT:
        return
    if accept is None or not (wire.accepts(accept, wire.JSON) and wire.accepts(accept, wire.EVENT_STREAM)):
        raise _refusal(406, f"Accept must list both: {wire.BOTH}")


def _not_post() -> ProtocolError:
    return _refusal(
        405, "Only POST is served: revision 2026-07-28 has no GET stream and no sessions", ("allow", "POST")
    )


def _refusal(status: int, message: str, *headers: tuple[str, str]) -> ProtocolError:
    return ProtocolError(codes.INVALID_REQUEST, message, status=status, headers=headers)


def _canonical_origin(origin: str) -> str:
    """As browsers send it: lower-case, no trailing slash, no default port."""
    origin = origin.lower().rstrip("/")
    for scheme, port in _DEFAULT_PORTS.items():
        if origin.startswith(scheme):
            return origin.removesuffix(port)
    return origin
