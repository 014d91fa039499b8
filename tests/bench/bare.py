"""The reference: the least that a proxy in this language and with these libraries can do.

Starlette and aiohttp under one uvicorn worker. It parses the request, encodes it again, sends it over one
warm session, parses the reply, encodes it again and gives it back as JSON. No checks, no translation, no
choice of session: what the gateway costs beyond this is the gateway's own doing. Run as a process with its
port and the upstream's port as arguments.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.bench.messages import LEGACY

_ACCEPT = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


async def _open_session(http: aiohttp.ClientSession, url: str) -> dict[str, str]:
    params = {
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "bare", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    async with http.post(url, data=orjson.dumps(message), headers=_ACCEPT) as reply:
        await reply.read()
        headers = {
            **_ACCEPT,
            "MCP-Protocol-Version": LEGACY,
            "Mcp-Session-Id": reply.headers["Mcp-Session-Id"],
        }
    done = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    async with http.post(url, data=done, headers=headers) as reply:
        await reply.read()
    return headers


def _message_of(body: bytes) -> bytes:
    """The JSON of a reply: the body itself, or the data of its only event."""
    start = body.find(b"data: ", 0, 64)
    return body if start < 0 else body[start + 6 : body.index(b"\r\n\r\n", start)]


def application(upstream: str) -> Starlette:
    """The proxy in front of one upstream."""
    http: aiohttp.ClientSession
    headers: dict[str, str]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        nonlocal http, headers
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
            headers = await _open_session(http, upstream)
            yield

    async def proxy(request: Request) -> Response:
        message = orjson.loads(await request.body())
        async with http.post(upstream, data=orjson.dumps(message), headers=headers) as reply:
            body = await reply.read()
        return Response(orjson.dumps(orjson.loads(_message_of(body))), media_type="application/json")

    async def ready(_: Request) -> Response:
        return Response()

    routes = [Route("/mcp", proxy, methods=["POST"]), Route("/readyz", ready)]
    return Starlette(routes=routes, lifespan=lifespan)


if __name__ == "__main__":
    uvicorn.run(
        application(f"http://127.0.0.1:{sys.argv[2]}/mcp"),
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_level="warning",
    )
