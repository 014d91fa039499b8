"""The answer of a server on a pipe: a stream of messages, fed by whoever reads the pipe."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final, Self

from gateway.upstream.transport import Kind
from gateway.wire.sse import SseEvent

MOST_UNREAD: Final = 1000
MOST_UNREAD_BYTES: Final = 8 * 2**20
"""What may wait for a slow reader; above, notifications are dropped, for the pipe has others to serve."""


class PipedAnswer:
    """An answer; see `transport.Answer`.

    Args:
        status: the HTTP status that says what happened.
        kind: "sse" for a stream; "json" for one message; "empty".
        headers: as a server would send them.
        on_close: called once, when nobody wants to read on.

    Attributes:
        arrived: set when there is something to read, or will never be.
        ended: set when nothing more comes.
    """

    def __init__(
        self,
        status: int = 200,
        *,
        kind: Kind = "sse",
        headers: Mapping[str, str] | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self.status = status
        self.kind: Kind = kind
        self.headers: Mapping[str, str] = headers or {}
        self.last_event_id: str | None = None
        self.retry_ms: int | None = None
        self.arrived = asyncio.Event()
        self.ended = asyncio.Event()
        self._on_close = on_close
        self._unread: deque[bytes] = deque()
        self._unread_bytes = 0
        self._failure: Exception | None = None

    @classmethod
    def bare(cls, status: int) -> Self:
        """An answer that is a status and nothing else."""
        answer = cls(status, kind="empty")
        answer.end()
        return answer

    @classmethod
    def of_message(cls, data: bytes, headers: Mapping[str, str] | None = None) -> Self:
        """One message, all at once."""
        answer = cls(kind="json", headers=headers)
        answer.push(data)
        answer.end()
        return answer

    # --- the server's side ---

    def push(self, data: bytes, *, may_drop: bool = False) -> None:
        """Let the reader have a message.

        Args:
            data: the message.
            may_drop: whether it may be lost if too much is waiting to be read.
        """
        if self.ended.is_set():
            return
        is_full = len(self._unread) >= MOST_UNREAD or self._unread_bytes + len(data) > MOST_UNREAD_BYTES
        if may_drop and is_full:
            return
        self._unread.append(data)
        self._unread_bytes += len(data)
        self.arrived.set()

    def end(self, failure: Exception | None = None) -> None:
        """There is nothing more; what was pushed can still be read, and then the failure is raised."""
        if not self.ended.is_set():
            self._failure = failure
            self.ended.set()
            self.arrived.set()

    # --- the reader's side ---

    async def read_message_bytes(self) -> bytes:
        """Read to the end; the last message, `b""` if there was none. Raises UpstreamError."""
        last = b""
        async for event in self:
            last = event.data
        return last

    def events(self) -> AsyncIterator[SseEvent]:
        """The messages, each as an event. Iterating raises UpstreamError."""
        return self

    def __aiter__(self) -> AsyncIterator[SseEvent]:
        return self

    async def __anext__(self) -> SseEvent:
        while not self._unread:
            if self.ended.is_set():
                if self._failure is not None:
                    raise self._failure
                raise StopAsyncIteration
            self.arrived.clear()
            await self.arrived.wait()
        data = self._unread.popleft()
        self._unread_bytes -= len(data)
        return SseEvent("message", data, None, None)

    def finish(self) -> None:
        """Be done with it."""
        self.close()

    def close(self) -> None:
        """Give it up: what comes now is nobody's."""
        self.end()
        on_close, self._on_close = self._on_close, None
        if on_close is not None:
            on_close()
