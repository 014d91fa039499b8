"""Writes the reply to one request: JSON if the result comes first, else a stream that begins when there is a reason.

A notification is a reason, and so is a silence long enough for a proxy to lose patience. Once a stream has begun,
everything travels in it, errors too. 2026-07-28, basic/transports/streamable-http, "Sending Messages to the Server".
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

from starlette.types import Receive, Send

from gateway.alarms import Alarms
from gateway.core.outcome import Outcome
from gateway.wire.jsonrpc import JsonObject, Pieces, RequestId, encode, encode_response
from gateway.wire.sse import COMMENT, encode_event

RawHeaders = list[tuple[bytes, bytes]]

_JSON: Final = (b"content-type", b"application/json")
_STREAM: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
_WATCH_AFTER_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class ReplyTimes:
    """How long a client's connection may stay silent, in seconds.

    Args:
        stream_after_s: silence after which a reply becomes a stream.
        keep_alive_s: silence on a stream after which a comment is sent.
    """

    stream_after_s: float = 5.0
    keep_alive_s: float = 15.0
    watch: Alarms = field(init=False, repr=False, compare=False)
    """Rings for replies whose client should be watched."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "watch", Alarms(_WATCH_AFTER_S))


class ClientReply:
    """The reply to one request. Belongs to the task that serves the request, and cancels it if the client leaves.

    Args:
        request_id: echoed with its type.
        receive: tells of the client's leaving.
        send: takes the reply.
        headers: response headers that every kind of reply carries.
        times: when to break the silence.

    Attributes:
        has_left: the client closed the connection before its reply was complete.
        is_stream: whether a stream has begun.
    """

    def __init__(
        self, request_id: RequestId, receive: Receive, send: Send, headers: RawHeaders, times: ReplyTimes
    ) -> None:
        self.has_left = False
        self.is_stream = False
        self._request_id = request_id
        self._receive = receive
        self._send = send
        self._headers = headers
        self._times = times
        self._loop = loop = asyncio.get_running_loop()
        self._server_task = asyncio.current_task()
        self._is_writing = False
        self._is_done = False
        self._watcher: asyncio.Task[None] | None = None
        self._comment: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        times.watch.set(self, loop.time())  # most calls are over before anybody needs to watch

    async def notify(self, notification: JsonObject) -> None:
        """Send a notification; begins the stream if it has not begun. Waits while the client reads slowly.

        One that cannot be written as JSON is dropped.
        """
        if self._is_done:
            return
        try:
            body = encode(notification)
        except ValueError:
            return
        await self._write(encode_event(body))

    async def finish(self, outcome: Outcome) -> None:
        """Send the response and end the reply; whatever would come after it is not sent.

        Raises:
            ValueError: the outcome cannot be written as JSON; nothing was sent.
        """
        if self._is_done:
            return
        pieces = encode_response(self._request_id, outcome.body)
        self._stop()
        if self._comment is not None:
            await self._comment
        if self.is_stream:
            event = encode_event(b"".join(pieces))
            await self._send({"type": "http.response.body", "body": event, "more_body": False})
            return
        await _send_pieces(self._send, outcome.status, pieces, [*self._headers, *to_raw(outcome.headers)])

    def close(self) -> None:
        """Let go of everything, whether or not the reply was sent."""
        if not self._is_done:
            self._stop()

    def _stop(self) -> None:
        self._is_done = True
        self._times.watch.cancel(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._watcher is not None:
            self._watcher.cancel()

    # --- the stream ---

    async def _write(self, chunk: bytes) -> None:
        self._is_writing = True
        try:
            if not self.is_stream:
                self.is_stream = True
                headers = [*_STREAM, *self._headers]
                await self._send({"type": "http.response.start", "status": 200, "headers": headers})
            await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
        finally:
            self._is_writing = False

    # --- the client, and its patience ---

    def ring(self) -> None:
        """The call takes long enough for its client to lose patience."""
        self._watcher = self._loop.create_task(self._wait_until_left())
        self._timer = self._loop.call_later(self._times.stream_after_s, self._break_silence)

    async def _wait_until_left(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self._is_done and self._server_task is not None:
            self.has_left = True
            self._server_task.cancel()

    def _break_silence(self) -> None:
        # While a write is under way, the connection is either busy or the client is not reading: no comment is due.
        if not self._is_writing:
            self._comment = self._loop.create_task(self._write(COMMENT))
        self._timer = self._loop.call_later(self._times.keep_alive_s, self._break_silence)


async def send_json(send: Send, status: int, body: bytes, headers: RawHeaders) -> None:
    """Send a complete JSON reply."""
    await _send_pieces(send, status, [body], headers)


async def _send_pieces(send: Send, status: int, pieces: Pieces, headers: RawHeaders) -> None:
    length = (b"content-length", str(sum(map(len, pieces))).encode())
    await send({"type": "http.response.start", "status": status, "headers": [_JSON, length, *headers]})
    last = pieces.pop()
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": last})


async def send_empty(send: Send, status: int, headers: RawHeaders) -> None:
    """Send a reply without a body."""
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"0"), *headers]})
    await send({"type": "http.response.body"})


def to_raw(headers: tuple[tuple[str, str], ...]) -> RawHeaders:
    """Headers as ASGI has them; what cannot be a header value is left out."""
    raw = []
    for name, value in headers:
        if value.isprintable():
            raw.append((name.encode("latin-1", "ignore"), value.encode("latin-1", "replace")))
    return raw
