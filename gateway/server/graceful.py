"""uvicorn, told apart: first what is open is let come to its end, then the port is closed."""

import contextlib
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

import uvicorn


class Departure:
    """What is known of a shutdown while it goes on.

    Args:
        in_flight: counts the requests that are being served.
    """

    def __init__(self, in_flight: Callable[[], int]) -> None:
        self.in_flight = in_flight
        self.is_urgent = False


Drain: TypeAlias = Callable[[Departure], Awaitable[None]]
"""Serves on, as long as there is a reason to, before the port is closed."""


async def _at_once(_departure: Departure) -> None:
    """Nothing is to be waited for."""


class GracefulServer(uvicorn.Server):
    """A uvicorn server that goes on accepting connections until it has been drained.

    Args:
        config: uvicorn's; `timeout_graceful_shutdown` is for draining and for what is still open then, together.
        drain: what is to happen before the port is closed.
    """

    def __init__(self, config: uvicorn.Config, drain: Drain = _at_once) -> None:
        super().__init__(config)
        self._drain = drain
        self._departure = Departure(lambda: len(self.server_state.tasks))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down within uvicorn's graceful timeout."""
        began_s = time.monotonic()
        await self._drain(self._departure)
        patience_s = self.config.timeout_graceful_shutdown or 0
        # uvicorn's annotation is narrower than what it does with it
        self.config.timeout_graceful_shutdown = max(0, patience_s - (time.monotonic() - began_s))  # type: ignore[assignment]
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: object) -> None:
        """Begin to shut down. Whoever is at the keyboard, or signals twice, does not want to wait for users."""
        self._departure.is_urgent |= self.should_exit or sig == signal.SIGINT
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process: of several servers in it, each would take them from the others."""
        yield
