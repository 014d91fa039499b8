"""The ports of one process: all of them are bound before anything starts, and one signal ends all that is served."""

import asyncio
import contextlib
import errno
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.errors import ListenError
from gateway.server.graceful import GracefulServer

_BACKLOG: Final = 4096
_ABSENT: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
_REASONS: Final = {
    errno.EADDRINUSE: "already in use",
    errno.EACCES: "not for this user to listen on",
    errno.EADDRNOTAVAIL: "not an address of this machine",
}


@dataclass(frozen=True, slots=True)
class Bound:
    """A server, and the sockets that already listen for it."""

    server: GracefulServer
    sockets: list[socket.socket]

    @property
    def port(self) -> int:
        """The number of the port, also where any free one was asked for."""
        number: int = self.sockets[0].getsockname()[1]
        return number

    def close(self) -> None:
        """Listen no longer."""
        for opened in self.sockets:
            opened.close()


def bind(server: GracefulServer, key: str, remedy: str) -> Bound:
    """Listen where a server is configured to, on every address that the host name means.

    Args:
        server: it has the address.
        key: what the operator calls the address.
        remedy: what to do if it cannot be had.

    Raises:
        ListenError: in one line, which address it is and why it cannot be had.
    """
    host, port = server.config.host, server.config.port
    try:
        return Bound(server, _bind_all(host, port))
    except OSError as error:
        reason = _REASONS.get(error.errno or 0) or error.strerror or "not to be had"
        shown = f"[{host}]" if ":" in host else host
        raise ListenError(f"{key}: {shown}:{port} is {reason}; {remedy}") from error


def run(front: Bound, beside: Sequence[Bound] = ()) -> None:
    """Serve until SIGTERM or SIGINT; what is beside the front ends after it.

    Raises:
        KeyboardInterrupt: it was SIGINT.
    """
    with asyncio.Runner(loop_factory=front.server.config.get_loop_factory()) as runner:
        signals: list[int] = []
        runner.run(_serve(front, beside, signals))
    if signal.SIGINT in signals:
        raise KeyboardInterrupt


async def _serve(front: Bound, beside: Sequence[Bound], signals: list[int]) -> None:
    others = [asyncio.create_task(other.server.serve(other.sockets)) for other in beside]
    with _ended_by_signals(front.server, signals):
        await front.server.serve(front.sockets)
        for other in beside:
            other.server.should_exit = True
        await asyncio.gather(*others)


@contextlib.contextmanager
def _ended_by_signals(server: GracefulServer, received: list[int]) -> Iterator[None]:
    """Let signals end a server in order, and note them; then the process ends as it likes, its log written.

    Once one has come they are taken until the process has ended: another one in its last moment does not kill it.
    """

    def end(number: int, frame: object) -> None:
        received.append(number)
        server.handle_exit(number, None)

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        if not received:
            for number, handler in before.items():
                signal.signal(number, handler)


def _bind_all(host: str, port: int) -> list[socket.socket]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    failure: OSError | None = None
    try:
        for family, _type, _proto, _name, address in found:
            chosen = sockets[0].getsockname()[1] if sockets else port
            try:
                sockets.append(_listen(family, (address[0], chosen, *address[2:])))
            except OSError as error:
                # A host name may mean an address of a family that this machine does not have.
                if error.errno not in _ABSENT:
                    raise
                failure = error
        if not sockets:
            raise failure or OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
    except OSError:
        for opened in sockets:
            opened.close()
        raise
    return sockets


def _listen(family: int, address: tuple[object, ...]) -> socket.socket:
    # The protocol is named: asyncio turns Nagle's algorithm off only where it stands.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, address[0] != "::")
        opened.bind(address)
        opened.listen(_BACKLOG)
    except OSError:
        opened.close()
        raise
    opened.setblocking(False)
    return opened
