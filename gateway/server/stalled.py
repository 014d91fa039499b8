"""uvicorn's HTTP protocol, without patience for who begins a request and does not go on, or does not read the reply.

uvicorn waits for ever: for a first byte, for the rest of a head, for the rest of a body, and with a reply of megabytes
in its hands for somebody to take it. A request that comes in one piece, as nearly all do, costs no timer, and neither
does a reply that is read.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

STALL_S: Final = 30.0
"""How long a client may stay silent before a request is complete."""

HEAD_S: Final = 60.0
BODY_S: Final = 600.0
"""How long the head of a request, and its body, may take in all, even of a client that sends a byte now and then."""

UNREAD_S: Final = 60.0
"""How long a client may take nothing of a reply that waits for it."""

_TOO_LATE: Final = (
    b"HTTP/1.1 408 Request Timeout\r\n"
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: 28\r\nconnection: close\r\n\r\n"
    b"The request did not complete"
)


class StalledProtocol(HttpToolsProtocol):
    """One connection of a client; knows whether it is in the head of a request, in its body, or between requests."""

    is_in_head = False
    is_in_body = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._heard_s = self._began_s = self.loop.time()
        self._stall: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has connected, and should say why."""
        super().connection_made(transport)
        self._stall = self.loop.call_later(STALL_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone."""
        super().connection_lost(exc)
        for timer in (self._stall, self._unread):
            if timer is not None:
                timer.cancel()

    def pause_writing(self) -> None:
        """More waits for the client than the connection can hold."""
        super().pause_writing()
        self._look_for_reader(None)

    def resume_writing(self) -> None:
        """The client has read."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        super().data_received(data)
        if self.is_in_head or self.is_in_body:
            self._heard_s = self.loop.time()
            if self._stall is None:
                self._stall = self.loop.call_later(STALL_S, self._look)

    def on_message_begin(self) -> None:
        """A request begins."""
        self.is_in_head = True
        self._began_s = self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """What follows is the body."""
        self.is_in_head, self.is_in_body = False, True
        self._began_s = self.loop.time()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """What follows, if anything, is another request."""
        self.is_in_body = False
        super().on_message_complete()

    def _look(self) -> None:
        """Give up a client that has been silent for too long, or look again later."""
        self._stall = None
        has_asked = self.cycle is not None
        if self.transport.is_closing() or (has_asked and not self.is_in_head and not self.is_in_body):
            return
        ends_s = self._began_s + (BODY_S if self.is_in_body else HEAD_S)
        left_s = min(self._heard_s + STALL_S, ends_s) - self.loop.time()
        if left_s > 0 or self.flow.read_paused:  # paused: it is us who do not listen
            self._stall = self.loop.call_later(max(left_s, 1.0), self._look)
            return
        if not self.is_in_body and (not has_asked or self.cycle.response_complete):
            self.transport.write(_TOO_LATE)
        self.transport.close()

    def _look_for_reader(self, before: int | None) -> None:
        """Drop a connection of whose reply nothing was taken since the last look, or look again later."""
        size = self.transport.get_write_buffer_size()
        if before is not None and size >= before:
            self.transport.abort()
        else:
            self._unread = self.loop.call_later(UNREAD_S, self._look_for_reader, size)
