"""One HTTP answer of an upstream, read under a limit and whatever its media type claims.

Rule: what the body is decides, not what it is called (an event stream may turn out to be one bare JSON message,
and the other way round). An event stream is known by its media type, for its first byte may take minutes; any
other answer is judged by the first byte of its body, which follows its head at once.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Final, Literal, Self

import aiohttp

from gateway.errors import UpstreamError
from gateway.upstream import faults
from gateway.wire.sse import SseEvent, SseOverflow, SseParser

Kind = Literal["json", "sse", "empty", "other"]

END_GRACE_S: Final = 1.0
"""How long `finish` lets an answer end by itself, so that its connection can be used again."""

_EVENT_STREAM = "text/event-stream"
_MESSAGE = "message"
_MOST_IN_A_ROW = 100  # events that are handed out without letting anybody else have a turn
_MOST_AT_ONCE = 1_048_576  # bytes that are parsed likewise
_NEVER_JSON = ("text/html", "application/xhtml+xml")
_DECODED: Final = frozenset({"", "identity", "gzip", "deflate", "br"})
_BODILESS = (202, 204, 304)  # what a 202 may say is of no interest, and may be long in coming
_BLANK = b" \t\r\n"
_NOTHING = _BLANK + b"\xef\xbb\xbf"  # blanks, and the bytes of a byte order mark
_SSE_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


class Endings:
    """Answers of which nothing more is wanted, while their end may still be on the way."""

    def __init__(self) -> None:
        self._timers: dict[aiohttp.ClientResponse, asyncio.TimerHandle] = {}

    def add(self, response: aiohttp.ClientResponse) -> None:
        """Let a response end by itself, for `END_GRACE_S`; then drop its connection."""
        self._timers[response] = asyncio.get_running_loop().call_later(END_GRACE_S, self._drop, response)
        response.content.on_eof(lambda: self._forget(response))

    def close(self) -> None:
        """Drop them all."""
        for response in list(self._timers):
            self._drop(response)

    def _drop(self, response: aiohttp.ClientResponse) -> None:
        self._forget(response)
        response.close()

    def _forget(self, response: aiohttp.ClientResponse) -> None:
        timer = self._timers.pop(response, None)
        if timer is not None:
            timer.cancel()


class Reply:
    """An answer whose head has arrived.

    Attributes:
        status: the HTTP status.
        headers: the response headers, names in any case.
        kind: what the body holds. "json": one message, for `read_message_bytes`. "sse": events, for `events`
            (which reads "json" too, as a single event). "empty": nothing. "other": something that is neither.
    """

    __slots__ = (
        "_endings",
        "_events",
        "_first",
        "_limit",
        "_parser",
        "_response",
        "_upstream",
        "headers",
        "kind",
        "status",
    )

    def __init__(
        self, upstream: str, response: aiohttp.ClientResponse, max_message_bytes: int, endings: Endings
    ) -> None:
        self.status = response.status
        self.headers = response.headers
        self.kind: Kind = "sse"
        self._upstream = upstream
        self._response = response
        self._limit = max_message_bytes
        self._endings = endings
        self._parser: SseParser | None = None
        self._first = b""  # what was read of the body to find out its kind
        self._events: Events | None = None

    @classmethod
    async def open(
        cls, upstream: str, response: aiohttp.ClientResponse, max_message_bytes: int, endings: Endings
    ) -> Self:
        """Take over a response and find out what its body is.

        Raises:
            UpstreamError: it is encoded in a way that was not asked for, or broke off.
        """
        reply = cls(upstream, response, max_message_bytes, endings)
        try:
            await reply._find_kind()
        except BaseException:
            reply.close()
            raise
        return reply

    @property
    def media_type(self) -> str:
        """The media type in lower case without parameters, "" if there is none."""
        return self.headers.get("Content-Type", "").partition(";")[0].strip().lower()

    @property
    def last_event_id(self) -> str | None:
        """The id after which `events` would have to be resumed, None if the stream gave none."""
        return self._parser.last_event_id if self._parser else None

    @property
    def retry_ms(self) -> int | None:
        """The reconnection time that the stream asked for."""
        return self._parser.retry_ms if self._parser else None

    async def read_message_bytes(self) -> bytes:
        """Read the whole body, decompressed; `b""` if it is empty.

        Raises:
            UpstreamError: it is over the limit (`too_large`), or broke off (`outcome_unknown`).
        """
        try:
            return await self._read_whole()
        except BaseException:
            self.close()  # whoever stops in the middle, by a timeout too, wants no more of it
            raise

    def events(self, *, of_any_type: bool = False) -> "Events":
        """Iterate over the events to the end of the body; a body that is one bare JSON message is one event.

        The iterator is the same at every call, so that reading can stop and go on later.

        Args:
            of_any_type: whether those count that are not of type "message"; decided by the first call.

        Raises:
            UpstreamError: an event is over the limit (`too_large`), or the stream broke off (`outcome_unknown`; it
                may be resumed after `last_event_id`).
        """
        if self._events is None:
            self._parser = SseParser(self._limit)
            self._events = Events(self, self._parser, of_any_type)
        return self._events

    def close(self) -> None:
        """Give the answer up: a connection whose answer is complete is used again, any other is dropped."""
        self._response.close()

    def finish(self) -> None:
        """Be done with an answer of which nothing more is wanted, though its end may still be on the way.

        The connection is used again if the end arrives within `END_GRACE_S`, and dropped otherwise.
        """
        if self._response.connection is None:
            self._response.close()
        else:
            self._endings.add(self._response)

    async def _read_whole(self) -> bytes:
        first, self._first = self._first, b""
        self._check_size(len(first))
        if self._response.content.at_eof():
            return first
        chunks = [first]
        size = len(first)
        while chunk := await self._read_chunk():
            chunks.append(chunk)
            size += len(chunk)
            self._check_size(size)
        return b"".join(chunks)

    async def _find_kind(self) -> None:
        encoding = self.headers.get("Content-Encoding", "").strip().lower()
        if encoding not in _DECODED:
            raise faults.nonsense(self._upstream, "answered with a Content-Encoding that was not offered")
        if self.status in _BODILESS:
            self.kind = "empty"
            return
        media_type = self.media_type
        if media_type == _EVENT_STREAM:
            return
        start = await self._read_start()
        self.kind = _kind_of(start, media_type) if start else "empty"

    async def _read_start(self) -> bytes:
        """The first bytes of the body that say anything; `b""` if there are none. They stay to be read."""
        while not (start := self._first.lstrip(_NOTHING)):
            self._check_size(len(self._first))
            chunk = await self._read_chunk()
            if not chunk:
                break
            self._first += chunk
        return start

    async def _read_chunk(self) -> bytes:
        """The next bytes of the body, `b""` at its end."""
        try:
            return await self._response.content.readany()
        except faults.FAILURES as error:
            if arrived := self._take_arrived(error):
                return arrived
            self.close()
            raise faults.to_upstream_error(self._upstream, error) from error

    def _take_arrived(self, error: Exception) -> bytes:
        """What arrived before the connection broke: aiohttp would withhold it, a result or an event id perhaps."""
        content = self._response.content
        content.set_exception(None)  # type: ignore[arg-type]
        arrived = content.read_nowait()
        content.set_exception(error)
        return arrived

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            raise self._overflow()

    def _overflow(self) -> UpstreamError:
        self.close()
        return faults.too_large(self._upstream, self._limit)


class Events:
    """The events of a `Reply` that are messages, in order; a server's own kinds, as "ping", are nobody's business."""

    __slots__ = (
        "_failure",
        "_in_a_row",
        "_is_begun",
        "_is_ended",
        "_of_any_type",
        "_parser",
        "_ready",
        "_reply",
        "_unparsed",
    )

    def __init__(self, reply: Reply, parser: SseParser, of_any_type: bool) -> None:
        self._reply = reply
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

    def _take(self, events: list[SseEvent]) -> None:
        self._ready.extend(event for event in events if self._of_any_type or event.event == _MESSAGE)

    async def _read_more(self) -> None:
        try:
            if not self._is_begun:
                await self._begin()
                return
            self._parser.feed(b"")  # raises what it held back while there were events to return
            if chunk := self._unparsed or await self._reply._read_chunk():
                self._unparsed = chunk[_MOST_AT_ONCE:]
                self._take(self._parser.feed(chunk[:_MOST_AT_ONCE]))
            else:
                self._end()
        except UpstreamError as error:
            self._end()
            self._failure = error
        except SseOverflow:
            self._is_ended = True
            self._failure = self._reply._overflow()

    async def _begin(self) -> None:
        """Take the first bytes, and read on to the end if they show that this is one bare JSON message."""
        reply = self._reply
        start = await reply._read_start()
        if reply.kind == "json" or start.startswith(b"{"):
            body = await reply.read_message_bytes()
            self._ready.append(SseEvent(_MESSAGE, body.strip(_BLANK), None, None))
            self._is_ended = True
            return
        self._is_begun = True
        self._unparsed, reply._first = reply._first, b""

    def _end(self) -> None:
        """Let the parser have the end; what it held back still counts if it is complete, whatever broke."""
        if not self._is_ended:
            self._is_ended = True
            self._take(self._parser.close())


def _kind_of(start: bytes, media_type: str) -> Kind:
    if start.startswith(_SSE_FIELDS):
        return "sse"
    if media_type in _NEVER_JSON:
        return "other"
    if start.startswith((b"{", b"[")) or media_type == "application/json":
        return "json"
    return "other"
