"""How long things may take: what a deadline says to either side, and how a long silence outlives impatient proxies."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.gateway_app import Answer, Front, gateway_for
from tests.support.idle_proxy import idle_proxy
from tests.support.leftovers import until_quiet
from tests.support.scripted import Handler, ScriptedUpstream, Wire
from tests.support.stream_client import opened

ASKS: dict[str, Any] = {"elicitation": {}}
SESSIONS: dict[str, dict[str, Any]] = {"shared": {}, "exclusive": ASKS}
CANCELLED = "notifications/cancelled"
CALL = {"name": "echo", "arguments": {"text": "hi"}}
DONE = {"content": [{"type": "text", "text": "done"}]}
MODERN_DONE = {"resultType": "complete", **DONE}

Beginning = Callable[[Wire], Awaitable[None]]


async def no_byte(wire: Wire) -> None:
    """Not even a status."""


async def silent_stream(wire: Wire) -> None:
    await wire.sse()


async def trickling_stream(wire: Wire) -> None:
    """A byte now and then, and never a message."""
    await wire.sse()
    while not wire.gone.is_set():
        await wire.text(b":")
        await asyncio.sleep(0.01)


async def trickling_json(wire: Wire) -> None:
    await wire.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
    while not wire.gone.is_set():
        await wire.raw(b" ")
        await asyncio.sleep(0.01)


MUTE = {
    "not a byte": no_byte,
    "a silent stream": silent_stream,
    "a trickling stream": trickling_stream,
    "a trickling body": trickling_json,
}


def mute(begins: Beginning) -> Handler:
    """A handler that never has an answer."""

    async def handler(wire: Wire) -> None:
        await begins(wire)
        await wire.hang()

    return handler


# --- timeout, max_duration ---


@pytest.mark.parametrize("capabilities", SESSIONS.values(), ids=SESSIONS)
@pytest.mark.parametrize("begins", MUTE.values(), ids=MUTE)
async def test_a_server_that_says_nothing_is_given_up_and_told_so(
    begins: Beginning, capabilities: dict[str, Any]
) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, era="legacy", timeout="60ms") as front:
        upstream.on("tools/call", mute(begins), times=1)
        upstream.on("ping", lambda wire: wire.result({}))
        answer = await front.call(capabilities=capabilities)
        assert answer.failure == (504, "timeout", False)
        assert answer.error["message"] == "Upstream 'docs' sent nothing for 0.06 s"
        received = await upstream.seen(CANCELLED)
        (call,) = upstream.received("tools/call")
        assert (received.session, received.params["requestId"]) == (call.session, call.id)
        assert (await front.call(capabilities=capabilities)).text == "hi"
        await until_quiet(front)


@pytest.mark.parametrize("begins", MUTE.values(), ids=MUTE)
async def test_a_modern_server_that_says_nothing_is_given_up(begins: Beginning) -> None:
    async with ScriptedUpstream("modern") as upstream, gateway_for(upstream, era="modern", timeout="60ms") as front:
        upstream.on("tools/call", mute(begins), times=1)
        assert (await front.call()).failure == (504, "timeout", False)
        assert (await front.call()).text == "hi"


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_progress_starts_the_timeout_anew_whether_or_not_the_client_wants_it(era: Any) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream, era=era, timeout="400ms") as front:
        upstream.on("tools/call", lambda wire: progressing(wire, 10, 0.06))
        answers = await asyncio.gather(front.call(meta={"progressToken": 7}), front.call())
        assert [answer.text for answer in answers] == ["done", "done"]
        assert not upstream.received(CANCELLED)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_whatever_a_server_says_there_is_an_end(era: Any) -> None:
    limits: dict[str, Any] = {"timeout": "10s", "max_duration": "150ms"}
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream, era=era, **limits) as front:
        upstream.on("tools/call", lambda wire: progressing(wire, 10_000, 0.01))
        answer = await front.call(meta={"progressToken": 7})
        assert answer.status == 200  # it had begun when the time was up
        assert answer.error["data"] == {"upstream": "docs", "reason": "timeout", "retryable": False}
        assert "0.15 s" in answer.error["message"]
        assert len(answer.notifications) > 1
        if era == "legacy":
            await upstream.seen(CANCELLED)


async def progressing(wire: Wire, steps: int, pace_s: float) -> None:
    """A server that works in steps."""
    await wire.sse()
    for step in range(steps):
        token = wire.request.progress_token or "nobody's"
        await wire.notify("notifications/progress", {"progressToken": token, "progress": step})
        await asyncio.sleep(pace_s)
        if wire.gone.is_set():
            return
    await wire.end(result=DONE if wire.request.headers["mcp-protocol-version"] < "2026" else MODERN_DONE)


# --- the budgets before a call ---


async def test_initialize_has_a_budget_of_its_own_and_nothing_was_executed() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, era="legacy", connect_timeout="100ms") as front:
        upstream.on("initialize", lambda wire: wire.hang(), times=1)
        answer = await front.call()
        assert answer.failure == (504, "timeout", True)
        assert answer.error["message"] == "Upstream 'docs' did not complete initialize within 0.1 s"
        assert not upstream.received("tools/call")
        assert (await front.call()).text == "hi"


async def test_a_slow_initialize_within_the_budget_works_and_blocks_no_other_upstream() -> None:
    async with (
        ScriptedUpstream() as slow,
        ScriptedUpstream() as quick,
        gateway_for(upstreams={"slow": slow, "quick": quick}, era="legacy", timeout="50ms") as front,
    ):
        has_answered = asyncio.Event()

        @slow.on("initialize")
        async def slowly(wire: Wire) -> None:
            await has_answered.wait()
            await asyncio.sleep(0.1)  # longer than a call may be silent
            await slow.answer(wire)

        waiting = asyncio.ensure_future(front.call(path="/mcp/slow"))
        await slow.seen("initialize")
        assert (await front.call(path="/mcp/quick")).text == "hi"
        has_answered.set()
        assert (await waiting).text == "hi"


async def test_a_probe_without_an_answer_is_given_up_and_initialize_tried() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, connect_timeout="100ms") as front:
        upstream.on("server/discover", lambda wire: wire.hang())
        assert (await front.call()).text == "hi"


async def test_a_server_that_answers_nothing_at_all_is_an_error_in_the_budgets_of_probe_and_initialize() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, connect_timeout="50ms") as front:
        upstream.gate = lambda wire: wire.hang()
        assert (await front.call()).failure == (504, "timeout", True)
        upstream.gate = None
        assert (await front.call()).text == "hi"


@pytest.mark.parametrize("method", ["tools/list", "logging/setLevel", "notifications/initialized"])
async def test_what_precedes_a_call_is_bounded_and_no_reason_not_to_make_it(method: str) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, era="legacy", connect_timeout="100ms") as front:
        upstream.capabilities = {"tools": {}, "logging": {}}
        upstream.on(method, lambda wire: wire.hang())
        answer = await front.call(meta={"io.modelcontextprotocol/logLevel": "info"})
        assert answer.text == "hi"


# --- proxies that cut quiet connections ---

IDLE_S = 0.25
TOLD = {"server": {"stream_after": "40ms", "keepalive": "40ms"}}
UNTOLD = {"server": {"stream_after": "10s", "keepalive": "10s"}}


async def late_json(wire: Wire) -> None:
    await asyncio.sleep(3 * IDLE_S)
    await wire.result(DONE)


async def late_head(wire: Wire) -> None:
    await asyncio.sleep(3 * IDLE_S)
    await wire.sse()
    await wire.end(result=DONE)


async def late_event(wire: Wire) -> None:
    await wire.sse()
    await asyncio.sleep(3 * IDLE_S)
    await wire.end(result=DONE)


async def late_progress(wire: Wire) -> None:
    await wire.sse()
    for step in (1, 2):
        await asyncio.sleep(1.5 * IDLE_S)
        token = wire.request.progress_token or "nobody's"
        await wire.notify("notifications/progress", {"progressToken": token, "progress": step})
    await wire.end(result=DONE)


LATE = {"the body": late_json, "the head": late_head, "the event": late_event, "progress": late_progress}


@pytest.mark.parametrize("handler", LATE.values(), ids=LATE)
async def test_a_long_silent_call_outlives_a_proxy_that_cuts_quiet_connections(handler: Handler) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, settings=TOLD, era="legacy") as front:
        upstream.on("tools/call", handler)
        async with idle_proxy(front.url, IDLE_S) as proxy:
            metas: list[dict[str, Any] | None] = [None, {"progressToken": 7}]
            answers = await asyncio.gather(*(through(front, proxy.url, meta) for meta in metas))
            assert [answer.text for answer in answers] == ["done", "done"]
            assert [answer.is_stream for answer in answers] == [True, True]
            assert proxy.cuts == 0


async def test_the_proxy_would_have_cut_it() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, settings=UNTOLD, era="legacy") as front:
        upstream.on("tools/call", mute(no_byte))
        async with idle_proxy(front.url, IDLE_S) as proxy, opened(front, "tools/call", CALL, url=proxy.url) as client:
            with pytest.raises(asyncio.IncompleteReadError):
                await client.head()
            assert proxy.cuts == 1
        await upstream.seen(CANCELLED)  # to the gateway, a client that hung up


async def test_a_listener_outlives_a_proxy_that_cuts_quiet_connections() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, settings=TOLD, era="legacy") as front:
        upstream.capabilities = {"tools": {"listChanged": True}}
        upstream.offer_get()
        asked = {"notifications": {"toolsListChanged": True}}
        async with (
            idle_proxy(front.url, IDLE_S) as proxy,
            opened(front, "subscriptions/listen", asked, url=proxy.url) as listener,
        ):
            await listener.message()
            for _ in range(10):
                await listener.comment()
            await upstream.push({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            assert (await listener.message())["method"] == "notifications/tools/list_changed"
            assert proxy.cuts == 0


async def through(front: Front, url: str, meta: dict[str, Any] | None) -> Answer:
    """Make a call by way of a proxy."""
    return await replace(front, url=url).call(meta=meta)
