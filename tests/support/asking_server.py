"""A legacy server on a real socket that asks its client, and counts what it executes.

    async with AskingServer(correlated=False) as server:
        @server.tool
        async def book(call: Call) -> str:
            answer = await call.ask("elicitation/create", FORM)
            return answer["content"]["name"]

It keeps sessions, gives its requests the ids 0, 1, 2 and so on in each of them, and runs on when a client goes away,
as the SDKs' stateful servers do; `notifications/cancelled` and DELETE end a call. Options: `version` that it
negotiates; `correlated`: whether questions travel on the stream of their call or on the session's GET stream, where
they are lost if nobody listens; `json_replies`: answers a POST with JSON (then never correlated); `event_ids`: streams
can be picked up with `Last-Event-ID`; `polled`: that too, and each response that carries a stream ends after one
message, that to the POST before any. Without `with_sessions` it has no sessions to answer in.

What tests look at: `executions` by the argument `key` (or the tool's name), `answers`, `cancelled`, `deleted`,
`resumptions`, `sessions`, `running`. `await server.until(condition)` waits for any of it, with a bound. A tool that
raises anything but `RpcError` fails the test when the block is left.
"""

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

from gateway.wire.jsonrpc import Json, JsonObject, RequestId, decode, encode, error_object, error_response, response
from tests.support.asking_call import Answer, Call, Question, RpcError, Stream

__all__ = ["AskingServer", "Call", "RpcError", "Session"]

Handler = Callable[[Call], Awaitable[Any]]

WAIT_S = 10.0
"""The bound of every wait."""

SESSION, VERSION = "Mcp-Session-Id", "MCP-Protocol-Version"


@dataclass(eq=False)
class Session:
    """A session, as the server sees it."""

    id: str
    capabilities: JsonObject
    aside: Stream = field(default_factory=lambda: Stream(None))
    ids: "itertools.count[int]" = field(default_factory=itertools.count)
    pending: dict[RequestId, Question] = field(default_factory=dict)
    calls: dict[RequestId, "asyncio.Task[None]"] = field(default_factory=dict)
    streams: dict[str, Stream] = field(default_factory=dict)


class AskingServer:
    """See the module."""

    def __init__(
        self,
        *,
        version: str = "2025-11-25",
        correlated: bool = True,
        json_replies: bool = False,
        event_ids: bool = False,
        polled: bool = False,
        with_sessions: bool = True,
    ) -> None:
        self.version = version
        self.correlated = correlated and not json_replies
        self.json_replies = json_replies
        self.event_ids = event_ids or polled
        self.polled = polled
        self.with_sessions = with_sessions
        self.tools: dict[str, Handler] = {}
        self.prompts: dict[str, Handler] = {}
        self.resources: dict[str, Handler] = {}
        self.listing: Handler | None = None
        self.annotations: dict[str, JsonObject] = {}
        self.executions: Counter[str] = Counter()
        self.sessions: dict[str, Session] = {}
        self.deleted: list[str] = []
        self.resumptions = 0
        self.cancelled: list[RequestId] = []
        self.answers: list[Answer] = []
        self.unheard: list[JsonObject] = []
        self.levels: list[str] = []
        self.running: set[asyncio.Task[None]] = set()
        self.url = ""
        self._failures: list[BaseException] = []
        self._changed = asyncio.Condition()
        self._numbers = itertools.count(1)
        self._stateless = Session("", {})
        self._runner: web.AppRunner | None = None

    # --- life ---

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("POST", "/mcp", self._post)
        app.router.add_route("GET", "/mcp", self._get)
        app.router.add_route("DELETE", "/mcp", self._delete)
        # Without a backlog for all of a test's calls at once, some would wait for the kernel's next attempt.
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/mcp"
        return self

    async def __aexit__(self, *exc: object) -> None:
        for task in list(self.running):
            task.cancel()
        if self.running:
            await asyncio.wait(self.running)
        assert self._runner is not None
        await self._runner.cleanup()
        if self._failures and exc[0] is None:
            raise self._failures[0]

    def tool(self, handler: Handler) -> Handler:
        """Offer a tool under the name of its function."""
        self.tools[handler.__name__] = handler
        return handler

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until something is so; what happens at the server is what may change it."""
        async with asyncio.timeout(WAIT_S), self._changed:
            await self._changed.wait_for(condition)

    def forget(self, session: Session) -> None:
        """Lose a session without a word, as a server that was restarted behind its address; its streams end."""
        self.sessions.pop(session.id, None)
        for stream in (session.aside, *session.streams.values()):
            stream.cut()
        for task in session.calls.values():
            task.cancel()

    # --- requests ---

    async def _post(self, http: web.Request) -> web.StreamResponse:
        message: Json = decode(await http.read())
        if message.get("method") == "initialize":
            return self._initialize(message)
        session = self._session_of(http)
        if session is None:
            return self._unknown(message.get("id"))
        if "method" not in message:
            await self._take_answer(session, message)
            return web.Response(status=202)
        if "id" not in message:
            await self._take_note(session, message)
            return web.Response(status=202)
        return await self._call(http, session, message)

    async def _get(self, http: web.Request) -> web.StreamResponse:
        session = self._session_of(http)
        if session is None:
            return self._unknown(None)
        last_id = http.headers.get("Last-Event-ID")
        if last_id is None:
            if session.aside.readers:
                return web.Response(status=409)
            return await self._carry(http, session.aside)
        name, _, position = last_id.rpartition("-")
        stream = session.streams.get(name)
        if stream is None:
            return web.Response(status=400)
        self.resumptions += 1
        return await self._carry(http, stream, 0 if stream.repeats else int(position), most=1 if self.polled else None)

    async def _delete(self, http: web.Request) -> web.StreamResponse:
        session = self._session_of(http)
        if session is None:
            return self._unknown(None)
        self.forget(session)
        self.deleted.append(session.id)
        await self._tell()
        return web.Response(status=200)

    def _initialize(self, message: JsonObject) -> web.Response:
        session = Session(f"session-{next(self._numbers)}", message["params"]["capabilities"])
        headers = {}
        if self.with_sessions:
            self.sessions[session.id] = session
            headers = {SESSION: session.id}
        result = {
            "protocolVersion": self.version,
            "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "logging": {}},
            "serverInfo": {"name": "asking", "version": "1"},
        }
        return _json(response(message["id"], result), headers)

    def _session_of(self, http: web.Request) -> Session | None:
        return self.sessions.get(http.headers.get(SESSION, "")) if self.with_sessions else self._stateless

    def _unknown(self, request_id: RequestId | None) -> web.Response:
        return _json(error_response(request_id, error_object(-32001, "Session not found")), status=404)

    # --- calls ---

    async def _call(self, http: web.Request, session: Session, message: JsonObject) -> web.StreamResponse:
        number = next(self._numbers)
        stream = Stream(f"s{number}" if self.event_ids else None)
        if stream.name is not None:
            session.streams[stream.name] = stream
        call = Call(self, session, message, stream)
        task = asyncio.get_running_loop().create_task(self._run(call, message))
        self.running.add(task)
        session.calls[call.id] = task
        task.add_done_callback(lambda done: self._finished(call, done))
        if not self.json_replies:
            return await self._carry(http, stream, most=0 if self.polled else None)
        await asyncio.wait([task])
        return _json(decode(stream.last)) if stream.last else web.Response(status=500)

    async def _run(self, call: Call, message: JsonObject) -> None:
        try:
            reply = response(call.id, await self._result(call, message["method"], message.get("params") or {}))
        except RpcError as error:
            reply = error_response(call.id, error.error)
        call.stream.send(reply)
        call.stream.end()

    def _finished(self, call: Call, task: "asyncio.Task[None]") -> None:
        self.running.discard(task)
        call.session.calls.pop(call.id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failures.append(error)
        call.stream.end()
        self._tell_soon()

    async def _result(self, call: Call, method: str, params: JsonObject) -> JsonObject:
        if method == "tools/list":
            if self.listing is not None:
                await self.listing(call)
            return {"tools": [self._listed(name) for name in self.tools]}
        if method == "ping":
            return {}
        if method == "logging/setLevel":
            self.levels.append(params["level"])
            return {}
        offered = {"tools/call": self.tools, "prompts/get": self.prompts, "resources/read": self.resources}
        handler = offered.get(method, {}).get(call.name)
        if handler is None:
            raise RpcError(-32601, f"no {method} {call.name}")
        self.executions[str(call.arguments.get("key", call.name))] += 1
        await self._tell()
        result = await handler(call)
        return result if isinstance(result, dict) else {"content": [{"type": "text", "text": str(result)}]}

    def _listed(self, tool: str) -> JsonObject:
        listed: JsonObject = {"name": tool, "inputSchema": {"type": "object"}}
        return {**listed, "annotations": self.annotations[tool]} if tool in self.annotations else listed

    # --- what is not a call ---

    async def _take_answer(self, session: Session, message: JsonObject) -> None:
        question = session.pending.pop(message["id"], None)
        body: JsonObject = {key: message[key] for key in ("result", "error") if key in message}
        self.answers.append(Answer(session.id, message["id"], body, question is not None))
        if question is not None and not question.answer.done():
            question.answer.set_result(body)
        await self._tell()

    async def _take_note(self, session: Session, message: JsonObject) -> None:
        if message["method"] == "notifications/cancelled":
            request_id = message["params"]["requestId"]
            self.cancelled.append(request_id)
            if (task := session.calls.get(request_id)) is not None:
                task.cancel()
        await self._tell()

    async def _carry(
        self, http: web.Request, stream: Stream, start: int = 0, *, most: int | None = None
    ) -> web.StreamResponse:
        carrier = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        with contextlib.suppress(ConnectionResetError):  # who listened has gone; the stream outlives that
            await carrier.prepare(http)
            await stream.pump(carrier, start, most=most)
        return carrier

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def _tell_soon(self) -> None:
        task = asyncio.get_running_loop().create_task(self._tell())
        task.add_done_callback(lambda done: None if done.cancelled() else done.exception())


def _json(message: JsonObject, headers: Any = None, status: int = 200) -> web.Response:
    return web.Response(body=encode(message), headers=headers, status=status, content_type="application/json")
