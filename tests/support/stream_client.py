"""A modern client by hand: reads its stream message by message, or does not read at all, or hangs up.

    async with opened(front, "subscriptions/listen", {"notifications": {"toolsListChanged": True}}) as stream:
        assert (await stream.message())["method"] == "notifications/subscriptions/acknowledged"

Nothing is read before it is asked for, beyond `buffered` bytes. Every wait has a bound.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from tests.support.gateway_app import Front
from tests.support.messages import PREFIX, good_request

WAIT_S: Final = 10.0
"""The bound of every wait."""

SUBSCRIPTION: Final = f"{PREFIX}subscriptionId"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"


class OpenStream:
    """One request and its reply, as far as it has been read.

    Attributes:
        status: the HTTP status, 0 until the head was read.
        headers: the response headers by lower-case name.
        comments: how many comments have been passed over.
        wire: every byte of the body that was read.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.comments = 0
        self.wire = bytearray()
        self._reader = reader
        self._writer = writer
        self._unread = b""
        self._is_over = False

    @property
    def is_stream(self) -> bool:
        """Whether the reply is an event stream."""
        return self.headers["content-type"].startswith("text/event-stream")

    async def head(self) -> int:
        """Read the head of the reply, if that was not done yet; returns the status."""
        if not self.status:
            async with asyncio.timeout(WAIT_S):
                head = await self._reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").rstrip().split("\r\n")
            self.headers = {name.strip().lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
            self.status = int(first.split(" ")[1])
        return self.status

    async def message(self) -> dict[str, Any]:
        """The next message; fails when the stream ends instead."""
        message = await self._next(wants_comments=False)
        assert message is not None, "the stream has ended"
        return message

    async def comment(self) -> None:
        """Wait for a comment; a message that comes instead fails the test."""
        before = self.comments
        message = await self._next(wants_comments=True)
        assert self.comments == before + 1, message

    async def rest(self) -> list[dict[str, Any]]:
        """All messages to the end of the reply."""
        messages = []
        while (message := await self._next(wants_comments=False)) is not None:
            messages.append(message)
        return messages

    async def answer(self) -> dict[str, Any]:
        """The response, however the reply comes; notifications before it are passed over."""
        await self.head()
        if self.is_stream:
            return (await self.rest())[-1]
        async with asyncio.timeout(WAIT_S):
            body = await self._reader.readexactly(int(self.headers["content-length"]))
        message: dict[str, Any] = json.loads(body)
        return message

    def abort(self) -> None:
        """Hang up."""
        self._writer.transport.abort()

    async def _next(self, *, wants_comments: bool) -> dict[str, Any] | None:
        await self.head()
        assert self.is_stream, await self.answer()
        async with asyncio.timeout(WAIT_S):
            while True:
                while b"\n\n" not in self._unread:
                    if self._is_over:
                        assert not self._unread
                        return None
                    self._unread += await self._chunk()
                event, self._unread = self._unread.split(b"\n\n", 1)
                if event.startswith(b":"):
                    self.comments += 1
                    if wants_comments:
                        return None
                    continue
                assert event.startswith(b"data: "), event[:80]
                message: dict[str, Any] = json.loads(event.removeprefix(b"data: "))
                return message

    async def _chunk(self) -> bytes:
        size = int(await self._reader.readuntil(b"\r\n"), 16)
        chunk = (await self._reader.readexactly(size + 2))[:-2]
        self._is_over = size == 0
        self.wire += chunk
        return chunk


async def send(
    front: Front | None,
    method: str,
    params: Mapping[str, Any] | None = None,
    *,
    path: str = "/mcp",
    url: str | None = None,
    buffered: int | None = None,
    **request: Any,
) -> OpenStream:
    """Send a request and leave the reply to be read; hang up in the end.

    Args:
        front: where to, unless `url` says it.
        method: of the request.
        params: without `_meta`.
        path: of the endpoint.
        url: in place of the front's own, as of a proxy before it.
        buffered: what the client's side of the connection may hold of a reply that is not read, in bytes.
        request: as in `good_request`.
    """
    headers, body = good_request(method, params, **request)
    address = urlsplit(url or (front.url if front else ""))
    sock = socket.socket()
    sock.setblocking(False)
    if buffered is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffered)
    await asyncio.get_running_loop().sock_connect(sock, (address.hostname, address.port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=buffered or 2**16)
    fields = [*headers, (b"Host", address.netloc.encode()), (b"Content-Length", str(len(body)).encode())]
    lines = [f"POST {path} HTTP/1.1".encode(), *(name + b": " + value for name, value in fields)]
    writer.write(b"\r\n".join([*lines, b"", body]))
    return OpenStream(reader, writer)


@asynccontextmanager
async def opened(front: Front, method: str, params: Any = None, **request: Any) -> AsyncIterator[OpenStream]:
    """`send`, and hang up when the block is left."""
    stream = await send(front, method, params, **request)
    try:
        yield stream
    finally:
        stream.abort()


@asynccontextmanager
async def listening(
    front: Front, *, id: str | int = 1, uris: list[str] | None = None, tools: bool = True, **request: Any
) -> AsyncIterator[OpenStream]:
    """A listener of tools and resources whose acknowledgement has been read; see its `granted`."""
    asked: dict[str, Any] = {"toolsListChanged": True} if tools else {}
    if uris is not None:
        asked["resourceSubscriptions"] = uris
    params = {"notifications": asked}
    async with opened(front, "subscriptions/listen", params, request_id=id, **request) as stream:
        acknowledgement = await stream.message()
        assert acknowledgement["method"] == ACKNOWLEDGED
        assert acknowledgement["params"]["_meta"] == {SUBSCRIPTION: id}
        yield stream
