"""The end of the process: streams end in order, calls are finished, sessions are deleted, and all of it in time."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import structlog.testing

from gateway.app import Gateway
from gateway.config.model import Settings
from gateway.server.graceful import GracefulServer
from gateway.serving import uvicorn_config
from gateway.upstream import legacy_session
from tests.support.changing_server import ChangingUpstream
from tests.support.gateway_app import Front
from tests.support.leftovers import until
from tests.support.scripted import ScriptedUpstream, Wire
from tests.support.stream_client import opened

ASKS: dict[str, Any] = {"elicitation": {}}
CALL = {"name": "echo", "arguments": {"text": "hi"}}
DONE = {"content": [{"type": "text", "text": "done"}]}
LISTEN = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["note://1"]}}
BOUND_S = 20.0


class Process:
    """A gateway as `serve` runs it, but for the signals.

    Attributes:
        front: the gateway, as its clients see it.
        took_s: how long the shutdown took, once it is over.
    """

    def __init__(self, front: Front, server: GracefulServer, serving: "asyncio.Task[None]") -> None:
        self.front = front
        self.took_s = 0.0
        self._server = server
        self._serving = serving

    async def end(self) -> None:
        """What a SIGTERM does; returns when the process would end."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        self._server.should_exit = True
        async with asyncio.timeout(BOUND_S):
            await self._serving
        self.took_s = loop.time() - began_s

    def signal_again(self) -> None:
        """What a second signal does, some time after the first."""
        self._server.handle_exit(signal.SIGTERM, None)


@asynccontextmanager
async def process(upstream: ScriptedUpstream, drain: str, **server: Any) -> AsyncIterator[Process]:
    """Serve in front of an upstream; what is still running in the end is ended."""
    sections = {"server": {"admin": False, "drain": drain, "port": 0, **server}}
    upstreams = {"docs": {"url": upstream.url, "era": "legacy"}}
    settings = Settings.model_validate({**sections, "upstreams": upstreams})
    with structlog.testing.capture_logs() as log:
        gateway = Gateway(settings)
        graceful = GracefulServer(uvicorn_config(gateway.site, settings.server), gateway.drain)
        serving = asyncio.ensure_future(graceful.serve())
        await until(lambda: graceful.started)
        port = graceful.servers[0].sockets[0].getsockname()[1]
        async with httpx.AsyncClient(timeout=BOUND_S, trust_env=False) as http:
            running = Process(Front(gateway, f"http://127.0.0.1:{port}", http, log), graceful, serving)
            yield running
            if not serving.done():
                await running.end()
    assert not [entry for entry in log if entry["event"] in ("unforeseen failure", "background work failed")]


class Worker:
    """A tool that works until it is told to finish, and tells of its progress if somebody wants to know."""

    def __init__(self, upstream: ScriptedUpstream) -> None:
        self.finish = asyncio.Event()
        upstream.on("tools/call", self._work)

    async def _work(self, wire: Wire) -> None:
        token = wire.request.progress_token
        if token is not None:
            await wire.sse()
            await wire.notify("notifications/progress", {"progressToken": token, "progress": 1})
        await self.finish.wait()
        await (wire.result(DONE) if token is None else wire.end(result=DONE))


@pytest.mark.parametrize("capabilities", [{}, ASKS], ids=["shared", "exclusive"])
async def test_calls_are_finished_and_then_their_sessions_deleted(capabilities: dict[str, Any]) -> None:
    async with ScriptedUpstream() as upstream, process(upstream, "10s") as running:
        worker = Worker(upstream)
        calls = [asyncio.ensure_future(running.front.call(capabilities=capabilities)) for _ in range(3)]
        await upstream.seen("tools/call", 3)
        ending = asyncio.ensure_future(running.end())
        await until(lambda: not running.front.gateway.readiness()["ready"])
        assert not upstream.received("DELETE")
        worker.finish.set()
        assert [(await call).text for call in calls] == ["done"] * 3
        await ending
        assert not upstream.sessions
        assert not upstream.received("notifications/cancelled")
        assert running.took_s < 5


async def test_listeners_are_sent_off_and_their_session_deleted() -> None:
    async with ChangingUpstream() as upstream, process(upstream, "10s") as running:
        async with opened(running.front, "subscriptions/listen", LISTEN, request_id="L") as listener:
            await listener.message()
            await running.end()
            cancelled, result = await listener.rest()
            assert cancelled["method"] == "notifications/cancelled"
            assert (result["id"], result["result"]["resultType"]) == ("L", "complete")
        assert upstream.methods()[-2:] == ["resources/unsubscribe", "DELETE"]
        assert not upstream.sessions
        assert running.took_s < 5


async def test_what_takes_longer_than_there_is_time_is_told_so_and_cancelled() -> None:
    async with ScriptedUpstream() as upstream, process(upstream, "1s") as running:
        Worker(upstream)
        meta = {"progressToken": "p"}
        async with (
            opened(running.front, "tools/call", CALL, request_id=7, meta=meta) as streaming,
            opened(running.front, "tools/call", CALL, request_id="s") as silent,
        ):
            await streaming.message()
            await upstream.seen("tools/call", 2)
            await running.end()
            answers = [await streaming.answer(), await silent.answer()]
        assert [(streaming.status, 7), (silent.status, "s")] == [(200, answers[0]["id"]), (503, answers[1]["id"])]
        for answer in answers:
            assert answer["error"]["data"] == {"reason": "shutting_down", "retryable": False}
        cancelled = {received.params["requestId"] for received in upstream.received("notifications/cancelled")}
        assert cancelled == {received.id for received in upstream.received("tools/call")}
        assert not upstream.sessions
        assert running.took_s < 4


async def test_a_server_that_does_not_answer_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy_session, "_NOTE_TIMEOUT_S", 30.0)
    async with ChangingUpstream() as upstream, process(upstream, "1s") as running:
        async with opened(running.front, "subscriptions/listen", LISTEN, request_id="L") as listener:
            await listener.message()
            assert (await running.front.call()).text == "hi"
            for method in ("resources/unsubscribe", "DELETE"):
                upstream.on(method, lambda wire: wire.hang())
            await running.end()
            assert [message.get("method") for message in await listener.rest()] == ["notifications/cancelled", None]
        assert running.took_s < 4


async def test_listeners_stay_until_those_who_come_back_are_sent_elsewhere() -> None:
    async with (
        ChangingUpstream() as upstream,
        process(upstream, "10s", lame_duck="1s") as running,
        opened(running.front, "subscriptions/listen", LISTEN, request_id="L") as listener,
    ):
        await listener.message()
        ending = asyncio.ensure_future(running.end())
        await until(lambda: running.front.gateway.readiness()["draining"])
        assert (await running.front.call()).text == "hi"
        worker = Worker(upstream)
        working = asyncio.ensure_future(running.front.call())
        cancelled, result = await listener.rest()
        assert (cancelled["method"], result["id"]) == ("notifications/cancelled", "L")
        again = await running.front.ask("subscriptions/listen", LISTEN)
        assert (again.status, again.error["data"]["reason"]) == (503, "draining")
        worker.finish.set()
        assert (await working).text == "done"
        await ending


async def test_a_second_signal_waits_for_no_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy_session, "_NOTE_TIMEOUT_S", 30.0)
    async with ScriptedUpstream() as upstream, process(upstream, "30s") as running:
        assert (await running.front.call()).text == "hi"
        upstream.on("DELETE", lambda wire: wire.hang())
        ending = asyncio.ensure_future(running.end())
        await upstream.seen("DELETE")
        running.signal_again()
        await ending
        assert running.took_s < 5


async def test_a_second_signal_waits_for_no_client_that_does_not_read() -> None:
    async with ScriptedUpstream() as upstream, process(upstream, "30s") as running:
        upstream.on("tools/call", lambda wire: wire.result({"content": [{"type": "text", "text": "x" * 20_000_000}]}))
        async with opened(running.front, "tools/call", CALL, buffered=4096) as deaf:
            await deaf.head()
            ending = asyncio.ensure_future(running.end())
            await until(lambda: running.front.gateway.readiness()["draining"])
            running.signal_again()
            await ending
        assert running.took_s < 5
