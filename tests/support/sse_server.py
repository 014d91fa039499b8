"""A server of 2024-11-05: GET /sse is a stream that says where to POST, and has the answers.

    async with SseServer() as server, gateway_for(server, transport="sse") as front:
        assert (await front.call("hi")).text == "hi"

It has the tools `echo`; `ask`, which asks for a name; `report`, which tells of progress and logs; `hold`, which is not
answered before `release()`. `endpoint` is what the first event says, with `{id}` for the session; `accept` answers the
POSTs (202 by default); `streams` are the open ones. The log is that of `ScriptedUpstream`.
"""

import itertools
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.scripted import ECHO, Handler, ScriptedUpstream, Wire

FORM = {"message": "Name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


class SseServer(ScriptedUpstream):
    """See the module."""

    def __init__(self, endpoint: str = "/messages?session_id={id}") -> None:
        super().__init__(path="/sse")
        self.gate = self._serve_sse
        self.endpoint = endpoint
        self.framing: Callable[[bytes], bytes] = lambda data: b"event: message\ndata: " + data + b"\n\n"
        self.accept: Handler = lambda wire: wire.reply(202, b"Accepted")
        self.streams: dict[str, Wire] = {}
        self.held: list[tuple[Wire, dict[str, Any]]] = []
        self._numbers = itertools.count(1)
        self._questions: dict[Any, Any] = {}
        self._ids = itertools.count(0)

    async def say(self, stream: Wire, message: dict[str, Any]) -> None:
        """Write a message to a stream."""
        await stream.text(self.framing(json.dumps({"jsonrpc": "2.0", **message}).encode()))

    async def release(self) -> None:
        """Answer what is held."""
        held, self.held = self.held, []
        for stream, message in held:
            await self._answer(stream, message, message["params"]["arguments"]["text"])

    def cut(self) -> None:
        """Break every stream."""
        for stream in self.streams.values():
            stream.reset()

    async def _serve_sse(self, wire: Wire) -> None:
        request = wire.request
        address = urlsplit(request.path)
        if request.verb == "GET" and address.path == "/sse":
            await self._open_stream(wire)
        elif request.verb != "POST" or address.path == "/sse":
            await wire.reply(405)
        else:
            stream = self.streams.get(parse_qs(address.query).get("session_id", [""])[0])
            if stream is None:
                await wire.reply(404, b"Could not find session")
                return
            await self.accept(wire)
            await self._take(stream, request.message)

    async def _open_stream(self, wire: Wire) -> None:
        session = str(next(self._numbers))
        self.streams[session] = wire
        await wire.sse()
        await wire.text(f"event: endpoint\ndata: {self.endpoint.format(id=session)}\n\n: ping\n\n".encode())
        try:
            await wire.hang()
        finally:
            self.streams.pop(session, None)

    async def _take(self, stream: Wire, message: dict[str, Any]) -> None:
        match message.get("method"):
            case "initialize":
                result = {
                    "protocolVersion": "2024-11-05",
                    "capabilities": {"tools": {"listChanged": True}, "logging": {}},
                    "serverInfo": self.server_info,
                }
                await self.say(stream, {"id": message["id"], "result": result})
            case "tools/list":
                await self.say(stream, {"id": message["id"], "result": {"tools": [ECHO]}})
            case "tools/call":
                await self._serve_tool(stream, message)
            case None:
                call = self._questions.pop(message["id"])
                await self._answer(stream, call, message["result"]["content"]["name"])
            case method if "id" in message:
                result = (
                    {"result": {}}
                    if method in ("ping", "logging/setLevel")
                    else {"error": {"code": -32601, "message": "?"}}
                )
                await self.say(stream, {"id": message["id"], **result})

    async def _serve_tool(self, stream: Wire, message: dict[str, Any]) -> None:
        params = message["params"]
        match params["name"]:
            case "echo":
                await self._answer(stream, message, params["arguments"]["text"])
            case "hold":
                self.held.append((stream, message))
            case "ask":
                number = next(self._ids)
                self._questions[number] = message
                await self.say(stream, {"id": number, "method": "elicitation/create", "params": FORM})
            case "report":
                token = params["_meta"]["progressToken"]
                progress = {"progressToken": token, "progress": 1}
                await self.say(stream, {"method": "notifications/progress", "params": progress})
                await self.say(stream, {"method": "notifications/message", "params": {"level": "info", "data": "log"}})
                await self._answer(stream, message, "reported")

    async def _answer(self, stream: Wire, message: dict[str, Any], text: str) -> None:
        await self.say(stream, {"id": message["id"], "result": {"content": [{"type": "text", "text": text}]}})
