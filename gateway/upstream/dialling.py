"""Opens connections to one origin: name, address, TCP, TLS; of a name with several addresses, the one that answers.

RFC 8305: a second address is tried while the first is still silent.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, TypeAlias

from aiohappyeyeballs import AddrInfoType, start_connection
from yarl import URL

from gateway.upstream import faults
from gateway.upstream.connection import Connection

ADDRESSES_S: Final = 30.0
"""How long the addresses of a name are used again."""

_SILENCE_S: Final = 0.25  # RFC 8305, section 5, "Connection Attempt Delay"

Addresses: TypeAlias = Sequence[AddrInfoType]


class Dialler:
    """Opens connections to one origin.

    Args:
        upstream: the configured name of the server.
        origin: scheme, host and port.
        timeout_s: for name resolution, TCP and TLS together.
    """

    def __init__(self, upstream: str, origin: URL, timeout_s: float) -> None:
        self._upstream = upstream
        self._host = (origin.raw_host or "").rstrip(".")
        self._port = origin.port
        self._context = _tls() if origin.scheme == "https" else None
        self._timeout_s = timeout_s
        self._addresses: Addresses | None = None
        self._used_until_s = 0.0
        self._flight: asyncio.Task[Addresses] | None = None

    async def open(self, factory: Callable[[], Connection]) -> Connection:
        """Open a connection.

        Raises:
            UpstreamError: `unreachable`.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._open(factory)
        except UnicodeError as error:  # a part of the name is too long to ask for
            raise faults.unresolved(self._upstream) from error
        except OSError as error:
            self._addresses = None  # perhaps the server has moved
            raise faults.not_connected(self._upstream, error) from error

    async def _open(self, factory: Callable[[], Connection]) -> Connection:
        loop = asyncio.get_running_loop()
        addresses = await self._resolve(loop)
        connected: socket.socket | None = await start_connection(
            addresses, happy_eyeballs_delay=_SILENCE_S, interleave=1, loop=loop
        )
        try:
            assert connected is not None  # noqa: S101 -- for the type alone
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            name = self._host if self._context is not None else None
            _, connection = await loop.create_connection(
                factory, sock=connected, ssl=self._context, server_hostname=name
            )
            connected = None
            return connection
        finally:
            if connected is not None:  # the loop did not take it over, or gave it up
                connected.close()

    async def _resolve(self, loop: asyncio.AbstractEventLoop) -> Addresses:
        """The addresses of the host; whoever asks at the same time shares the question."""
        if self._addresses is not None and loop.time() < self._used_until_s:
            return self._addresses
        if self._flight is None:
            self._flight = loop.create_task(self._look_up(loop))
            self._flight.add_done_callback(self._land)
        return await asyncio.shield(self._flight)

    async def _look_up(self, loop: asyncio.AbstractEventLoop) -> Addresses:
        found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        self._used_until_s = loop.time() + ADDRESSES_S
        self._addresses = found
        return found

    def _land(self, flight: asyncio.Task[Addresses]) -> None:
        self._flight = None
        if not flight.cancelled():
            flight.exception()  # looked at, in case that every waiter has left


@cache
def _tls() -> ssl.SSLContext:
    """What the system trusts; read once, since that takes a while."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
