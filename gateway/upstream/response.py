"""One answer whose head has arrived: its connection hands over the body, its reader takes it.

Rule: what arrived is read before it is told how the answer broke. While more than `READ_AHEAD_BYTES` wait for a slow
reader, nothing more is taken from the server.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

from gateway.errors import UpstreamError

READ_AHEAD_BYTES: Final = 65_536


class Source(Protocol):
    """The connection that an answer comes on."""

    def pause(self) -> None:
        """Take nothing more for now."""

    def resume(self) -> None:
        """Go on."""

    def abort(self) -> None:
        """Close at once."""

    def let_end(self) -> None:
        """Nobody reads the rest: be free again if it comes soon, else close."""


class Fields(Mapping[str, str]):
    """The fields of a head, by their names in any case; of several with one name, the first.

    Args:
        values: by name in lower case.
    """

    __slots__ = ("_values",)

    def __init__(self, values: dict[bytes, bytes]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower().encode()].decode("utf-8", "surrogateescape").strip(" \t")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower().encode() in self._values

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self._values)

    def __len__(self) -> int:
        return len(self._values)


class Response:
    """An answer that is on its way.

    Attributes:
        status: the HTTP status.
        headers: the fields of its head.
        is_complete: whether everything has arrived.
    """

    __slots__ = (
        "_chunks",
        "_failure",
        "_is_unwanted",
        "_size",
        "_source",
        "_waiter",
        "headers",
        "is_complete",
        "status",
    )

    def __init__(self, status: int, headers: Fields, source: Source) -> None:
        self.status = status
        self.headers = headers
        self.is_complete = False
        self._source = source
        self._chunks: list[bytes] = []
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._failure: UpstreamError | None = None
        self._is_unwanted = False

    # --- for the connection ---

    def feed(self, data: bytes) -> None:
        """A part of the body has arrived."""
        self._size += len(data)
        if self._size <= READ_AHEAD_BYTES:
            self._hold(data)
        elif self._is_unwanted:
            self._source.abort()
        else:
            self._source.pause()
            self._hold(data)

    def end(self) -> None:
        """The body is complete."""
        self.is_complete = True
        self._wake()

    def fail(self, error: UpstreamError) -> None:
        """The rest will not come."""
        self._failure = error
        self._wake()

    def _hold(self, data: bytes) -> None:
        if not self._is_unwanted:
            self._chunks.append(data)
            self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    # --- for the reader ---

    @property
    def is_at_end(self) -> bool:
        """Whether everything has been read."""
        return self.is_complete and not self._chunks

    def take(self) -> bytes:
        """What has arrived and was not taken yet; perhaps nothing."""
        chunks = self._chunks
        if not chunks:
            return b""
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        chunks.clear()
        if self._size > READ_AHEAD_BYTES and not self.is_complete:
            self._source.resume()
        self._size = 0
        return data

    async def read(self) -> bytes:
        """The next bytes of the body, `b""` at its end.

        Raises:
            UpstreamError: it broke off.
        """
        while not (data := self.take()):
            if self.is_complete:
                break
            if self._failure is not None:
                raise self._failure
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return data

    def close(self) -> None:
        """Want no more of it: unless it is complete, its connection is closed at once."""
        if not self.is_complete:
            self._source.abort()

    def finish(self) -> None:
        """Want no more of it, though its end may still be on the way, so that its connection can be used again."""
        if self.is_complete:
            return
        if self._size > READ_AHEAD_BYTES:
            self._source.abort()
            return
        self._is_unwanted = True
        self._chunks.clear()
        self._source.let_end()
