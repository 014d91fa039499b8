"""One HTTP/1.1 connection to a server: a request, its answer, and then perhaps another request.

Rule: a request is written once. What the server says unasked ends the connection, for whatever comes next might be
taken for an answer. Of a broken connection the request on it has an unknown outcome, whatever the reason.
RFC 9112, sections 6.3 (the length of a body) and 9.
"""

import asyncio
from typing import Final, Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from gateway.errors import UpstreamError
from gateway.upstream import faults
from gateway.upstream.response import Fields, Response

MAX_HEAD_BYTES: Final = 131_072
"""What may arrive without any of it being body: a head, or what surrounds a body in chunks."""

_ONE_WRITE_BYTES: Final = 65_536  # a request up to here is worth copying for the sake of one write
_CONTENT_LENGTH: Final = b"content-length"
_TRANSFER_ENCODING: Final = b"transfer-encoding"
_CHUNKED: Final = b"chunked"


class Keeper(Protocol):
    """Whom a connection belongs to."""

    def keep(self, connection: "Connection") -> None:
        """It is free for another request."""

    def let_end(self, connection: "Connection") -> None:
        """The rest of its answer is read by nobody; close it if that is long in coming."""

    def forget(self, connection: "Connection") -> None:
        """It is closed."""


class Connection(asyncio.Protocol):
    """One connection.

    Args:
        upstream: the configured name of the server.
        keeper: whom it belongs to.

    Attributes:
        is_closed: whether it takes no request any more.
        has_babbled: whether the server spoke unasked.
        since_s: when it last became free, or was left to its end; for the keeper.
    """

    def __init__(self, upstream: str, keeper: Keeper) -> None:
        self.is_closed = False
        self.has_babbled = False
        self.since_s = 0.0
        self._upstream = upstream
        self._keeper = keeper
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._parser: HttpResponseParser | None = HttpResponseParser(self)
        # What deployed servers get wrong, and any browser forgives.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._answer: asyncio.Future[Response] | None = None
        self._response: Response | None = None
        self._fields: dict[bytes, bytes] = {}
        self._unyielding = 0
        self._is_interim = False
        self._ends_with_connection = False
        self._is_paused = False

    def ask(self, head: bytes, body: bytes) -> asyncio.Future[Response]:
        """Write a request. The future has the answer once its head has arrived, or raises UpstreamError."""
        self._answer = self._loop.create_future()
        self._unyielding = 0
        if len(body) <= _ONE_WRITE_BYTES:
            self._transport.write(head + body)
        else:
            self._transport.writelines((head, body))
        return self._answer

    @property
    def is_free(self) -> bool:
        """Whether a request can be written."""
        return not (self.is_closed or self._transport.is_closing())

    # --- for the answer that comes on it ---

    def pause(self) -> None:
        """Take nothing more for now."""
        if not (self._is_paused or self.is_closed):
            self._is_paused = True
            self._transport.pause_reading()

    def resume(self) -> None:
        """Go on."""
        if self._is_paused and not self.is_closed:
            self._is_paused = False
            self._transport.resume_reading()

    def abort(self) -> None:
        """Close at once."""
        if not self.is_closed:
            self.is_closed = True
            self._keeper.forget(self)
            self._transport.abort()

    def let_end(self) -> None:
        """Nobody reads the rest of the answer."""
        self._keeper.let_end(self)

    # --- the transport ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The server has taken the connection."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one, but not by inheritance

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        if self._parser is None or self._answer is None:
            self.has_babbled = True
            self.abort()
            return
        self._unyielding += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            self._break(faults.unreadable(self._upstream))
            return
        if self._unyielding > MAX_HEAD_BYTES:
            self._break(faults.unreadable(self._upstream))

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is gone."""
        if self._response is not None and self._ends_with_connection and exc is None and not self.is_closed:
            self._response.end()
            self._response = self._answer = None
        self._break(faults.outcome_unknown(self._upstream))
        self._parser = None  # which refers to this object

    def _break(self, error: UpstreamError) -> None:
        """Close, and tell whoever waits for the answer."""
        if self._response is not None:
            self._response.fail(error)
        elif self._answer is not None and not self._answer.done():
            self._answer.set_exception(error)
            self._answer.exception()  # looked at, in case that whoever waited is leaving in this moment
        self._response = self._answer = None
        self.abort()

    # --- the parser ---

    def on_message_begin(self) -> None:
        """An answer begins, perhaps one for which nobody asked."""
        self._fields = {}
        if self._answer is None:
            self.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head; or of the trailer, which goes unread."""
        self._fields.setdefault(name.lower(), value)

    def on_headers_complete(self) -> None:
        """The head is complete."""
        assert self._parser is not None  # noqa: S101 -- it is what calls
        status = self._parser.get_status_code()
        fields, self._fields = self._fields, {}
        self._is_interim = 100 <= status < 200
        if self._is_interim or self._answer is None:
            return
        is_chunked = fields.get(_TRANSFER_ENCODING, b"").lower().rstrip().endswith(_CHUNKED)
        self._ends_with_connection = not is_chunked and _CONTENT_LENGTH not in fields
        self._response = Response(status, Fields(fields), self)
        if not self._answer.done():
            self._answer.set_result(self._response)

    def on_body(self, data: bytes) -> None:
        """A part of the body."""
        self._unyielding = 0
        if self._response is not None:
            self._response.feed(data)

    def on_message_complete(self) -> None:
        """The answer is complete, if it was one."""
        response, parser = self._response, self._parser
        if response is None or parser is None:
            return
        self._response = self._answer = None
        response.end()
        # What is still to be written, of a large request, is read by nobody.
        is_clean = parser.should_keep_alive() and self._transport.get_write_buffer_size() == 0
        if self.is_free and is_clean:
            self.resume()
            self._keeper.keep(self)
        else:
            self.abort()
