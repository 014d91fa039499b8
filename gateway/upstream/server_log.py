"""What a server says beside the protocol, in the gateway's own log: line by line, bounded, without its secrets.

2026-07-28, basic/transports/stdio: stderr is for logging and says nothing of errors; stdout has messages only, which
not every server knows.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

import structlog

from gateway.upstream.lines import Line, Lines, Overlong

log = structlog.get_logger()

MOST_LINES: Final = 100
PERIOD_S: Final = 10.0
"""More than so many lines in this time are left out, and counted."""

_LONGEST: Final = 1000
_SECRET_LENGTH: Final = 6
_LAST_LINES: Final = 5


class ServerLog:
    """The log of one server's processes.

    Args:
        upstream: its configured name.
        secrets: texts to write as `***`; the short ones, which may be any word, are left as they are.
        now_s: a monotonic clock.

    """

    def __init__(self, upstream: str, secrets: Iterable[str] = (), now_s: Callable[[], float] = time.monotonic) -> None:
        self._last: deque[bytes] = deque(maxlen=_LAST_LINES)
        self._upstream = upstream
        self._secrets = sorted({text for text in secrets if len(text) >= _SECRET_LENGTH}, key=len, reverse=True)
        self._now_s = now_s
        self._period_ends_s = float("-inf")
        self._written = 0
        self._left_out = 0

    def lines(self) -> Lines:
        """What to make lines with of what a process writes to stderr."""
        return Lines(4 * _LONGEST)

    @property
    def last(self) -> list[str]:
        """The lines that came last, for whoever wants to know why a server ended."""
        return [self._readable(raw) for raw in self._last]

    def write(self, stream: str, line: Line) -> None:
        """Log a line; an empty one is left out."""
        raw = line.head if isinstance(line, Overlong) else line
        if not raw.strip():
            return
        self._last.append(raw)
        if self._has_room():
            log.info("server output", upstream=self._upstream, stream=stream, line=self._readable(raw))

    def _has_room(self) -> bool:
        now_s = self._now_s()
        if now_s >= self._period_ends_s:
            if self._left_out:
                log.info("server output left out", upstream=self._upstream, lines=self._left_out)
            self._period_ends_s, self._written, self._left_out = now_s + PERIOD_S, 0, 0
        if self._written >= MOST_LINES:
            self._left_out += 1
            return False
        self._written += 1
        return True

    def _readable(self, raw: bytes) -> str:
        text = raw.decode("utf-8", "replace").strip()
        for secret in self._secrets:
            text = text.replace(secret, "***")
        text = "".join(character if character.isprintable() else " " for character in text)
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
