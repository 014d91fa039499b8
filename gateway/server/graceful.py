"""uvicorn, told apart: first the streams that never end by themselves, then the requests that will."""

import contextlib
import socket
from collections.abc import Callable, Iterator

import uvicorn


def _nothing() -> None:
    """Nothing would keep requests open."""


class GracefulServer(uvicorn.Server):
    """A uvicorn server that says when it begins to shut down, before it waits for open requests.

    Args:
        config: uvicorn's.
        on_shutdown: ends what would keep requests open.
    """

    def __init__(self, config: uvicorn.Config, on_shutdown: Callable[[], None] = _nothing) -> None:
        super().__init__(config)
        self._on_shutdown = on_shutdown

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Shut down within uvicorn's graceful timeout."""
        self._on_shutdown()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process: of several servers in it, each would take them from the others."""
        yield
