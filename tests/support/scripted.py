"""A scripted upstream on a real socket: what it answers, down to the bytes, is the test's own text.

    async with ScriptedUpstream() as upstream:          # a well-behaved legacy server ("U-STD") at upstream.url
        ...
        assert upstream.methods() == ["server/discover", "initialize", "notifications/initialized", "tools/call"]

**Defaults** (a legacy server, 2025-11-25): `initialize` gives a session `sess-1`, `sess-2` and so on;
`notifications/*` and posted responses 202; `tools/list` one tool `echo`; `tools/call echo` its `text`; any other
request -32601 in a 200; an unknown session 404 without a body, a request without a session 400; whatever is of
2026-07-28, 400 with code -32000; GET 405; DELETE forgets the session. Change them by attribute: `version`,
`capabilities`, `tools`, `server_info`, `instructions`, `with_sessions`, `unknown_session`.
`ScriptedUpstream(era="modern")` is a 2026-07-28 server instead: it answers `server/discover`, and the others with
`resultType` and no sessions.

**Handlers** replace the default for one JSON-RPC method, or for `GET`, `DELETE`, `response` (a posted response):

    @upstream.on("tools/call")
    async def slow(wire: Wire) -> None:
        await wire.sse()
        await wire.notify("notifications/progress", {"progressToken": wire.request.progress_token, "progress": 1})
        await wire.end(result={"content": []})

    upstream.on("tools/list", lambda wire: wire.error(-32603, status=500))
    upstream.gate = wall            # runs before everything; has it answered (or hung up), nothing else runs

`on(method, handler, times=1)` applies to the next call only; several are used up in order. A handler runs after the
session check (`gate` before it), and may fall back to the default with `await upstream.answer(wire)`. `Wire` (see
scripted_http) writes whole answers (`reply`, `message`, `result`, `error`), streams (`sse`, `text`, `event`, `notify`,
`end`), raw bytes (`raw`), byte by byte (`bytewise = True`), and hangs up (`close`, `reset`, `hang`, `gone`).

**Questions**: `answer = await upstream.ask(wire, "elicitation/create", {...}, id="e-1")` sends a request on the
stream of `wire` and waits for the posted response. **GET**: `upstream.offer_get()` makes GET an open event stream;
`upstream.push(message)` writes to every open one.

**The log**: `upstream.log` has every request as `Received`, in order of arrival; `received("tools/call")` those of one
method; `await upstream.seen("tools/call", 2)` waits for the second (bounded). A handler that raises fails the test
when the block is left.
"""

import asyncio
import inspect
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Self, overload

from tests.support.scripted_http import Connection, Received, Wire, error_message

__all__ = ["Handler", "Received", "ScriptedUpstream", "Wire", "error_message"]

Handler = Callable[[Wire], Awaitable[None]]

WAIT_S = 10.0
"""The bound of every wait."""

MODERN = "2026-07-28"
ECHO = {
    "name": "echo",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


class ScriptedUpstream:
    """See the module."""

    def __init__(self, era: Literal["legacy", "modern"] = "legacy", *, path: str = "/mcp") -> None:
        self.era = era
        self.path = path
        self.version = "2025-11-25"
        self.capabilities: dict[str, Any] = {"tools": {}}
        self.server_info = {"name": "u", "version": "1"}
        self.instructions: str | None = None
        self.tools: list[dict[str, Any]] = [ECHO]
        self.with_sessions = True
        self.unknown_session: Handler = lambda wire: wire.reply(404)
        self.gate: Handler | None = None
        self.sessions: set[str] = set()
        self.log: list[Received] = []
        self.connections = 0
        self.port = 0
        self._handlers: dict[str, Handler] = {}
        self._once: defaultdict[str, deque[Handler]] = defaultdict(deque)
        self._arrival = asyncio.Condition()
        self._answers: dict[Any, asyncio.Future[dict[str, Any]]] = {}
        self._streams: list[Wire] = []
        self._failures: list[Exception] = []
        self._server: asyncio.Server | None = None
        self._open: set[Connection] = set()
        self._minted = 0

    # -- life

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()
        if self._failures and exc[0] is None:
            raise self._failures[0]

    async def start(self, port: int = 0) -> None:
        """Listen; on the port that it had before, if it was stopped."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connect, "127.0.0.1", port or self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Refuse connections, and cut those that are open."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            for connection in list(self._open):
                connection.cut()
            await server.wait_closed()

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self.port}{self.path}"

    # -- the script

    @overload
    def on(self, method: str, handler: Handler, *, times: int | None = None) -> Handler: ...

    @overload
    def on(self, method: str, *, times: int | None = None) -> Callable[[Handler], Handler]: ...

    def on(
        self, method: str, handler: Handler | None = None, *, times: int | None = None
    ) -> Handler | Callable[[Handler], Handler]:
        """Answer a method with a handler: always, or the next `times` times; without one, a decorator."""
        if handler is None:
            return lambda function: self.on(method, function, times=times)
        if times is None:
            self._handlers[method] = handler
        else:
            self._once[method].extend([handler] * times)
        return handler

    async def ask(self, wire: Wire, method: str, params: Mapping[str, Any] | None, *, id: Any) -> dict[str, Any]:
        """Send the client a request on an open stream, and wait for its response (the whole message)."""
        self._answers[id] = asyncio.get_running_loop().create_future()
        await wire.event({"jsonrpc": "2.0", "id": id, "method": method} | ({"params": params} if params else {}))
        return await asyncio.wait_for(self._answers[id], WAIT_S)

    def offer_get(self) -> None:
        """Make GET an event stream that stays open."""
        self.on("GET", self._hold_stream)

    async def push(self, message: Mapping[str, Any]) -> None:
        """Write an event to every open GET stream."""
        for wire in self._streams:
            await wire.event(message)

    def forget(self, session: str | None = None) -> None:
        """Lose one session, or all of them."""
        self.sessions -= self.sessions.copy() if session is None else {session}

    # -- the log

    def methods(self) -> list[str]:
        """What was received, in order, each by its `Received.method`."""
        return [received.method for received in self.log]

    def received(self, method: str) -> list[Received]:
        """Everything received of one method."""
        return [received for received in self.log if received.method == method]

    async def seen(self, method: str, count: int = 1) -> Received:
        """Wait for the `count`-th request of a method."""

        async def wait() -> None:
            async with self._arrival:
                await self._arrival.wait_for(lambda: len(self.received(method)) >= count)

        try:
            await asyncio.wait_for(wait(), WAIT_S)
        except TimeoutError:
            raise AssertionError(f"no {method!r} number {count} among {self.methods()}") from None
        return self.received(method)[count - 1]

    # -- one request

    def _connect(self) -> Connection:
        self.connections += 1
        return Connection(self.connections, self._serve, self._open)

    async def _serve(self, wire: Wire) -> None:
        self.log.append(wire.request)
        async with self._arrival:
            self._arrival.notify_all()
        try:
            if self.gate is not None:
                await self._call(self.gate, wire)
            if not wire.is_answered:
                await self._script(wire)
            assert wire.is_answered, f"the handler of {wire.request.method!r} did not answer"
        except Exception as failure:
            self._failures.append(failure)
            wire.reset()

    async def _script(self, wire: Wire) -> None:
        method = wire.request.method
        if self.era == "legacy" and await self._refuse(wire):
            return
        once = self._once[method]
        handler = once.popleft() if once else self._handlers.get(method, self.answer)
        await self._call(handler, wire)

    async def _call(self, handler: Handler, wire: Wire) -> None:
        outcome = handler(wire)
        if inspect.isawaitable(outcome):
            await outcome

    async def _refuse(self, wire: Wire) -> bool:
        """What a legacy server refuses before it looks at the method: another era, another session."""
        request = wire.request
        if request.method == "server/discover" or request.headers.get("mcp-protocol-version") == MODERN:
            if "server/discover" in self._handlers or self._once["server/discover"]:
                return False
            await wire.error(-32000, "Bad Request", status=400, id=None)
        elif request.method == "initialize" or not self.with_sessions:
            return False
        elif request.session is None:
            await wire.reply(400)
        elif request.session not in self.sessions:
            await self._call(self.unknown_session, wire)
        else:
            return False
        return True

    async def answer(self, wire: Wire) -> None:
        """The default answer."""
        request = wire.request
        match request.method:
            case "initialize" if self.era == "legacy":
                await self._initialize(wire)
            case "server/discover" if self.era == "modern":
                await wire.result(self.discover_result())
            case "tools/list":
                await wire.result(self._in_era({"tools": self.tools}, cacheable=True))
            case "tools/call" if request.params.get("name") == "echo":
                text = request.params.get("arguments", {}).get("text")
                await wire.result(self._in_era({"content": [{"type": "text", "text": text}]}))
            case "response":
                self._take_answer(request)
                await wire.reply(202)
            case "GET":
                await wire.reply(405)
            case "DELETE":
                self.forget(request.session)
                await wire.reply(200 if self.era == "legacy" else 405)
            case method if method.startswith("notifications/"):
                await wire.reply(202)
            case _:
                await wire.error(-32601, "Method not found", status=200 if self.era == "legacy" else 404)

    async def _initialize(self, wire: Wire) -> None:
        if self.with_sessions:
            self._minted += 1
            session = f"sess-{self._minted}"
            self.sessions.add(session)
            wire.extra_headers["Mcp-Session-Id"] = session
        result = {"protocolVersion": self.version, "capabilities": self.capabilities, "serverInfo": self.server_info}
        await wire.result(result | self._instructions())

    def discover_result(self) -> dict[str, Any]:
        """What `server/discover` is answered with by a modern server."""
        result = {"supportedVersions": [MODERN], "capabilities": self.capabilities} | self._instructions()
        return self._in_era(result, cacheable=True)

    def _instructions(self) -> dict[str, Any]:
        return {} if self.instructions is None else {"instructions": self.instructions}

    def _in_era(self, result: dict[str, Any], *, cacheable: bool = False) -> dict[str, Any]:
        if self.era == "legacy":
            return result
        meta = {"io.modelcontextprotocol/serverInfo": self.server_info}
        hints = {"ttlMs": 0, "cacheScope": "private"} if cacheable else {}
        return {"resultType": "complete", **hints, "_meta": meta, **result}

    def _take_answer(self, request: Received) -> None:
        waiting = self._answers.get(request.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(request.message)

    async def _hold_stream(self, wire: Wire) -> None:
        await wire.sse()
        self._streams.append(wire)
        try:
            await wire.hang()
        finally:
            self._streams.remove(wire)
