"""uvicorn, told apart: first what is open is let come to its end, then the port is closed."""

import asyncio
import contextlib
import math
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, Final, TypeAlias

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LOOK_S: Final = 0.05
"""How often is looked whether a signal has come, or something has ended; signals come outside of the event loop."""

_SAME_S: Final = 0.5
"""Ctrl-C reaches a process from the terminal, and from whatever started it as well: that is one signal."""

_LEAST_S: Final = 0.05
"""With no time at all, uvicorn would complain of being late although nothing is open."""

_LAST_WORDS_S: Final = 0.5


class Departure:
    """What is known of a shutdown while it goes on.

    Args:
        in_flight: counts the requests that are being served.

    Attributes:
        is_hurried: somebody is at the keyboard, who does not want to wait for users.
        is_over: there was a second signal: nothing is waited for any more.
    """

    def __init__(self, in_flight: Callable[[], int]) -> None:
        self.in_flight = in_flight
        self.is_hurried = False
        self.is_over = False

    async def until_over(self, work: Coroutine[Any, Any, None], patience_s: float) -> None:
        """Do some work to its end; give it up if it still goes on so long after a second signal."""
        task = asyncio.ensure_future(work)
        while not (task.done() or self.is_over):
            await asyncio.wait((task,), timeout=LOOK_S)
        await asyncio.wait((task,), timeout=patience_s)
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait((task,))
        return None


Drain: TypeAlias = Callable[[Departure], Awaitable[None]]
"""Serves on, as long as there is a reason to, before the port is closed."""


async def _at_once(_departure: Departure) -> None:
    """Nothing is to be waited for."""


class GracefulServer(uvicorn.Server):
    """A uvicorn server that goes on accepting connections until it has been drained.

    Args:
        config: uvicorn's; `timeout_graceful_shutdown` is for draining and for what is still open then, together.
        drain: what is to happen before the port is closed.
        now_s: a monotonic clock.
    """

    def __init__(
        self, config: uvicorn.Config, drain: Drain = _at_once, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(config)
        self._drain = drain
        self._now_s = now_s
        self._signalled_at_s = -math.inf
        self._departure = Departure(lambda: len(self.server_state.tasks))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down within uvicorn's graceful timeout; after a second signal, at once."""
        began_s = self._now_s()
        self._keep_no_connection()
        cutting = asyncio.ensure_future(self._cut_when_over())
        try:
            await self._drain(self._departure)
            patience_s = self.config.timeout_graceful_shutdown or 0
            left_s = max(_LEAST_S, patience_s - (self._now_s() - began_s))
            # uvicorn's annotation is narrower than what it does with it
            self.config.timeout_graceful_shutdown = left_s  # type: ignore[assignment]
            await super().shutdown(sockets)
        finally:
            cutting.cancel()

    def handle_exit(self, sig: int, frame: object) -> None:
        """Begin to shut down. Whoever is at the keyboard does not wait for users; who signals twice, for nobody."""
        now_s = self._now_s()
        if not self.should_exit:
            self._signalled_at_s = now_s
        elif now_s > self._signalled_at_s + _SAME_S:
            self._departure.is_over = True
        self._departure.is_hurried |= sig == signal.SIGINT
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process: of several servers in it, each would take them from the others."""
        yield

    def _keep_no_connection(self) -> None:
        """Have the replies that are due now say that their connections end with them."""
        for connection in self.server_state.connections:
            if isinstance(connection, HttpToolsProtocol) and connection.cycle is not None:
                connection.cycle.keep_alive = False

    async def _cut_when_over(self) -> None:
        """After a second signal, end what is being served: with a word to each client that takes it."""
        while not self._departure.is_over:  # noqa: ASYNC110 -- signals come outside of the event loop
            await asyncio.sleep(LOOK_S)
        told: set[asyncio.Task[None]] = set()
        until_s = self._now_s() + _LAST_WORDS_S
        while True:
            for task in self.server_state.tasks - told:
                task.cancel()
                told.add(task)
            if self._now_s() > until_s:
                for connection in self.server_state.connections:
                    connection.transport.abort()
            await asyncio.sleep(LOOK_S)
