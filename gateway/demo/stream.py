"""One SSE stream of the demo server, kept so that a client can come back for what it missed."""

import asyncio
from collections.abc import AsyncIterator

from gateway.wire.jsonrpc import JsonObject


class Stream:
    """An append-only list of messages that several readers may follow to its end.

    Args:
        name: the part of its event ids before the last dash; unique within the session.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._messages: list[JsonObject] = []
        self._is_closed = False
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def is_closed(self) -> bool:
        """Whether nothing will be added any more."""
        return self._is_closed

    def put(self, message: JsonObject) -> None:
        """Add a message; after `close` it is dropped."""
        if not self._is_closed:
            self._messages.append(message)
            self._wake()

    def close(self) -> None:
        """End the stream: readers get what is there, then stop."""
        self._is_closed = True
        self._wake()

    async def read(self, after: int = 0) -> AsyncIterator[tuple[int, JsonObject]]:
        """Yield each message behind the first `after` ones, with its number (from 1), until the stream is closed."""
        number = after
        while True:
            changed = self._changed
            while number < len(self._messages):
                number += 1
                yield number, self._messages[number - 1]
            if self._is_closed and number >= len(self._messages):
                return
            await changed.wait()

    async def first(self) -> JsonObject | None:
        """Wait for the first message; None if the stream ends without one."""
        async for _, message in self.read():
            return message
        return None

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
