"""Pipes to processes: a message a line, on the stdin and stdout of a server that runs beside the gateway.

A process is started without a shell, in a session of its own, and has only the environment that it is given. See
`child` for how it ends, and for what makes sure that it does.
2025-11-25 and 2026-07-28, basic/transports, "stdio".
"""

import asyncio
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog

from gateway.errors import UpstreamError
from gateway.upstream.child import CannotStart, Child
from gateway.upstream.crashes import Crashes
from gateway.upstream.faults import unreachable
from gateway.upstream.lines import Line, Lines, Overlong
from gateway.upstream.pipe import Hearer
from gateway.upstream.piped_answer import PipedAnswer
from gateway.upstream.server_log import ServerLog
from gateway.upstream.transport import Answer
from gateway.upstream.turn_by_turn import TurnByTurn
from gateway.wire.jsonrpc import JsonObject

log = structlog.get_logger()

_PATIENCE_S: Final = 1.0
_INHERITED: Final = frozenset({"HOME", "LANG", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"})
_STDOUT: Final = 1
_STDERR: Final = 2


@dataclass(frozen=True, slots=True)
class Command:
    """How a server is started.

    Args:
        program: its name, to be found on the PATH of its environment, or its path.
        arguments: what it is given.
        environment: variables beside those that are inherited; may hold secrets.
        folder: where it runs; None for where the gateway does.
        secrets: what must not show in a log.
    """

    program: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: str | None = None
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def full_environment(self) -> dict[str, str]:
        """All variables of the process: the named ones of the gateway's own, and the configured ones."""
        own = {name: value for name, value in os.environ.items() if name in _INHERITED or name.startswith("LC_")}
        return {**own, **self.environment}

    def find(self) -> str | None:
        """The path of the program; None if there is none."""
        if os.sep in self.program:
            path = Path(self.full_folder or "", Path(self.program).expanduser()).absolute()
            return str(path) if path.is_file() else None
        return shutil.which(self.program, path=self.full_environment().get("PATH"))

    @property
    def full_folder(self) -> str | None:
        """The folder with `~` written out."""
        return None if self.folder is None else str(Path(self.folder).expanduser())

    def to_order(self, program: str) -> JsonObject:
        """What the supervisor is told."""
        return {
            "program": program,
            "arguments": self.arguments,
            "environment": self.full_environment(),
            "cwd": self.full_folder,
        }


class StdioPipes:
    """Starts the processes of one server; an `Opener`.

    Args:
        name: the upstream's configured name.
        command: how it is started.
        max_message_bytes: what a line may have.

    Attributes:
        log: what the processes say beside the protocol.
    """

    def __init__(self, name: str, command: Command, *, max_message_bytes: int) -> None:
        self.log = ServerLog(name, command.secrets)
        self._name = name
        self._command = command
        self._max_message_bytes = max_message_bytes
        self._crashes = Crashes()

    async def __call__(self, hearer: Hearer, _headers: Mapping[str, str]) -> "StdioPipe":
        """Start a process.

        Raises:
            UpstreamError: it cannot be started, or keeps ending on its own.
        """
        await self._pause()
        program = self._command.find()
        if program is None:
            log.warning("command not found", upstream=self._name, command=self._command.program)
            raise unreachable(self._name, "its command is not to be found")
        pipe = StdioPipe(self._name, hearer, self.log, self._crashes, self._max_message_bytes)
        try:
            await pipe.start(self._command.to_order(program))
        except CannotStart as fault:
            log.warning("command not started", upstream=self._name, command=self._command.program, reason=str(fault))
            raise unreachable(self._name, f"its command cannot be run ({fault})") from fault
        return pipe

    async def _pause(self) -> None:
        """Wait a moment after a server ended on its own again and again; do not make the client wait for long."""
        pause_s = self._crashes.wait_s(asyncio.get_running_loop().time())
        if pause_s > _PATIENCE_S:
            message = f"Upstream {self._name!r} keeps ending on its own, and is not started again yet"
            raise UpstreamError(self._name, "unreachable", message, retryable=True, retry_after_s=int(pause_s) + 1)
        await asyncio.sleep(pause_s)


class StdioPipe:
    """A pipe to one process; see `Pipe`."""

    def __init__(
        self, name: str, hearer: Hearer, server_log: ServerLog, crashes: Crashes, max_message_bytes: int
    ) -> None:
        self._name = name
        self._hearer = hearer
        self._log = server_log
        self._crashes = crashes
        self._streams = {_STDOUT: Lines(max_message_bytes), _STDERR: server_log.lines()}
        self._unread = TurnByTurn(self._take, self._pause, self._resume)
        self._child: Child | None = None
        self._started_s = 0.0
        self._is_closing = False
        self._has_spoken = False

    @property
    def pid(self) -> int | None:
        """The process."""
        return None if self._child is None else self._child.pid

    async def start(self, order: JsonObject) -> None:
        """Start the process. Raises CannotStart."""
        self._started_s = asyncio.get_running_loop().time()
        self._child = await Child.start(self._name, order, self._unread.add, self._ended)
        log.info("server started", upstream=self._name, pid=self.pid)

    async def send(self, message: bytes, _headers: Mapping[str, str]) -> Answer | None:
        """Write a message; see `Pipe`."""
        if self._child is not None and await self._child.write(message + b"\n"):
            return None
        return PipedAnswer.bare(404)

    async def close(self) -> None:
        """End the process; see `Pipe`."""
        self._is_closing = True
        if self._child is not None:
            await self._child.stop()

    def _take(self, descriptor: int, data: bytes) -> None:
        for line in self._streams[descriptor].feed(data):
            self._read(descriptor, line)

    def _read(self, descriptor: int, line: Line) -> None:
        if descriptor == _STDOUT:
            self._hear(line)
        else:
            self._log.write("stderr", line)

    def _pause(self) -> None:
        if self._child is not None:
            self._child.pause_reading()

    def _resume(self) -> None:
        if self._child is not None:
            self._child.resume_reading()

    def _hear(self, line: Line) -> None:
        if isinstance(line, Overlong):
            log.warning("message over the limit", upstream=self._name)
            self._hearer.hear_overlong(line.head + line.tail)
        elif self._hearer.hear(line):
            self._has_spoken = True
        else:
            self._log.write("stdout", line)

    def _ended(self, child: Child) -> None:
        self._unread.when_empty(lambda: self._end(child))

    def _end(self, child: Child) -> None:
        for descriptor, lines in self._streams.items():
            for line in lines.close():
                self._read(descriptor, line)
        log.info("server ended", upstream=self._name, pid=child.pid, how=child.fate, was_asked=self._is_closing)
        is_done = self._has_spoken and child.exit_code == 0
        if not self._is_closing and not is_done:
            self._crashes.note(self._started_s, asyncio.get_running_loop().time())
        self._hearer.end(child.fate)
