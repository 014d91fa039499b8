"""What one server writes is read line by line in short turns, so that one that floods its output delays nobody else.

While something is left over from a turn, nothing more is read, and the server has to wait until it can write on.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

TURN_S: Final = 0.002
REST_S: Final = 0.001
"""How long others have the loop for themselves between two turns."""


class TurnByTurn:
    """Chunks that have come and were not taken yet.

    Args:
        take: takes a part of a chunk, up to the end of a line: where it came from, and the bytes.
        pause: called when more has come than fits into a turn.
        resume: called when all of that was taken.
    """

    def __init__(
        self, take: Callable[[int, bytes], None], pause: Callable[[], None], resume: Callable[[], None]
    ) -> None:
        self._take = take
        self._pause = pause
        self._resume = resume
        self._chunks: deque[tuple[int, bytes]] = deque()
        self._offset = 0
        self._is_resting = False
        self._on_empty: Callable[[], None] | None = None
        self._loop = asyncio.get_running_loop()

    def add(self, source: int, chunk: bytes) -> None:
        """Take a chunk, now or in the turns to come."""
        if chunk:
            self._chunks.append((source, chunk))
        if not self._is_resting:
            self._go_on()

    def when_empty(self, told: Callable[[], None]) -> None:
        """Call `told` when everything that was added has been taken: at once, if that is so."""
        if self._chunks:
            self._on_empty = told
        else:
            told()

    def _go_on(self) -> None:
        turn_ends_s = self._loop.time() + TURN_S
        while self._chunks:
            self._take_line()
            if self._chunks and self._loop.time() >= turn_ends_s:
                self._rest()
                return
        if self._is_resting:
            self._is_resting = False
            self._resume()
        told, self._on_empty = self._on_empty, None
        if told is not None:
            told()

    def _take_line(self) -> None:
        source, chunk = self._chunks[0]
        end = chunk.find(b"\n", self._offset) + 1 or len(chunk)
        part = chunk[self._offset : end]
        if end == len(chunk):
            self._chunks.popleft()
            end = 0
        self._offset = end
        self._take(source, part)

    def _rest(self) -> None:
        if not self._is_resting:
            self._is_resting = True
            self._pause()
        self._loop.call_later(REST_S, self._go_on)
