"""Logs: JSON, a line for each request, written to stderr; never a secret, a token or the value of an argument.

A line costs the request that it tells of as little as can be: one processor builds it, and lines are written together,
at most `FLUSH_AFTER_S` late.
"""

import asyncio
import atexit
import logging
import sys
import time
from typing import Any, BinaryIO, Final

import orjson
import structlog
from structlog.types import EventDict

FLUSH_AFTER_S: Final = 0.05
"""How long a line may wait for others to be written with."""


def configure(level: str) -> None:
    """Set up logging for the process.

    Args:
        level: debug, info, warning or error.
    """
    minimum = logging.getLevelNamesMapping()[level.upper()]
    sink = _Sink(sys.stderr.buffer)
    structlog.configure(
        processors=[_to_line],
        wrapper_class=structlog.make_filtering_bound_logger(minimum),
        logger_factory=structlog.BytesLoggerFactory(file=sink),  # type: ignore[arg-type]
        cache_logger_on_first_use=True,
    )
    atexit.register(sink.drain)
    logging.basicConfig(level=max(minimum, logging.WARNING), stream=sys.stderr, format="%(message)s")


def _to_line(logger: Any, method: str, event: EventDict) -> bytes:
    """Level, time and event first, then what there is to say; members that are None are left out."""
    if "exc_info" in event:
        event = structlog.processors.format_exc_info(logger, method, event)
    line = {"level": method if method != "exception" else "error", "timestamp": _now()}
    line.update((key, value) for key, value in event.items() if value is not None)
    return orjson.dumps(line, default=str)


def _now() -> str:
    """The time in ISO 8601, UTC, with milliseconds."""
    seconds, fraction = divmod(time.time(), 1)
    return f"{_to_second(int(seconds))}.{int(fraction * 1000):03d}Z"


class _LastSecond:
    """Formatting a second once is enough."""

    second = 0
    text = ""


def _to_second(second: int) -> str:
    if second != _LastSecond.second:
        _LastSecond.text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        _LastSecond.second = second
    return _LastSecond.text


class _Sink:
    """A file that writes what came within a short time at once; in a process without an event loop, immediately."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lines: list[bytes] = []
        self._is_due = False

    def write(self, line: bytes) -> None:
        self._lines.append(line)

    def flush(self) -> None:
        if self._is_due:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.drain()
            return
        self._is_due = True
        loop.call_later(FLUSH_AFTER_S, self.drain)

    def drain(self) -> None:
        self._is_due = False
        lines, self._lines = self._lines, []
        if lines:
            self._file.write(b"".join(lines))
            self._file.flush()
