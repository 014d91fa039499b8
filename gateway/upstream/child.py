"""A process under a supervisor: what it says, what it is told, and how it ends.

The supervisor (`supervisor.py`) is the gateway's child and the process is the supervisor's, so that the end of the
gateway is the end of the process. A socket between gateway and supervisor tells how the process fares, and ends it by
being closed.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Self, cast

from gateway.wire.jsonrpc import JsonObject, encode

CLOSE_S: Final = 2.0
"""How long a process may take to end after its stdin was closed."""

TERM_S: Final = 2.0
"""How long it and what it started may take after SIGTERM; then comes SIGKILL."""

_KILL_S: Final = 2.0
_DRAIN_S: Final = 0.5
"""How long after the end of a process its last words may arrive, when something that it started holds its stdout."""

_SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")
_STDIN, _STDOUT, _STDERR = 0, 1, 2

Output = Callable[[int, bytes], None]
"""Takes what a process wrote: the descriptor, and the bytes."""


class CannotStart(Exception):  # noqa: N818 -- what the operating system said
    """A process could not be started; the text says why."""


class Child(asyncio.SubprocessProtocol):
    """See the module; made by `start`.

    Args:
        on_output: told of what it writes.
        on_end: told once when it has ended, or has closed its stdout, and everything that it wrote was told.

    Attributes:
        pid: its process id, None if it could not be started.
        exit_code: what it ended with, below zero the signal; None while it runs, or if nobody could tell.
    """

    def __init__(self, on_output: Output, on_end: Callable[["Child"], None]) -> None:
        self.pid: int | None = None
        self.exit_code: int | None = None
        self._on_output = on_output
        self._on_end: Callable[[Child], None] | None = on_end
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[str] = self._loop.create_future()
        self._can_take = asyncio.Event()
        self._can_take.set()
        self._gone = asyncio.Event()
        self._is_told_all = False
        self._is_drained = False
        self._process: asyncio.SubprocessTransport | None = None
        self._control: asyncio.BaseTransport | None = None
        self._stopping: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, label: str, order: JsonObject, on_output: Output, on_end: Callable[["Child"], None]) -> Self:
        """Start a process.

        Args:
            label: what the list of processes shows of the supervisor.
            order: program, arguments, environment and cwd.
            on_output: see the class.
            on_end: see the class.

        Raises:
            CannotStart: it does not run, and nothing of it is left.
        """
        child = cls(on_output, on_end)
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                await child._run_supervisor(label, theirs.fileno())
            except OSError as error:
                ours.close()
                raise CannotStart(error.strerror or "no process to be had") from error
        control, _ = await child._loop.create_unix_connection(lambda: _Control(child), sock=ours)
        child._control = control
        control.write(encode({**order, "grace_s": TERM_S}) + b"\n")
        if fault := await child._started:
            child._on_end = None
            await child.stop()
            raise CannotStart(fault)
        return child

    @property
    def fate(self) -> str:
        """What became of it, to follow its name in a sentence."""
        if self.exit_code is None:
            return "closed its output"
        if self.exit_code < 0:
            return f"was killed by signal {-self.exit_code} ({_signal_name(-self.exit_code)})"
        return f"ended with exit status {self.exit_code}"

    async def write(self, data: bytes) -> bool:
        """Write to its stdin, as soon as it takes something; False if it has ended, and nothing was written."""
        while not self._can_take.is_set():
            await self._can_take.wait()
        stdin = None if self._process is None else self._process.get_pipe_transport(_STDIN)
        if self._on_end is None or stdin is None or stdin.is_closing():
            return False
        cast(asyncio.WriteTransport, stdin).write(data)
        return True

    def pause_reading(self) -> None:
        """Read nothing of what it writes, for now."""
        for stream in self._outputs():
            stream.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        for stream in self._outputs():
            stream.resume_reading()

    def _outputs(self) -> Iterator[asyncio.ReadTransport]:
        streams = (None if self._process is None else self._process.get_pipe_transport(fd) for fd in (_STDOUT, _STDERR))
        for stream in streams:
            if stream is not None and not stream.is_closing():
                yield cast(asyncio.ReadTransport, stream)

    async def stop(self) -> None:
        """End it and all that it started; returns when that is so, within five seconds. May be called twice."""
        if self._stopping is None:
            self._stopping = self._loop.create_task(self._stop())
        await asyncio.shield(self._stopping)

    # --- the supervisor ---

    async def _run_supervisor(self, label: str, control: int) -> None:
        # Only what the interpreter itself may need: the process gets its environment by the order.
        environment = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        await self._loop.subprocess_exec(
            lambda: self,
            sys.executable,
            "-I",
            "-S",
            str(_SUPERVISOR),
            label,
            str(control),
            env=environment,
            pass_fds=(control,),
            start_new_session=True,
        )

    def told(self, line: str) -> None:
        """Take a line of the supervisor."""
        word, _, rest = line.partition(" ")
        if word == "exit":
            self.exit_code = int(rest)
            self._is_told_all = True
            self._end_if_drained()
        elif not self._started.done():
            if word == "pid":
                self.pid = int(rest)
            self._started.set_result(rest if word == "failed" else "")

    def told_all(self) -> None:
        """The supervisor tells nothing more."""
        if not self._started.done():
            self._started.set_result("its supervisor ended")
        self._is_told_all = True
        self._end_if_drained()

    def _end_if_drained(self) -> None:
        if self._is_drained and self._is_told_all:
            self._end()
        else:
            self._loop.call_later(_DRAIN_S, self._end)

    def _end(self) -> None:
        on_end, self._on_end = self._on_end, None
        self._can_take.set()
        if on_end is not None:
            on_end(self)

    async def _stop(self) -> None:
        assert self._process is not None  # noqa: S101 -- `start` has run
        if (stdin := self._process.get_pipe_transport(_STDIN)) is not None:
            stdin.close()
        if not await self._is_gone_within(CLOSE_S):
            self._close_control()
            if not await self._is_gone_within(TERM_S + _KILL_S):
                self._kill()
                await self._is_gone_within(_KILL_S)
        self._close_control()
        self._process.close()
        self._end()

    async def _is_gone_within(self, patience_s: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await self._gone.wait()
        return self._gone.is_set()

    def _close_control(self) -> None:
        if self._control is not None:
            self._control.close()

    def _kill(self) -> None:
        """The supervisor itself does not do its part."""
        with contextlib.suppress(OSError):
            if self.pid is not None and self.exit_code is None:
                os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            if self._process is not None:
                self._process.kill()

    # --- asyncio.SubprocessProtocol ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The supervisor runs."""
        self._process = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """The process wrote something."""
        self._on_output(fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """A stream of the process is closed."""
        if fd == _STDOUT:
            self._is_drained = True
            self._end_if_drained()
        elif fd == _STDIN:
            self._can_take.set()

    def process_exited(self) -> None:
        """The supervisor has ended, and so has all that it watched over."""
        self._gone.set()

    def pause_writing(self) -> None:
        """The process does not read as fast as it is written to."""
        self._can_take.clear()

    def resume_writing(self) -> None:
        """It has caught up."""
        self._can_take.set()


class _Control(asyncio.Protocol):
    """The gateway's end of the socket."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._text = b""

    def data_received(self, data: bytes) -> None:
        *lines, self._text = (self._text + data).split(b"\n")
        for line in lines:
            self._child.told(line.decode("utf-8", "replace"))

    def connection_lost(self, exc: Exception | None) -> None:
        self._child.told_all()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
