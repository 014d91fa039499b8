"""A client of 2025-11-25 with a session, as bare as the tests need it."""

import itertools
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx

from gateway.wire.jsonrpc import JsonObject, decode, encode
from gateway.wire.sse import SseEvent, SseParser

VERSION = "2025-11-25"
ACCEPT = "application/json, text/event-stream"


class LegacyClient:
    """One session at one endpoint; made by `connect`."""

    def __init__(self, http: httpx.AsyncClient, url: str) -> None:
        self.http = http
        self.url = url
        self.headers = {"Content-Type": "application/json", "Accept": ACCEPT}
        self.initialized: JsonObject = {}
        self._ids = itertools.count(1)

    @classmethod
    async def connect(
        cls, http: httpx.AsyncClient, url: str, capabilities: JsonObject | None = None, version: str = VERSION
    ) -> "LegacyClient":
        """Initialize a session that declares these capabilities."""
        client = cls(http, url)
        params = {
            "protocolVersion": version,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        reply = await client.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        client.initialized = decode(reply.content)["result"]
        client.headers["Mcp-Session-Id"] = reply.headers["Mcp-Session-Id"]
        client.headers["MCP-Protocol-Version"] = client.initialized["protocolVersion"]
        await client.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return client

    async def post(self, message: Any, **headers: str) -> httpx.Response:
        """POST a message and read the whole reply."""
        return await self.http.post(self.url, content=encode(message), headers={**self.headers, **headers})

    def stream(self, message: JsonObject) -> AbstractAsyncContextManager[httpx.Response]:
        """POST a message whose reply is read as it comes."""
        return self.http.stream("POST", self.url, content=encode(message), headers=self.headers)

    def listen(self, **headers: str) -> AbstractAsyncContextManager[httpx.Response]:
        """Open a GET stream."""
        return self.http.stream("GET", self.url, headers={**self.headers, **headers})

    def request(self, method: str, params: JsonObject | None = None) -> JsonObject:
        """A request with an id of its own."""
        return {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params or {}}

    def call(self, tool: str, arguments: JsonObject | None = None, **meta: Any) -> JsonObject:
        """A `tools/call` request."""
        params: JsonObject = {"name": tool, "arguments": arguments or {}}
        return self.request("tools/call", {**params, "_meta": meta} if meta else params)

    async def answer(self, question: JsonObject, result: JsonObject) -> None:
        """Answer a request of the server."""
        reply = await self.post({"jsonrpc": "2.0", "id": question["id"], "result": result})
        assert reply.status_code == 202


async def events(reply: httpx.Response) -> AsyncIterator[SseEvent]:
    """The events of a reply that is an event stream."""
    assert reply.headers["Content-Type"].startswith("text/event-stream")
    parser = SseParser(1 << 20)
    async for chunk in reply.aiter_bytes():
        for event in parser.feed(chunk):
            yield event


async def messages(reply: httpx.Response) -> AsyncIterator[JsonObject]:
    """The JSON-RPC messages of a reply that is an event stream."""
    async for event in events(reply):
        yield decode(event.data)
