"""Logs: JSON, a line for each request, written to stderr; never a secret, a token or the value of an argument.

A line costs the request that it tells of as little as can be: one processor builds it, and lines are written together,
at most `FLUSH_AFTER_S` late. Of an exception there are frames and types, but not its text, which may quote a value.
"""

import asyncio
import atexit
import json
import logging
import sys
import time
import traceback
from collections.abc import Iterator
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
        wrapper_class=_logger_class(minimum),
        logger_factory=structlog.BytesLoggerFactory(file=sink),  # type: ignore[arg-type]
        cache_logger_on_first_use=True,
    )
    atexit.register(sink.drain)
    logging.basicConfig(level=max(minimum, logging.WARNING), handlers=[_Handler(sink)], force=True)


def _logger_class(minimum: int) -> type[structlog.typing.FilteringBoundLogger]:
    """structlog's logger, with a way of its own for what nearly every line is: information, without a context."""
    base: Any = structlog.make_filtering_bound_logger(minimum)
    if minimum > logging.INFO:
        return base  # type: ignore[no-any-return]

    class Logger(base):  # type: ignore[misc]
        def info(self, event: str, *args: Any, **told: Any) -> Any:
            if args or self._context or self._processors != [_to_line]:
                return super().info(event, *args, **told)
            told["event"] = event
            return self._logger.msg(_to_line(None, "info", told))

    return Logger


def log_loop_failure(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what failed in the event loop where nobody was waiting. An `asyncio` exception handler.

    The default one shows exceptions with their text.
    """
    structlog.get_logger().error(
        "background work failed", what=context.get("message"), exc_info=context.get("exception")
    )


def _to_line(_logger: Any, method: str, event: EventDict) -> bytes:
    """Level, time and event first, then what there is to say; members that are None are left out."""
    if "exc_info" in event:
        event["exception"] = _traced(event.pop("exc_info"))
    line: EventDict = {"level": method if method != "exception" else "error", "timestamp": _now(), **event}
    if None in event.values():
        line = {key: value for key, value in line.items() if value is not None}
    try:
        return orjson.dumps(line, default=str)
    except TypeError:  # a client's text may be no Unicode, and a server's number of any length
        return json.dumps(line, default=str).encode()


def _traced(exc_info: Any) -> str | None:
    """Where an exception came from: the frames and the type of it and of what caused it, the cause first."""
    error = sys.exc_info()[1] if exc_info is True else exc_info[1] if isinstance(exc_info, tuple) else exc_info
    if not isinstance(error, BaseException):
        return None
    told = ["".join(traceback.format_tb(each.__traceback__)) + type(each).__qualname__ for each in _causes(error)]
    return "\n".join(reversed(told))


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)


def _now() -> str:
    """The time in ISO 8601, UTC, with milliseconds; formatting a second once is enough."""
    now_s = time.time()
    second = int(now_s)
    if second != _LastSecond.second:
        _LastSecond.text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        _LastSecond.second = second
    return f"{_LastSecond.text}.{int((now_s - second) * 1000):03d}Z"


class _LastSecond:
    second = 0
    text = ""


class _Handler(logging.Handler):
    """What libraries log, as lines like all others."""

    def __init__(self, sink: "_Sink") -> None:
        super().__init__()
        self._sink = sink

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        event = {"event": record.getMessage(), "logger": record.name, "exc_info": record.exc_info}
        self._sink.write(_to_line(None, record.levelname.lower(), event) + b"\n")
        self._sink.flush()


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
