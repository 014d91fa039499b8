"""A legacy server (2025-11-25, Streamable HTTP with sessions) that costs next to nothing.

Replies are bytes prepared at start; only the request's id is new in each. It speaks just enough HTTP for a
client that sends `Content-Length`. Run as a process: it prints its port, and ends with its standard input. With
`--get-streams` a GET opens a stream on which nothing comes; without, it is refused. With `--stdio` the same server
speaks over its standard input and output instead, for a peer that knows no other upstream.
"""

import asyncio
import itertools
import sys
from collections.abc import Callable
from typing import Any, Final, cast

import orjson
import uvloop

from tests.bench.messages import ASK, LEGACY, QUESTION, TOOLS, result_of, tool_list

_JSON: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n"
_SSE: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
_ACCEPTED: Final = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
_DELETED: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_NO_GET: Final = b"HTTP/1.1 405 Method Not Allowed\r\nAllow: POST, DELETE\r\nContent-Length: 0\r\n\r\n"
_ON_GET: Final = _SSE if "--get-streams" in sys.argv else _NO_GET
_REFUSAL: Final = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}'
)
_NO_SESSION: Final = b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
    len(_REFUSAL),
    _REFUSAL,
)

Reply = Callable[[bytes], bytes]
"""Makes the whole HTTP response to the request with this id (as JSON text)."""


def _json_reply(result: bytes, extra: bytes = b"") -> Reply:
    def reply(request_id: bytes) -> bytes:
        body = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (request_id, result)
        return _JSON % (extra, len(body)) + body

    return reply


def _sse_reply(result: bytes) -> Reply:
    def reply(request_id: bytes) -> bytes:
        return _SSE + _last_event(b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (request_id, result))

    return reply


def _event(message: bytes) -> bytes:
    """One event in one chunk."""
    event = b"event: message\r\ndata: %b\r\n\r\n" % message
    return b"%x\r\n%b\r\n" % (len(event), event)


def _last_event(message: bytes) -> bytes:
    """One event, and the end of the stream."""
    return _event(message) + b"0\r\n\r\n"


_SESSIONS: Final = itertools.count(1)
_INITIALIZED: Final = orjson.dumps(
    {
        "protocolVersion": LEGACY,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "canned", "version": "1"},
    }
)
_CALLS: Final[dict[str, Reply]] = {
    name: (_json_reply if reply == "json" else _sse_reply)(result_of(size)) for name, (reply, size) in TOOLS.items()
}
_OTHERS: Final[dict[str, Reply]] = {
    "tools/list": _json_reply(orjson.dumps({"tools": tool_list()})),
    "ping": _json_reply(b"{}"),
}


def _unknown(request_id: bytes) -> bytes:
    body = b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32601,"message":"Method not found"}}' % request_id
    return _JSON % (b"", len(body)) + body


_QUESTION: Final = _event(orjson.dumps({"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": QUESTION}))
_HELD: Final[dict[bytes, tuple[asyncio.WriteTransport, Any]]] = {}
"""The calls that wait for an answer: the stream of each and the id of its request, by session."""


def _resume(session: bytes) -> None:
    """Ends the held call of a session, whatever the answer was, unless its stream was given up."""
    transport, request_id = _HELD.pop(session)
    if transport.is_closing():
        return
    result = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (orjson.dumps(request_id), result_of(200))
    transport.write(_last_event(result))


def _open_session(request_id: bytes) -> bytes:
    extra = b"Mcp-Session-Id: canned-%08d\r\n" % next(_SESSIONS)
    return _json_reply(_INITIALIZED, extra)(request_id)


def answer(message: dict[str, Any], *, in_session: bool) -> bytes:
    """The HTTP response to one posted message; without a session only `initialize` gets anywhere."""
    method = message.get("method")
    if method == "initialize":
        return _open_session(orjson.dumps(message["id"]))
    if not in_session:
        return _NO_SESSION
    if "id" not in message or method is None:
        return _ACCEPTED
    if method == "tools/call":
        return _CALLS[message["params"]["name"]](orjson.dumps(message["id"]))
    return _OTHERS.get(str(method), _unknown)(orjson.dumps(message["id"]))


class Canned(asyncio.Protocol):
    """One connection, requests one after the other."""

    def __init__(self) -> None:
        """Starts with nothing received."""
        self._received = b""
        self._transport: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport to answer on."""
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's is none by inheritance

    def data_received(self, data: bytes) -> None:
        """Answers a request as soon as it is complete."""
        data = self._received + data if self._received else data
        head_end = data.find(b"\r\n\r\n") + 4
        if head_end < 4:
            self._received = data
            return
        head = data[:head_end].lower()
        if not head.startswith(b"post"):
            self._received = b""
            self._transport.write(_DELETED if head.startswith(b"delete") else _ON_GET)
            return
        start = head.index(b"\r\ncontent-length:") + 17
        length = int(head[start : head.index(b"\r", start)])
        if len(data) < head_end + length:
            self._received = data
            return
        self._received = b""
        message = orjson.loads(data[head_end:])
        start = head.find(b"\r\nmcp-session-id:") + 17
        self._reply(message, head[start : head.index(b"\r", start)].strip() if start > 16 else b"")

    def _reply(self, message: dict[str, Any], session: bytes) -> None:
        method = message.get("method")
        if method == "tools/call" and message["params"]["name"] == ASK:
            _HELD[session] = (self._transport, message["id"])
            self._transport.write(_SSE + _QUESTION)
            return
        self._transport.write(answer(message, in_session=bool(session)))
        if method is None and session in _HELD:
            _resume(session)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Canned, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


def _serve_stdio() -> None:
    """A message a line, each answered with the body that HTTP would carry."""
    for line in sys.stdin.buffer:
        reply = answer(orjson.loads(line), in_session=True)
        _, _, body = reply.partition(b"\r\n\r\n")
        if body:
            sys.stdout.buffer.write(body + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    if "--stdio" in sys.argv:
        _serve_stdio()
    else:
        uvloop.run(_serve())
