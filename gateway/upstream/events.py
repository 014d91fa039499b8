"""The events of one answer, read as they come.

Nearly every stream of a call is one event, and is here when its head is: that case is worth a way of its own.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Final, Protocol

from gateway.errors import UpstreamError
from gateway.upstream.transport import Kind
from gateway.wire.sse import SseEvent, SseOverflow, SseParser

SSE_FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")
"""How an event stream begins, if it is one; and no JSON text does."""

_MESSAGE: Final = "message"
_MOST_IN_A_ROW: Final = 100  # events that are handed out without letting anybody else have a turn
_MOST_AT_ONCE: Final = 1_048_576  # bytes that are parsed likewise
_BLANK: Final = b" \t\r\n"


class Body(Protocol):
    """What the events are read from; see `Reply`."""

    kind: Kind

    def take_if(self, beginnings: tuple[bytes, ...]) -> bytes:
        """What has arrived and was not read yet, if it begins in one of these ways; else nothing."""

    async def read_start(self) -> bytes:
        """The first bytes that say anything; they stay to be read."""

    async def read_chunk(self) -> bytes:
        """The next bytes, `b""` at the end. Raises UpstreamError."""

    async def read_message_bytes(self) -> bytes:
        """Everything. Raises UpstreamError."""

    def overflow(self) -> UpstreamError:
        """Give up; what the reader is told."""


class Events:
    """The events that are messages, in order; a server's own kinds, as "ping", are nobody's business.

    Args:
        body: what they are read from.
        parser: what reads them.
        of_any_type: whether all events count.
    """

    __slots__ = (
        "_body",
        "_failure",
        "_in_a_row",
        "_is_begun",
        "_is_ended",
        "_of_any_type",
        "_parser",
        "_ready",
        "_unparsed",
    )

    def __init__(self, body: Body, parser: SseParser, *, of_any_type: bool) -> None:
        self._body = body
        self._parser = parser
        self._of_any_type = of_any_type
        self._ready: deque[SseEvent] = deque()
        self._unparsed = b""
        self._in_a_row = 0
        self._is_begun = False
        self._is_ended = False
        self._failure: UpstreamError | None = None

    def __aiter__(self) -> AsyncIterator[SseEvent]:
        return self

    async def __anext__(self) -> SseEvent:
        if not self._is_begun:
            self._begin_at_once()
        self._in_a_row += 1
        if self._in_a_row >= _MOST_IN_A_ROW:
            self._in_a_row = 0
            await asyncio.sleep(0)  # a flood, or what decompression makes of little, must not keep everybody waiting
        while not self._ready:
            if self._failure is not None:
                raise self._failure
            if self._is_ended:
                raise StopAsyncIteration
            await self._read_more()
        return self._ready.popleft()

    def _begin_at_once(self) -> None:
        """Parse what came with the head, if that is a beginning about which there is no doubt."""
        arrived = self._body.take_if(SSE_FIELDS)
        if not arrived:
            return
        self._is_begun = True
        try:
            self._parse(arrived)
        except SseOverflow:
            self._overflow()

    async def _read_more(self) -> None:
        try:
            if not self._is_begun:
                await self._begin()
                return
            self._parser.feed(b"")  # raises what it held back while there were events to return
            if chunk := self._unparsed or await self._body.read_chunk():
                self._parse(chunk)
            else:
                self._end()
        except UpstreamError as error:
            self._end()
            self._failure = error
        except SseOverflow:
            self._overflow()

    def _parse(self, chunk: bytes) -> None:
        self._unparsed = chunk[_MOST_AT_ONCE:]
        self._take(self._parser.feed(chunk[:_MOST_AT_ONCE]))

    def _take(self, events: list[SseEvent]) -> None:
        for event in events:
            if self._of_any_type or event.event == _MESSAGE:
                self._ready.append(event)

    async def _begin(self) -> None:
        """Take the first bytes, and read on to the end if they show that this is one bare JSON message."""
        start = await self._body.read_start()
        if self._body.kind == "json" or start.startswith(b"{"):
            data = await self._body.read_message_bytes()
            self._ready.append(SseEvent(_MESSAGE, data.strip(_BLANK), None, None))
            self._is_ended = True
            return
        self._is_begun = True
        self._unparsed = self._body.take_if((b"",))

    def _end(self) -> None:
        """Let the parser have the end; what it held back still counts if it is complete, whatever broke."""
        if not self._is_ended:
            self._is_ended = True
            self._take(self._parser.close())

    def _overflow(self) -> None:
        self._is_ended = True
        self._failure = self._body.overflow()
