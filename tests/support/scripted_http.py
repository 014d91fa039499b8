"""The socket side of `tests.support.scripted`: HTTP/1.1 by hand, so that a test can write any bytes it likes."""

import asyncio
import gzip
import json
import socket
import struct
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import brotli  # type: ignore[import-untyped]


@dataclass(frozen=True)
class Received:
    """One HTTP request, as it came.

    Attributes:
        verb: the HTTP method.
        path: the request target.
        raw_headers: names and values in the order and case in which they came.
        body: its bytes.
        connection: the number of the TCP connection, from 1: tells whether one was used again.
    """

    verb: str
    path: str
    raw_headers: tuple[tuple[str, str], ...]
    body: bytes
    connection: int

    @property
    def headers(self) -> dict[str, str]:
        """The headers by lower-case name."""
        return {name.lower(): value for name, value in self.raw_headers}

    @property
    def message(self) -> dict[str, Any]:
        """The JSON-RPC message; `{}` if the body is none."""
        try:
            message = json.loads(self.body)
        except ValueError:
            return {}
        return message if isinstance(message, dict) else {}

    @property
    def method(self) -> str:
        """What a log line calls it: the JSON-RPC method, "response" for a posted response, else the HTTP method."""
        message = self.message
        if "method" in message:
            return str(message["method"])
        return "response" if "id" in message else self.verb

    @property
    def params(self) -> dict[str, Any]:
        """The message's params; `{}` if there are none."""
        return self.message.get("params") or {}

    @property
    def id(self) -> Any:
        """The message's id."""
        return self.message.get("id")

    @property
    def session(self) -> str | None:
        """Its `Mcp-Session-Id`."""
        return self.headers.get("mcp-session-id")

    @property
    def progress_token(self) -> Any:
        """The progress token of its `_meta`, None if it has none."""
        return (self.params.get("_meta") or {}).get("progressToken")


class Wire:
    """One request and the socket on which to answer it. Every method that writes may be mixed with `raw`.

    Attributes:
        request: what is to be answered.
        bytewise: set it to send every byte in a TCP write of its own.
        gone: is set when the client has closed the connection.
        extra_headers: added to every answer's head (the session id of `initialize`, for one).
    """

    def __init__(self, request: Received, writer: asyncio.StreamWriter, gone: asyncio.Event) -> None:
        self.request = request
        self.bytewise = False
        self.gone = gone
        self.extra_headers: dict[str, str] = {}
        self.is_answered = False
        self.keeps_alive = True
        self._writer = writer
        self._is_chunked = False
        self._compress: Callable[[bytes], bytes] | None = None

    # -- whole answers

    async def reply(
        self,
        status: int,
        body: bytes = b"",
        media_type: str | None = None,
        headers: Mapping[str, str] | None = None,
        encoding: str | None = None,
    ) -> None:
        """A whole answer with a Content-Length; `encoding` is gzip, deflate or br."""
        fields = dict(headers or {})
        if media_type is not None:
            fields["Content-Type"] = media_type
        if encoding is not None:
            fields["Content-Encoding"] = encoding
            body = _ENCODERS[encoding](body)
        fields["Content-Length"] = str(len(body))
        await self.raw(self._head(status, fields) + body)

    async def message(self, message: Any, status: int = 200, **kwargs: Any) -> None:
        """A whole answer that is one JSON value; keyword arguments as in `reply`."""
        await self.reply(status, json.dumps(message).encode(), **{"media_type": "application/json", **kwargs})

    async def result(self, result: Any, **kwargs: Any) -> None:
        """A whole answer: the JSON-RPC result of this request."""
        await self.message({"jsonrpc": "2.0", "id": self.request.id, "result": result}, **kwargs)

    async def error(self, code: Any, text: str = "no", data: Any = None, *, status: int = 200, **kwargs: Any) -> None:
        """A whole answer: a JSON-RPC error for this request (`id=...` for another id)."""
        request_id = kwargs.pop("id", self.request.id)
        await self.message(error_message(request_id, code, text, data), status, **kwargs)

    # -- streams

    async def sse(
        self,
        headers: Mapping[str, str] | None = None,
        *,
        media_type: str = "text/event-stream",
        chunked: bool = True,
        encoding: str | None = None,
    ) -> None:
        """Begin an event stream; without `chunked` it ends with the connection. `encoding` is gzip or br, flushed
        at every event."""
        fields = {"Content-Type": media_type, **(headers or {})}
        if encoding is not None:
            fields["Content-Encoding"] = encoding
            self._compress = _stream_encoder(encoding)
        fields.update({"Transfer-Encoding": "chunked"} if chunked else {"Connection": "close"})
        await self.raw(self._head(200, fields))
        self._is_chunked = chunked
        self.keeps_alive = chunked

    async def text(self, data: bytes) -> None:
        """Bytes of the stream's body (compressed and framed as `sse` said)."""
        if self._compress is not None:
            data = self._compress(data)
        await self.raw(b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data)

    async def event(self, message: Any, *, id: str | None = None, name: str | None = None) -> None:
        """One event that carries a JSON value."""
        head = (f"event: {name}\n" if name else "") + (f"id: {id}\n" if id else "")
        await self.text(head.encode() + b"data: " + json.dumps(message).encode() + b"\n\n")

    async def notify(self, method: str, params: Mapping[str, Any], **kwargs: Any) -> None:
        """One event that carries a notification."""
        await self.event({"jsonrpc": "2.0", "method": method, "params": params}, **kwargs)

    async def end(self, message: Any = None, *, result: Any = None, error: Any = None) -> None:
        """End the stream, with a last event if one is given: a whole message, or this request's result or error."""
        if result is not None:
            message = {"jsonrpc": "2.0", "id": self.request.id, "result": result}
        if error is not None:
            message = {"jsonrpc": "2.0", "id": self.request.id, "error": error}
        if message is not None:
            await self.event(message)
        if self._is_chunked:
            await self.raw(b"0\r\n\r\n")
            self._is_chunked = False

    # -- the socket itself

    async def raw(self, data: bytes) -> None:
        """Bytes on the socket, as they are; nothing if the client is gone."""
        self.is_answered = True
        for piece in [data[i : i + 1] for i in range(len(data))] if self.bytewise else [data]:
            if self.gone.is_set():
                return
            self._writer.write(piece)
            try:
                await self._writer.drain()
            except ConnectionError:
                return
            if self.bytewise:
                await asyncio.sleep(0)

    def close(self) -> None:
        """Close the connection after what was written."""
        self.is_answered = True
        self.keeps_alive = False

    def reset(self) -> None:
        """Cut the connection with a TCP reset."""
        self.is_answered = True
        self.keeps_alive = False
        sock: socket.socket = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def hang(self) -> None:
        """Say nothing (more) until the client is gone."""
        self.is_answered = True
        self.keeps_alive = False
        await self.gone.wait()

    def _head(self, status: int, fields: Mapping[str, str]) -> bytes:
        lines = [f"HTTP/1.1 {status} X", *(f"{k}: {v}" for k, v in {**self.extra_headers, **fields}.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


def error_message(request_id: Any, code: Any, text: str = "no", data: Any = None) -> dict[str, Any]:
    """A JSON-RPC error response."""
    error = {"code": code, "message": text} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


class Connection(asyncio.StreamReaderProtocol):
    """One TCP connection; notices that the client went away while an answer is being written."""

    def __init__(self, number: int, serve: Callable[[Wire], Awaitable[None]], connections: set["Connection"]) -> None:
        super().__init__(asyncio.StreamReader(limit=2**26), self._run)
        self.gone = asyncio.Event()
        self.number = number
        self._serve = serve
        self._connections = connections
        self._transport: asyncio.Transport | None = None
        self._running: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._connections.add(self)
        super().connection_made(transport)

    def cut(self) -> None:
        """Stop whatever handler runs, and close."""
        if self._running is not None:
            self._running.cancel()
        if self._transport is not None:
            self._transport.abort()

    def eof_received(self) -> bool:
        self.gone.set()
        return bool(super().eof_received())

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        self._connections.discard(self)
        super().connection_lost(exc)

    async def _run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._running = asyncio.current_task()
        try:
            async for request in self._requests(reader):
                wire = Wire(request, writer, self.gone)
                await self._serve(wire)
                if not wire.keeps_alive:
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client is done, or `cut` was called: nobody waits for this task
        finally:
            writer.close()

    async def _requests(self, reader: asyncio.StreamReader) -> AsyncIterator[Received]:
        while head := await reader.readuntil(b"\r\n\r\n"):
            first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
            verb, path, _ = first.split(" ", 2)
            pairs = tuple((line.partition(":")[0], line.partition(":")[2].strip()) for line in lines)
            fields = {name.lower(): value for name, value in pairs}
            if fields.get("transfer-encoding") == "chunked":
                body = await _read_chunked(reader)
            else:
                body = await reader.readexactly(int(fields.get("content-length", "0")))
            yield Received(verb, path, pairs, body, self.number)


async def _read_chunked(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")
    return body


_ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "identity": bytes,
}


def _stream_encoder(encoding: str) -> Callable[[bytes], bytes]:
    if encoding == "br":
        br = brotli.Compressor()
        return lambda data: br.process(data) + br.flush()
    compressor = zlib.compressobj(wbits=31)
    return lambda data: compressor.compress(data) + compressor.flush(zlib.Z_SYNC_FLUSH)
