"""Bytes in chunks, as lines of any length up to a limit."""

from dataclasses import dataclass
from typing import Final, TypeAlias

EDGE_BYTES: Final = 4096
"""How much of a line over the limit is kept, from its start and from its end."""


@dataclass(frozen=True, slots=True)
class Overlong:
    """A line over the limit: its first and its last bytes."""

    head: bytes
    tail: bytes


Line: TypeAlias = bytes | Overlong


class Lines:
    """Makes lines of chunks; time linear in the bytes, whatever the chunks.

    Args:
        most: the bytes that a line may have.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail = b""

    def feed(self, chunk: bytes) -> list[Line]:
        """Take the next bytes and return the lines that they complete, without their ends."""
        *ends, rest = chunk.split(b"\n")
        found: list[Line] = []
        for part in ends:
            self._add(part)
            found.append(self._take())
        self._add(rest)
        return found

    def close(self) -> list[Line]:
        """Take the end: a line that lacks its own is one all the same."""
        return [self._take()] if self._size else []

    def _add(self, part: bytes) -> None:
        if not part:
            return
        self._size += len(part)
        self._parts.append(part)
        if self._size > self._most:
            self._keep_edges()

    def _keep_edges(self) -> None:
        """Give up the middle of a line that is over the limit."""
        kept = b"".join(self._parts)
        head, tail = (self._head + kept)[:EDGE_BYTES], (self._tail + kept)[-EDGE_BYTES:]
        self._parts, self._head, self._tail = [], head, tail

    def _take(self) -> Line:
        whole = b"".join(self._parts)
        is_over = self._size > self._most
        line: Line = Overlong(self._head, self._tail) if is_over else whole.removesuffix(b"\r")
        self._parts, self._size, self._head, self._tail = [], 0, b"", b""
        return line
