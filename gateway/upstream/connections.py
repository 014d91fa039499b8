"""The connections to one origin: those that are free are used again, while the server can be expected to keep them.

Rule: a connection that has been free for `KEEP_ALIVE_S` is not used any more. A POST that meets a connection in the act
of closing has an unknown outcome, and nobody may send it again; so we must be the first to close.
"""

import asyncio
from typing import Final

from yarl import URL

from gateway.upstream import faults
from gateway.upstream.connection import Connection
from gateway.upstream.dialling import Dialler

KEEP_ALIVE_S: Final = 4.0
"""Less than the 5 seconds after which uvicorn and Node close a connection."""

END_GRACE_S: Final = 1.0
"""How long an answer of which nothing more is wanted may take to its end."""

_SWEEP_S: Final = 1.0


class Connections:
    """The connections to one origin, as many as are needed.

    Args:
        upstream: the configured name of the server.
        origin: scheme, host and port.
        connect_timeout_s: for name resolution, TCP and TLS together.
    """

    def __init__(self, upstream: str, origin: URL, connect_timeout_s: float) -> None:
        self._upstream = upstream
        self._dialler = Dialler(upstream, origin, connect_timeout_s)
        self._all: set[Connection] = set()
        self._free: list[Connection] = []
        self._ending: set[Connection] = set()
        self._sweeper: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """How many are free."""
        return sum(connection.is_free for connection in self._free)

    def take(self) -> Connection | None:
        """One that is free, the one that was used last; None if there is none."""
        while self._free:
            connection = self._free.pop()
            if not connection.is_free:
                continue
            if asyncio.get_running_loop().time() - connection.since_s < KEEP_ALIVE_S:
                return connection
            connection.abort()
        return None

    async def open(self) -> Connection:
        """A new one.

        Raises:
            UpstreamError: `unreachable`, or `nonsense` if what is there is no server of HTTP.
        """
        connection = await self._dialler.open(lambda: Connection(self._upstream, self))
        self._all.add(connection)
        if connection.has_babbled:
            raise faults.unreadable(self._upstream)
        if not connection.is_free:
            self.forget(connection)
            raise faults.unreachable(self._upstream, "the connection was closed before the request was sent")
        return connection

    async def close(self) -> None:
        """Close them all."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for connection in list(self._all):
            connection.abort()
        self._free.clear()
        await asyncio.sleep(0)  # the loop has the sockets closed

    # --- what connections say ---

    def keep(self, connection: Connection) -> None:
        """It is free for another request."""
        self._ending.discard(connection)
        connection.since_s = asyncio.get_running_loop().time()
        self._free.append(connection)
        self._sweep_soon()

    def let_end(self, connection: Connection) -> None:
        """The rest of its answer is read by nobody; close it if that is long in coming."""
        connection.since_s = asyncio.get_running_loop().time()
        self._ending.add(connection)
        self._sweep_soon()

    def forget(self, connection: Connection) -> None:
        """It is closed."""
        self._all.discard(connection)
        self._ending.discard(connection)

    # --- what takes too long ---

    def _sweep_soon(self) -> None:
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(_SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        """Close what was free, or has been ending, for too long."""
        self._sweeper = None
        now_s = asyncio.get_running_loop().time()
        late = [connection for connection in self._ending if now_s - connection.since_s >= END_GRACE_S]
        late += [connection for connection in self._free if now_s - connection.since_s >= KEEP_ALIVE_S]
        for connection in late:
            connection.abort()
        self._free = [connection for connection in self._free if connection.is_free]
        if self._free or self._ending:
            self._sweep_soon()
