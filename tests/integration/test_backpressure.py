"""Floods, and clients that do not read: memory stays bounded, and nobody else waits."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.upstream import outbox
from tests.support.changing_server import TOOLS, UPDATED, ChangingUpstream, served
from tests.support.gateway_app import Front, gateway_for
from tests.support.leftovers import until_quiet
from tests.support.messages import PREFIX
from tests.support.scripted import ScriptedUpstream, Wire
from tests.support.stream_client import OpenStream, listening, opened

ASKS: dict[str, Any] = {"elicitation": {}}
CALL = {"name": "echo", "arguments": {"text": "hi"}}
LOGS = {f"{PREFIX}logLevel": "debug"}
DONE = {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}
SMALL = 65_536
FLOOD = 100_000
LONG = "x" * 10_000
HELD = 3000
"""How many such texts the sockets between a server and a client hold at most, with the kernel's usual limits."""


class Flood:
    """A tool that logs as fast as it may, until it has logged enough.

    Attributes:
        sent: how many messages the gateway, or the sockets on the way to it, have taken.
    """

    def __init__(self, upstream: ScriptedUpstream, count: int) -> None:
        self.sent = 0
        self._count = count
        upstream.capabilities = {"tools": {}, "logging": {}}
        upstream.on("logging/setLevel", lambda wire: wire.result({}))
        upstream.on("tools/call", self._log)

    async def _log(self, wire: Wire) -> None:
        if wire.request.params["arguments"]["text"] == "quick":
            await wire.result(DONE)
            return
        await wire.sse()
        for self.sent in range(1, self._count + 1):  # noqa: B020 -- is read while the loop runs
            await wire.notify("notifications/message", {"level": "info", "data": [self.sent, LONG]})
            if wire.gone.is_set():
                return
        await wire.end(result=DONE)


async def stalled(front: Front, flood: Flood, least_s: float = 0.0) -> None:
    """Wait until the flood stands still, and make calls meanwhile, which are not to be held up."""
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    still = 0
    while still < 10 or loop.time() - began_s < least_s:
        before = flood.sent
        assert (await front.call("quick")).text == "done"
        still = still + 1 if before == flood.sent > 0 else 0


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_client_that_does_not_read_stops_its_server_and_nothing_else(era: Any) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream, era=era) as front:
        flood = Flood(upstream, 1_000_000)
        async with opened(front, "tools/call", CALL, meta=LOGS, buffered=SMALL):
            await upstream.seen("tools/call")
            await stalled(front, flood)
            assert 10 < flood.sent < HELD
        await until_quiet(front)
        if era == "legacy":
            await upstream.seen("notifications/cancelled")


async def test_a_client_that_reads_late_gets_everything_and_its_server_is_not_to_blame() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, era="legacy", timeout="150ms") as front:
        count = HELD + 200
        flood = Flood(upstream, count)
        async with opened(front, "tools/call", CALL, meta=LOGS, buffered=SMALL) as client:
            await upstream.seen("tools/call")
            await stalled(front, flood, least_s=0.4)
            assert flood.sent < count
            *logs, result = await client.rest()
            assert [message["params"]["data"][0] for message in logs] == list(range(1, count + 1))
            assert result["result"]["content"][0]["text"] == "done"


def event(method: str, **params: Any) -> bytes:
    return b"data: " + json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n\n"


async def pour(wire: Wire, events: Callable[[int], bytes], count: int = FLOOD) -> None:
    """Write many events, a thousand in one chunk."""
    for start in range(0, count, 1000):
        await wire.text(b"".join(events(number) for number in range(start, start + 1000)))


async def test_a_flood_of_logs_that_nobody_wants_is_read_and_dropped() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, era="legacy") as front:

        @upstream.on("tools/call")
        async def talkative(wire: Wire) -> None:
            await wire.sse()
            await pour(wire, lambda number: event("notifications/message", level="error", data=number))
            await wire.end(result=DONE)

        answer = await front.call()
        assert (answer.text, answer.notifications) == ("done", [])
        assert not answer.is_stream


async def test_a_flood_of_changes_is_told_in_a_few_words() -> None:
    async with served() as (upstream, front), everyone(front, 20) as listeners:
        (wire,) = upstream.streams.values()
        await pour(wire, lambda number: event(TOOLS) if number % 2 else event(UPDATED, uri=f"note://{number}"), 20_000)
        await wire.text(event(UPDATED, uri="note://1"))
        for stream in listeners:
            while (await stream.message())["method"] != UPDATED:
                pass
            assert 0 < stream.wire.count(TOOLS.encode()) < 2000
        assert (await front.call()).text == "hi"


@asynccontextmanager
async def everyone(front: Front, count: int) -> AsyncIterator[list[OpenStream]]:
    """As many listeners."""
    contexts = [listening(front, id=number, uris=["note://1"]) for number in range(count)]
    streams = [await context.__aenter__() for context in contexts]
    try:
        yield streams
    finally:
        for context in contexts:
            await context.__aexit__(None, None, None)


class Answers:
    """Counts what a server gets in answer to its own requests.

    Attributes:
        at_once: how many it had to take at the same time, at most.
    """

    def __init__(self, upstream: ScriptedUpstream) -> None:
        self.at_once = 0
        self._now = 0
        upstream.on("response", self._take)

    async def _take(self, wire: Wire) -> None:
        self._now += 1
        self.at_once = max(self.at_once, self._now)
        await asyncio.sleep(0.001)
        self._now -= 1
        await wire.reply(202)


async def test_a_flood_of_pings_is_answered_a_few_at_a_time() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, era="legacy") as front:
        answers = Answers(upstream)

        @upstream.on("tools/call")
        async def nervous(wire: Wire) -> None:
            await wire.sse()
            await pour(wire, lambda number: request("ping", f"p{number}"), 10_000)
            await wire.end(result=DONE)

        assert (await front.call()).text == "done"
        await until_quiet(front)
        assert 0 < answers.at_once <= 32


@pytest.mark.parametrize("capabilities", [{}, ASKS], ids=["shared", "exclusive"])
async def test_a_flood_of_requests_that_nobody_serves_is_refused_a_few_at_a_time(capabilities: dict[str, Any]) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, era="legacy") as front:
        answers = Answers(upstream)

        @upstream.on("tools/call")
        async def inquisitive(wire: Wire) -> None:
            await wire.sse()
            await pour(wire, lambda number: request("vendor/ask", f"q{number}"), 1000)
            await wire.end(result=DONE)

        assert (await front.call(capabilities=capabilities)).text == "done"
        await until_quiet(front)
        assert 0 < answers.at_once <= outbox.MOST
        assert len(upstream.received("response")) == 1000


def request(method: str, id: str) -> bytes:
    return b"data: " + json.dumps({"jsonrpc": "2.0", "id": id, "method": method}).encode() + b"\n\n"


async def test_a_client_that_does_not_read_holds_up_no_other_call_of_the_session() -> None:
    async with ChangingUpstream() as upstream, gateway_for(upstream, era="legacy") as front:
        waiting: list[Wire] = []
        finish = asyncio.Event()

        @upstream.on("tools/call")
        async def uncorrelated(wire: Wire) -> None:
            """Tells of its progress on the session's own stream."""
            waiting.append(wire)
            await finish.wait()
            await wire.result(DONE)

        async with (
            opened(front, "tools/call", CALL, meta={"progressToken": "slow"}, buffered=SMALL),
            opened(front, "tools/call", CALL, meta={"progressToken": "quick"}) as quick,
        ):
            await upstream.seen("tools/call", 2)
            await upstream.until(lambda: upstream.streams)
            (stream,) = upstream.streams.values()
            slow_token, quick_token = (wire.request.progress_token for wire in waiting)
            slowly = lambda number: progress(slow_token, number, LONG)  # noqa: E731
            await pour(stream, slowly, 2 * HELD)
            await stream.text(progress(quick_token, 1, ""))
            assert (await quick.message())["params"]["progressToken"] == "quick"
            finish.set()
            assert (await quick.rest())[-1]["result"]["content"][0]["text"] == "done"


def progress(token: str, number: int, text: str) -> bytes:
    return event("notifications/progress", progressToken=token, progress=number, message=text)


async def test_a_server_that_floods_one_call_delays_no_other() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, era="legacy") as front:
        flood = Flood(upstream, 1_000_000)
        async with opened(front, "tools/call", CALL, meta=LOGS) as flooded:
            reading = asyncio.ensure_future(flooded.rest())
            await upstream.seen("tools/call")
            quick = [front.call("quick", request_id=number) for number in range(50)]
            assert all(answer.text == "done" for answer in await asyncio.gather(*quick))
            assert 0 < flood.sent < 1_000_000
            reading.cancel()
        await until_quiet(front)
