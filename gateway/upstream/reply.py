"""One HTTP answer of an upstream, read under a limit and whatever its media type claims.

Rule: what the body is decides, not what it is called (an event stream may turn out to be one bare JSON message,
and the other way round). An event stream is known by its media type, for its first byte may take minutes; any
other answer is judged by the first byte of its body, which follows its head at once.
"""

from functools import lru_cache

from gateway.errors import UpstreamError
from gateway.upstream import faults
from gateway.upstream.decoding import Decoder, decoder_of
from gateway.upstream.events import SSE_FIELDS, Events
from gateway.upstream.response import Response
from gateway.upstream.transport import Kind
from gateway.wire.sse import SseParser

_EVENT_STREAM = "text/event-stream"
_NEVER_JSON = ("text/html", "application/xhtml+xml")
_BODILESS = (202, 204, 304)  # what a 202 may say is of no interest, and may be long in coming
_NOTHING = b" \t\r\n\xef\xbb\xbf"  # blanks, and the bytes of a byte order mark


class Reply:
    """An answer whose head has arrived.

    Attributes:
        status: the HTTP status.
        headers: the response headers, names in any case.
        kind: what the body holds. "json": one message, for `read_message_bytes`. "sse": events, for `events`
            (which reads "json" too, as a single event). "empty": nothing. "other": something that is neither.
    """

    __slots__ = (
        "_decoder",
        "_events",
        "_first",
        "_limit",
        "_parser",
        "_response",
        "_upstream",
        "headers",
        "is_ready",
        "kind",
        "status",
    )

    def __init__(self, upstream: str, response: Response, max_message_bytes: int) -> None:
        self.status = response.status
        self.headers = response.headers
        self.kind: Kind = "sse"
        self._upstream = upstream
        self._response = response
        self._limit = max_message_bytes
        self._decoder: Decoder | None = None
        self._parser: SseParser | None = None
        self._first = b""  # what was read of the body to find out its kind
        self._events: Events | None = None
        self.is_ready = self._find_kind_at_once()

    async def get_ready(self) -> None:
        """Find out what the body is.

        Raises:
            UpstreamError: it is encoded in a way that was not asked for, or broke off.
        """
        try:
            await self._find_kind()
        except BaseException:
            self.close()
            raise

    @property
    def media_type(self) -> str:
        """The media type in lower case without parameters, "" if there is none."""
        return _media_type(self.headers["Content-Type"]) if "Content-Type" in self.headers else ""

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

    def events(self, *, of_any_type: bool = False) -> Events:
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
            self._events = Events(self, self._parser, of_any_type=of_any_type)
        return self._events

    def close(self) -> None:
        """Give the answer up: a connection whose answer is complete is used again, any other is dropped."""
        self._response.close()

    def finish(self) -> None:
        """Be done with an answer of which nothing more is wanted, though its end may still be on the way.

        The connection is used again if the end arrives soon, and dropped otherwise.
        """
        self._response.finish()

    async def _read_whole(self) -> bytes:
        first, self._first = self._first, b""
        self._check_size(len(first))
        if self._response.is_at_end and self._decoder is None:
            return first
        chunks = [first]
        size = len(first)
        while chunk := await self.read_chunk():
            chunks.append(chunk)
            size += len(chunk)
            self._check_size(size)
        return b"".join(chunks)

    def _find_kind_at_once(self) -> bool:
        """Find out what the body is, if that can be told from what has arrived."""
        if "Content-Encoding" in self.headers:
            return False
        if self.status in _BODILESS:
            self.kind = "empty"
            return True
        media_type = self.media_type
        if media_type == _EVENT_STREAM:
            return True
        self._first = self._response.take()
        start = self._first.lstrip(_NOTHING)
        if not start:
            return False
        self.kind = _kind_of(start, media_type)
        return True

    async def _find_kind(self) -> None:
        try:
            self._decoder = decoder_of(self.headers.get("Content-Encoding", ""))
        except ValueError:
            raise faults.nonsense(self._upstream, "answered with a Content-Encoding that was not offered") from None
        if self.status in _BODILESS:
            self.kind = "empty"
            return
        media_type = self.media_type
        if media_type == _EVENT_STREAM:
            return
        start = await self.read_start()
        self.kind = _kind_of(start, media_type) if start else "empty"

    def take_if(self, beginnings: tuple[bytes, ...]) -> bytes:
        """What has arrived and was not read yet, if it begins in one of these ways; else nothing."""
        if not self._first and self._decoder is None:
            self._first = self._response.take()
        if not self._first.startswith(beginnings):
            return b""
        first, self._first = self._first, b""
        return first

    async def read_start(self) -> bytes:
        """The first bytes of the body that say anything; `b""` if there are none. They stay to be read."""
        while not (start := self._first.lstrip(_NOTHING)):
            self._check_size(len(self._first))
            chunk = await self.read_chunk()
            if not chunk:
                break
            self._first += chunk
        return start

    async def read_chunk(self) -> bytes:
        """The next bytes of the body, `b""` at its end."""
        if self._decoder is None:
            return await self._response.read()
        try:
            return await self._read_decoded(self._decoder)
        except ValueError:
            self.close()
            raise faults.nonsense(self._upstream, "sent a body that does not decompress") from None

    async def _read_decoded(self, decoder: Decoder) -> bytes:
        while True:
            data = b"" if decoder.has_more else await self._response.read()
            is_end = not data and not decoder.has_more
            if is_end and not decoder.is_complete:
                raise faults.outcome_unknown(self._upstream)
            piece = decoder.decode(data)
            if piece or is_end:
                return piece

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            raise self.overflow()

    def overflow(self) -> UpstreamError:
        """Give up; what the reader is told."""
        self.close()
        return faults.too_large(self._upstream, self._limit)


def _kind_of(start: bytes, media_type: str) -> Kind:
    if start.startswith(SSE_FIELDS):
        return "sse"
    if media_type in _NEVER_JSON:
        return "other"
    if start.startswith((b"{", b"[")) or media_type == "application/json":
        return "json"
    return "other"


@lru_cache(64)
def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()
