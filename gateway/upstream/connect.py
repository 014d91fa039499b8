"""Chooses the transport to one server: where it is, or how it is started, decides."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gateway.upstream.either_http import EitherHttp
from gateway.upstream.http import UpstreamHttp
from gateway.upstream.piped import QUIET_S, PipeTransport
from gateway.upstream.sse2024 import SsePipes
from gateway.upstream.stdio import Command, StdioPipes
from gateway.upstream.transport import Transport


@dataclass(frozen=True, slots=True)
class Place:
    """Where a server is.

    Args:
        target: its URL, or the command that starts it.
        transport: what it speaks over HTTP; `auto` to find out.
        headers: sent with every HTTP request.
        connect_timeout_s: for connecting, and for finding out what the server speaks.
        max_message_bytes: what one message may have.
        max_sessions: how many processes a command may have at once.
        idle_s: how long a process may have nothing to do.
    """

    target: str | Command
    transport: Literal["auto", "streamable-http", "sse"] = "auto"
    headers: Mapping[str, str] = field(default_factory=dict)
    connect_timeout_s: float = 10.0
    max_message_bytes: int = 64 * 2**20
    max_sessions: int = 64
    idle_s: float = 300.0

    @property
    def is_process(self) -> bool:
        """Whether it is started, not reached."""
        return isinstance(self.target, Command)


def connect(name: str, place: Place) -> Transport:
    """Make the transport; nothing is connected or started yet.

    Args:
        name: the upstream's configured name.
        place: where the server is.
    """
    if isinstance(place.target, Command):
        return _to_process(name, place, place.target)
    http = _to_url(name, place, place.target)
    if place.transport == "streamable-http":
        return http
    sse = PipeTransport(
        name,
        SsePipes(http, lambda url: _to_url(name, place, url), place.connect_timeout_s),
        max_message_bytes=place.max_message_bytes,
        may_be_modern=False,
        has_headers=http.has_headers,
        beneath=http,
    )
    return sse if place.transport == "sse" else EitherHttp(http, sse)


def _to_process(name: str, place: Place, command: Command) -> PipeTransport:
    return PipeTransport(
        name,
        StdioPipes(name, command, max_message_bytes=place.max_message_bytes),
        max_message_bytes=place.max_message_bytes,
        most=place.max_sessions,
        idle_s=place.idle_s,
        quiet_s=min(QUIET_S, place.connect_timeout_s / 2),
    )


def _to_url(name: str, place: Place, url: str) -> UpstreamHttp:
    return UpstreamHttp(
        name,
        url,
        headers=place.headers,
        connect_timeout_s=place.connect_timeout_s,
        max_message_bytes=place.max_message_bytes,
    )
