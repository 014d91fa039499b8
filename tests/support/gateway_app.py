"""The gateway on a real socket, in the event loop of the test, in front of scripted upstreams.

    async with ScriptedUpstream() as upstream, gateway_for(upstream, timeout="200ms") as front:
        answer = await front.call("hi")
        assert (answer.status, answer.text) == (200, "hi")

Several upstreams go by name, `gateway_for(a=..., b=...)`, and are reached with `path="/mcp/a"`. What follows an
upstream is configuration of every upstream; `settings` is the rest of it, by section.

**Every answer is held to what is true of any answer**, whatever a test is about: the id comes back with its type,
a result says what it is and carries cache hints where they belong, no error code is of the reserved ranges unless it
is one that 2026-07-28 defines, no session header, no request, no event id, and, at the end, nothing that an upstream
was sent as an id or handed out as a session. Nothing that the gateway did not foresee may happen meanwhile, in an
answer or in the background.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import structlog.testing
from uvicorn.server import ServerState

from gateway.app import Gateway
from gateway.config.model import Settings
from gateway.serving import uvicorn_config
from tests.support.messages import good_request
from tests.support.scripted import ScriptedUpstream

BOUND_S = 10.0
"""How long a client waits for an answer that must come."""

CACHEABLE = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)
_MODERN_CODES = (-32020, -32021, -32022)
_LEGACY_CODES = (-32002, -32042)
_UNFORESEEN = ("unforeseen failure", "background work failed")


@dataclass(frozen=True)
class Answer:
    """What a client received.

    Attributes:
        status: the HTTP status.
        headers: the response headers.
        body: its bytes.
        notifications: what came before the response, if it was a stream.
        response: the JSON-RPC response.
    """

    status: int
    headers: httpx.Headers
    body: bytes
    notifications: list[dict[str, Any]]
    response: dict[str, Any]

    @property
    def is_stream(self) -> bool:
        """Whether it came as an event stream."""
        return self.headers["content-type"].startswith("text/event-stream")

    @property
    def result(self) -> dict[str, Any]:
        """The result; fails with what came instead."""
        assert "result" in self.response, self.response
        result: dict[str, Any] = self.response["result"]
        return result

    @property
    def error(self) -> dict[str, Any]:
        """The error; fails with what came instead."""
        assert "error" in self.response, self.response
        error: dict[str, Any] = self.response["error"]
        return error

    @property
    def text(self) -> str:
        """The text of a tool's result."""
        return str(self.result["content"][0]["text"])

    @property
    def failure(self) -> tuple[int, str, bool]:
        """What a failed upstream came to: the HTTP status, the reason, and whether the request may be repeated."""
        data = self.error["data"]
        return self.status, data["reason"], data["retryable"]


@dataclass
class Front:
    """The gateway as its clients see it.

    Attributes:
        gateway: the thing itself.
        url: its base URL.
        http: what clients send with.
        log: what the gateway has logged.
        answers: every answer so far.
    """

    gateway: Gateway
    url: str
    http: httpx.AsyncClient
    log: Sequence[Mapping[str, Any]]
    answers: list[Answer] = field(default_factory=list)

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        path: str = "/mcp",
        request_id: str | int = 1,
        capabilities: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request and take its answer, JSON or stream, to the end."""
        sent_headers, sent = good_request(
            method, params, request_id=request_id, capabilities=capabilities, meta=meta, headers=headers
        )
        async with asyncio.timeout(BOUND_S):
            reply = await self.http.post(self.url + path, content=sent, headers=sent_headers)
        answer = _read(reply)
        self.answers.append(answer)
        _check(method, request_id, answer)
        return answer

    async def call(self, text: str = "hi", *, tool: str = "echo", **more: Any) -> Answer:
        """Call a tool with a text."""
        return await self.ask("tools/call", {"name": tool, "arguments": {"text": text}}, **more)

    async def calls(self, texts: Sequence[str], **more: Any) -> list[Answer]:
        """Call a tool with several texts at once."""
        return await asyncio.gather(*(self.call(text, **more) for text in texts))

    def sweep(self) -> None:
        """Do now what is done every few seconds."""
        for upstream in self.gateway.upstreams.values():
            upstream.sweep()


@asynccontextmanager
async def gateway_for(
    upstream: ScriptedUpstream | str | None = None,
    *,
    settings: Mapping[str, Any] | None = None,
    upstreams: Mapping[str, ScriptedUpstream | str] | None = None,
    each: Mapping[str, Mapping[str, Any]] | None = None,
    **options: Any,
) -> AsyncIterator[Front]:
    """Run the gateway; it is called `docs` what a single upstream is called.

    Args:
        upstream: a scripted upstream, or a URL.
        settings: sections of the configuration beside `upstreams`.
        upstreams: several upstreams by name.
        each: configuration of single ones, by name.
        options: configuration of every upstream, as `timeout="200ms"`.
    """
    named = dict(upstreams or {}) if upstream is None else {"docs": upstream}
    single = each or {}
    configured = {name: {"url": _url(target), **options, **single.get(name, {})} for name, target in named.items()}
    server = {"admin": False, "drain": "1s", **(settings or {}).get("server", {})}
    gateway = Gateway(Settings.model_validate({**(settings or {}), "server": server, "upstreams": configured}))
    with structlog.testing.capture_logs() as log:
        async with (
            _serving(gateway) as url,
            httpx.AsyncClient(timeout=BOUND_S, trust_env=False, verify=False) as http,  # noqa: S501 -- plain loopback
        ):
            front = Front(gateway, url, http, log)
            try:
                yield front
            finally:
                print(*log, sep="\n")  # for the report of a test that fails
    unforeseen = [entry for entry in log if entry["event"] in _UNFORESEEN]
    assert not unforeseen, repr(unforeseen)
    for target in named.values():
        if isinstance(target, ScriptedUpstream):
            _check_secrets(front, target)


@asynccontextmanager
async def _serving(gateway: Gateway) -> AsyncIterator[str]:
    """What uvicorn does to serve an application, without its pauses of a tenth of a second."""
    config = uvicorn_config(gateway.site, gateway._settings.server)
    config.load()
    lifespan = config.lifespan_class(config)
    state = ServerState()
    await lifespan.startup()
    assert not lifespan.should_exit
    # Not a socket of socket.create_server(): asyncio would leave Nagle's algorithm on, and each answer take 40 ms.
    server = await asyncio.get_running_loop().create_server(
        lambda: config.http_protocol_class(config=config, server_state=state, app_state={}),  # type: ignore[call-arg]
        "127.0.0.1",
        0,
        backlog=1024,
    )
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        tasks = list(state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await lifespan.shutdown()
        for connection in list(state.connections):
            connection.transport.abort()
        await server.wait_closed()


def _url(target: ScriptedUpstream | str) -> str:
    return target if isinstance(target, str) else target.url


# --- reading ---


def _read(reply: httpx.Response) -> Answer:
    is_stream = reply.headers["content-type"].startswith("text/event-stream")
    messages = _read_events(reply.content) if is_stream else [json.loads(reply.content)]
    return Answer(reply.status_code, reply.headers, reply.content, messages[:-1], messages[-1])


def _read_events(body: bytes) -> list[dict[str, Any]]:
    assert body.endswith(b"\n\n")
    messages = []
    for event in body.decode().removesuffix("\n\n").split("\n\n"):
        if event.startswith(":"):
            continue
        assert event.startswith("data: "), event[:80]
        assert "\n" not in event, event[:80]  # no id, no retry, nothing of an upstream's framing
        messages.append(json.loads(event.removeprefix("data: ")))
    return messages


# --- what is true of any answer ---


def _check(method: str, request_id: str | int, answer: Answer) -> None:
    assert "mcp-session-id" not in answer.headers
    response = answer.response
    assert response["jsonrpc"] == "2.0"
    assert "method" not in response
    assert (type(response["id"]), response["id"]) == (type(request_id), request_id)
    assert ("result" in response) != ("error" in response)
    for message in answer.notifications:
        assert "method" in message
        assert "id" not in message
    if "error" in response:
        _check_error(response["error"])
    elif method != "initialize":
        _check_result(method, response["result"])


def _check_error(error: Mapping[str, Any]) -> None:
    code = error["code"]
    assert type(code) is int
    assert type(error["message"]) is str
    assert code in _MODERN_CODES or not -32099 <= code <= -32020, error
    assert code not in _LEGACY_CODES, error


def _check_result(method: str, result: Mapping[str, Any]) -> None:
    assert isinstance(result["resultType"], str)
    if result["resultType"] == "complete" and method in CACHEABLE:
        assert type(result["ttlMs"]) is int
        assert result["ttlMs"] >= 0
        assert result["cacheScope"] in ("public", "private")


def _check_secrets(front: Front, upstream: ScriptedUpstream) -> None:
    """No answer shows what an upstream and the gateway call things between them."""
    ids = {str(received.id) for received in upstream.log if received.id is not None}
    secrets = {name.encode() for name in ids if len(name) > len("e-1")} | {b"sess-"}
    for answer in front.answers:
        found = [secret for secret in secrets if secret in answer.body]
        assert not found, f"{found} in {answer.body[:200]!r}"


def conversation(upstream: ScriptedUpstream) -> list[str]:
    """What an upstream received, in order, but for GET, whose place among the others is nobody's promise."""
    return [method for method in upstream.methods() if method != "GET"]
