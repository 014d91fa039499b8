"""Streams of a legacy server that break off, or are closed on purpose: nothing is lost, repeated or made up."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.errors import UpstreamError
from gateway.upstream import resumption
from gateway.upstream.http import UpstreamHttp
from tests.support.gateway_app import Answer, gateway_for
from tests.support.leftovers import until, until_quiet
from tests.support.scripted import Handler, ScriptedUpstream, Wire
from tests.support.stream_client import opened

ASKS: dict[str, Any] = {"elicitation": {}}
SESSIONS: dict[str, dict[str, Any]] = {"shared": {}, "exclusive": ASKS}
CALL = {"name": "echo", "arguments": {"text": "hi"}}
WANTS = {"progressToken": 7, "io.modelcontextprotocol/logLevel": "debug"}
PROGRESS = "notifications/progress"
MESSAGE = "notifications/message"


@pytest.fixture(autouse=True)
def quick_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumption, "PAUSE_S", 0.0005)


def done(request_id: Any, text: str = "done") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": {"content": [{"type": "text", "text": text}]}}


class Resumable(ScriptedUpstream):
    """A server whose calls end by `ending` after a first progress with an event id; `rest` is what a GET then gets."""

    def __init__(self, ending: Handler, rest: "Rest") -> None:
        super().__init__()
        self.capabilities = {"tools": {}, "logging": {}}
        self.ending = ending
        self.rest = rest
        self.broke_at_s = 0.0
        self.on("tools/call", self._begin)
        self.on("GET", self._get)
        self.on("logging/setLevel", lambda wire: wire.result({}))

    @property
    def resumed(self) -> list[str]:
        """The `Last-Event-ID` of every GET that has one."""
        ids = [received.headers.get("last-event-id") for received in self.received("GET")]
        return [event_id for event_id in ids if event_id is not None]

    @property
    def call_id(self) -> Any:
        """The id of the call."""
        return self.received("tools/call")[0].id

    async def _begin(self, wire: Wire) -> None:
        await wire.sse()
        token = wire.request.progress_token or "nobody's"
        await wire.notify(PROGRESS, {"progressToken": token, "progress": 1}, id="e-1")
        await wire.notify(MESSAGE, {"level": "info", "data": "first"}, id="e-2")
        self.broke_at_s = asyncio.get_running_loop().time()
        outcome = self.ending(wire)
        if outcome is not None:
            await outcome

    async def _get(self, wire: Wire) -> None:
        if "last-event-id" in wire.request.headers:
            await self.rest(self, wire)
        else:
            await wire.reply(405)


Rest = Callable[[Resumable, Wire], Awaitable[None]]


async def cut(wire: Wire) -> None:
    """Break off after what was sent; a reset might take back what the gateway has not read yet."""
    wire.close()


async def hang(wire: Wire) -> None:
    """Say no more, as long as the connection lasts."""
    await wire.hang()


def status(code: int) -> Rest:
    """A server that answers with a bare status."""
    return lambda _upstream, wire: wire.reply(code)


ENDINGS: dict[str, Handler] = {"broken off": cut, "closed in order": lambda wire: wire.end()}


async def the_result(upstream: Resumable, wire: Wire) -> None:
    """The rest of the stream: more of the log, and the result."""
    await wire.sse()
    await wire.notify(MESSAGE, {"level": "info", "data": "second"}, id="e-3")
    await wire.end(done(upstream.call_id))


@pytest.mark.parametrize("capabilities", SESSIONS.values(), ids=SESSIONS)
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
async def test_a_stream_is_picked_up_where_it_ended(ending: Handler, capabilities: dict[str, Any]) -> None:
    async with Resumable(ending, the_result) as upstream, gateway_for(upstream, era="legacy") as front:
        answer = await front.call(capabilities=capabilities, meta=WANTS)
        assert answer.text == "done"
        assert told(answer) == [1, "first", "second"]
        assert upstream.resumed == ["e-2"]
        (get,) = [received for received in upstream.received("GET") if "last-event-id" in received.headers]
        (call,) = upstream.received("tools/call")
        assert (get.session, get.headers["mcp-protocol-version"]) == (call.session, "2025-11-25")
        await until_quiet(front)


def told(answer: Answer) -> list[Any]:
    """Progress and logs, in the order in which the client had them."""
    return [message["params"].get("progress", message["params"].get("data")) for message in answer.notifications]


async def test_a_connection_that_is_reset_is_picked_up_where_it_ended() -> None:
    has_read = asyncio.Event()

    async def reset(wire: Wire) -> None:
        await has_read.wait()
        wire.reset()

    async with Resumable(reset, the_result) as upstream, gateway_for(upstream, era="legacy") as front:
        async with opened(front, "tools/call", CALL, meta=WANTS) as client:
            for _ in range(2):
                await client.message()
            has_read.set()
            second, result = await client.rest()
            assert second["params"]["data"] == "second"
            assert result["result"]["content"][0]["text"] == "done"
        assert upstream.resumed == ["e-2"]


async def test_a_server_that_closes_its_stream_to_be_polled_is_polled_when_it_says() -> None:
    times: list[float] = []

    async def primed(wire: Wire) -> None:
        await wire.text(b"id: e-3\nretry: 120\ndata:\n\n")
        await wire.end()

    async def polled(upstream: Resumable, wire: Wire) -> None:
        times.append(asyncio.get_running_loop().time())
        await wire.sse()
        if len(times) < 3:
            await wire.text(f"id: p-{len(times)}\nretry: 40\ndata:\n\n".encode())
            await wire.end()
        else:
            await wire.end(done(upstream.call_id))

    async with Resumable(primed, polled) as upstream, gateway_for(upstream, era="legacy") as front:
        assert (await front.call()).text == "done"
        assert upstream.resumed == ["e-3", "p-1", "p-2"]
        assert times[0] - upstream.broke_at_s >= 0.12
        assert times[1] - times[0] >= 0.04
        assert len(upstream.received("tools/call")) == 1


async def test_the_servers_pause_counts_even_where_the_deadline_does_not_allow_for_it() -> None:
    async def primed(wire: Wire) -> None:
        await wire.text(b"id: e-3\nretry: 60000\ndata:\n\n")
        await wire.end()

    async with Resumable(primed, the_result) as upstream, gateway_for(upstream, era="legacy", timeout="100ms") as front:
        assert (await front.call()).failure == (504, "timeout", False)
        assert upstream.resumed == []


async def test_a_stream_that_breaks_again_and_again_is_picked_up_as_long_as_something_new_is_on_it() -> None:
    count = 0

    async def one_more(upstream: Resumable, wire: Wire) -> None:
        nonlocal count
        count += 1
        await wire.sse()
        if count > 3 * resumption.MAX_ATTEMPTS:
            await wire.end(done(upstream.call_id))
            return
        await wire.notify(MESSAGE, {"level": "info", "data": count}, id=f"n-{count}")
        wire.close()

    async with Resumable(cut, one_more) as upstream, gateway_for(upstream, era="legacy") as front:
        answer = await front.call(meta=WANTS)
        assert answer.text == "done"
        assert told(answer) == [1, "first", *range(1, 3 * resumption.MAX_ATTEMPTS + 1)]
        assert len(upstream.received("tools/call")) == 1


async def test_what_a_server_replays_is_not_told_twice_and_not_taken_for_ours() -> None:
    async def everything(upstream: Resumable, wire: Wire) -> None:
        """What a store without a notion of streams replays: all that the session was ever sent."""
        await wire.sse()
        await wire.notify(PROGRESS, {"progressToken": upstream.call_id, "progress": 1}, id="e-1")
        await wire.notify(MESSAGE, {"level": "info", "data": "first"}, id="e-2")
        await wire.event(done("somebody's", "not ours"), id="x-1")
        await wire.event({"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "not ours"}}, id="x-2")
        await wire.event(
            {"jsonrpc": "2.0", "id": "server-error", "error": {"code": 1, "message": "nor this"}}, id="x-3"
        )
        await wire.notify(PROGRESS, {"progressToken": upstream.call_id, "progress": 2}, id="e-3")
        await wire.notify(MESSAGE, {"level": "info", "data": "second"}, id="e-4")
        await wire.end(done(upstream.call_id))

    async with Resumable(cut, everything) as upstream, gateway_for(upstream, era="legacy") as front:
        answer = await front.call(meta=WANTS)
        assert answer.text == "done"
        assert told(answer) == [1, "first", 2, "second"]
        assert upstream.resumed == ["e-2"]


async def test_a_server_that_still_sees_the_old_stream_is_asked_again() -> None:
    answers = iter([409, 503])

    async def at_last(upstream: Resumable, wire: Wire) -> None:
        code = next(answers, None)
        await (the_result(upstream, wire) if code is None else wire.reply(code))

    async with Resumable(cut, at_last) as upstream, gateway_for(upstream, era="legacy") as front:
        assert (await front.call()).text == "done"
        assert upstream.resumed == ["e-2"] * 3


async def test_a_server_that_restarts_with_its_events_loses_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumption, "PAUSE_S", 0.05)
    async with (
        Resumable(hang, the_result) as upstream,
        gateway_for(upstream, era="legacy") as front,
    ):
        call = asyncio.ensure_future(front.call())
        await upstream.seen("tools/call")
        await upstream.stop()
        await upstream.start()
        assert (await call).text == "done"
        assert len(upstream.received("tools/call")) == 1


async def page(_upstream: Resumable, wire: Wire) -> None:
    await wire.reply(200, b"<p>", "text/html")


async def empty(_upstream: Resumable, wire: Wire) -> None:
    await wire.sse()
    await wire.end()


async def broken(_upstream: Resumable, wire: Wire) -> None:
    await wire.sse()
    wire.close()


HOPELESS: dict[str, tuple[Rest, int]] = {
    "no GET": (status(405), 1),
    "no session any more": (status(404), 1),
    "a page": (page, resumption.MAX_ATTEMPTS),
    "always empty": (empty, resumption.MAX_ATTEMPTS),
    "always broken": (broken, resumption.MAX_ATTEMPTS),
}


@pytest.mark.parametrize("capabilities", SESSIONS.values(), ids=SESSIONS)
@pytest.mark.parametrize(("rest", "attempts"), HOPELESS.values(), ids=HOPELESS)
async def test_what_cannot_be_picked_up_has_an_unknown_outcome_and_is_not_made_again(
    rest: Rest, attempts: int, capabilities: dict[str, Any]
) -> None:
    async with Resumable(cut, rest) as upstream, gateway_for(upstream, era="legacy") as front:
        answer = await front.call(capabilities=capabilities)
        assert answer.failure == (502, "outcome_unknown", False)
        assert "unknown" in answer.error["message"]
        assert len(upstream.resumed) == attempts
        assert len(upstream.received("tools/call")) == 1
        await until_quiet(front)


UNMARKED: dict[str, Callable[[Wire], Any]] = {
    "closed in order": lambda wire: wire.end(),
    "reset": lambda wire: wire.reset(),
    "before the head": lambda wire: wire.reset(),
    "in the middle of a body": lambda wire: wire.raw(b"12\r\ndata: half"),
}


@pytest.mark.parametrize("capabilities", SESSIONS.values(), ids=SESSIONS)
@pytest.mark.parametrize("how", UNMARKED)
async def test_without_event_ids_a_broken_stream_is_an_unknown_outcome(how: str, capabilities: dict[str, Any]) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, era="legacy") as front:

        @upstream.on("tools/call", times=1)
        async def breaks(wire: Wire) -> None:
            if how != "before the head":
                await wire.sse()
                await wire.notify(PROGRESS, {"progressToken": wire.request.progress_token or 1, "progress": 1})
            outcome = UNMARKED[how](wire)
            if outcome is not None:
                await outcome
            wire.close()  # if it is open still

        answer = await front.call(capabilities=capabilities)
        assert answer.failure == (502, "outcome_unknown", False)
        assert "unknown" in answer.error["message"]
        assert len(upstream.received("tools/call")) == 1
        await upstream.seen("notifications/cancelled")  # it may still be at work on what nobody will hear of
        assert not [received for received in upstream.received("GET") if "last-event-id" in received.headers]
        assert (await front.call(capabilities=capabilities)).text == "hi"
        await until_quiet(front)


async def test_what_arrived_before_a_break_counts_though_nobody_had_time_to_read_it() -> None:
    async with ScriptedUpstream() as upstream, upstream_http(upstream) as http:

        @upstream.on("tools/call")
        async def breaks_off(wire: Wire) -> None:
            await wire.sse()
            await wire.event(done(1), id="e-7")
            wire.close()

        upstream.with_sessions = False
        reply = await http.post(b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}', {})
        await until(lambda: reply._response._failure is not None)
        events = reply.events()
        assert json.loads((await anext(events)).data) == done(1)
        assert reply.last_event_id == "e-7"
        with pytest.raises(UpstreamError):
            await anext(events)


@asynccontextmanager
async def upstream_http(upstream: ScriptedUpstream) -> AsyncIterator[UpstreamHttp]:
    """The gateway's connections to a server, without the gateway."""
    http = UpstreamHttp("docs", upstream.url, headers={}, connect_timeout_s=5.0, max_message_bytes=2**20)
    try:
        yield http
    finally:
        await http.close()


async def test_a_result_that_is_there_ends_the_call_though_its_stream_stays_open() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, era="legacy") as front:

        @upstream.on("tools/call")
        async def lingers(wire: Wire) -> None:
            await wire.sse()
            await wire.event(done(wire.request.id))
            await wire.hang()

        assert [answer.text for answer in await front.calls(["a", "b"])] == ["done", "done"]
        await until_quiet(front)


async def test_a_client_that_leaves_while_a_stream_is_picked_up_cancels_the_call() -> None:
    async def never(upstream: Resumable, wire: Wire) -> None:
        await wire.sse()
        await wire.hang()

    async with Resumable(cut, never) as upstream, gateway_for(upstream, era="legacy") as front:
        async with opened(front, "tools/call", CALL):
            await upstream.seen("GET", 2)
        received = await upstream.seen("notifications/cancelled")
        assert received.params["requestId"] == upstream.call_id
        await until_quiet(front)


# --- the fault test ---

CALLS = 500
STEPS = 4


@dataclass
class Work:
    """One call at the flaky server: its events by number, from 1; the last one is the result."""

    id: Any
    events: list[dict[str, Any]] = field(default_factory=list)


class Flaky(ScriptedUpstream):
    """A server that drops streams at random points: before the head, between bytes of an event, after the result.

    Args:
        seed: of the chance.
        with_ids: whether events have ids, so that a stream can be picked up.
    """

    def __init__(self, seed: int, *, with_ids: bool) -> None:
        super().__init__()
        self.executed: Counter[str] = Counter()
        self.dropped: set[str] = set()
        self._chance = random.Random(seed)  # noqa: S311 -- a test that can be repeated
        self._with_ids = with_ids
        self._work: dict[str, Work] = {}
        self._fruitless: Counter[str] = Counter()
        self.on("tools/call", self._execute)
        self.on("GET", self._resume)

    async def _execute(self, wire: Wire) -> None:
        text = wire.request.params["arguments"]["text"]
        self.executed[text] += 1
        token = wire.request.progress_token
        work = self._work[text] = Work(wire.request.id)
        for step in range(1, STEPS + 1):
            params = {"progressToken": token, "progress": step}
            work.events.append({"jsonrpc": "2.0", "method": PROGRESS, "params": params})
        work.events.append(done(work.id, text))
        await wire.sse()
        if self._with_ids:
            await wire.text(f"id: {text}/0\nretry: 1\ndata:\n\n".encode())
        await self._send(wire, text, 0)

    async def _resume(self, wire: Wire) -> None:
        last = wire.request.headers.get("last-event-id")
        if last is None:
            await wire.reply(405)
            return
        text, _, number = last.partition("/")
        if self._chance.random() < 0.1 and self._may_be_fruitless(text):
            await wire.reply(409)
            return
        await wire.sse()
        await self._send(wire, text, int(number))

    async def _send(self, wire: Wire, text: str, start: int) -> None:
        for number, message in enumerate(self._work[text].events[start:], start + 1):
            fate = self._chance.random()
            if fate < 0.18 and number == start + 1 and self._with_ids and not self._may_be_fruitless(text):
                fate = 1.0
            if fate < 0.06:
                self.dropped.add(text)
                if self._with_ids:
                    wire.close()
                else:
                    wire.reset()  # which may take back what the gateway has not read yet, an id too
                return
            if fate < 0.12:
                self.dropped.add(text)
                await wire.end()
                return
            if fate < 0.18:
                self.dropped.add(text)
                await wire.text(f'id: {text}/{number}\ndata: {{"jsonrpc": "2.0", "method": "half'.encode())
                wire.close()
                return
            await wire.event(message, id=f"{text}/{number}" if self._with_ids else None)
            self._fruitless[text] = 0
        await wire.end()

    def _may_be_fruitless(self, text: str) -> bool:
        """Nobody picks a stream up for ever if nothing new ever comes of it."""
        self._fruitless[text] += 1
        return self._fruitless[text] < resumption.MAX_ATTEMPTS


async def test_with_event_ids_no_call_is_lost_and_none_is_repeated() -> None:
    async with Flaky(1, with_ids=True) as upstream, gateway_for(upstream, era="legacy") as front:
        answers = await many_calls(front)
        assert [answer.text for answer in answers] == [str(number) for number in range(CALLS)]
        assert all(told(answer) == list(range(1, STEPS + 1)) for answer in answers)
        assert upstream.executed == Counter({str(number): 1 for number in range(CALLS)})
        assert len(upstream.dropped) > CALLS / 2
        await until_quiet(front)


async def test_without_event_ids_every_lost_call_is_reported_and_none_is_repeated() -> None:
    async with Flaky(2, with_ids=False) as upstream, gateway_for(upstream, era="legacy") as front:
        answers = await many_calls(front)
        assert upstream.executed == Counter({str(number): 1 for number in range(CALLS)})
        assert CALLS / 4 < len(upstream.dropped) < CALLS
        for number, answer in enumerate(answers):
            if str(number) in upstream.dropped:
                assert answer.error["data"] == {"upstream": "docs", "reason": "outcome_unknown", "retryable": False}
            else:
                assert answer.text == str(number)
            assert told(answer) == list(range(1, len(answer.notifications) + 1))
        await until_quiet(front)


async def many_calls(front: Any) -> list[Answer]:
    """All calls, a few at a time, half of them with a session to themselves."""
    room = asyncio.Semaphore(20)

    async def call(number: int) -> Answer:
        async with room:
            answer: Answer = await front.call(
                str(number), capabilities=ASKS if number % 2 else {}, meta={"progressToken": number}
            )
            return answer

    return await asyncio.gather(*(call(number) for number in range(CALLS)))
