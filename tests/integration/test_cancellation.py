"""A client that hangs up cancels its own call upstream, and nothing else; and nothing is left behind."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.support.gateway_app import conversation, gateway_for
from tests.support.leftovers import held, until, until_quiet
from tests.support.scripted import WAIT_S, ScriptedUpstream, Wire
from tests.support.stream_client import opened, send

ASKS: dict[str, Any] = {"elicitation": {}}
SESSIONS: dict[str, dict[str, Any]] = {"shared": {}, "exclusive": ASKS}
CANCELLED = "notifications/cancelled"
METHODS: dict[str, dict[str, Any]] = {
    "tools/call": {"name": "echo", "arguments": {"text": "hi"}},
    "prompts/get": {"name": "p"},
    "resources/read": {"uri": "note://1"},
}


class SlowUpstream(ScriptedUpstream):
    """A legacy server whose work ends when it is cancelled, or told to `finish`.

    Attributes:
        begins: how a reply begins before the work: not at all, with an event stream, or with progress on it.
        answers: whether a cancelled request is answered all the same.
        finish: ends all work in order.
        running: the ids of the requests that it works on.
    """

    def __init__(self) -> None:
        super().__init__()
        self.capabilities = {"tools": {}, "prompts": {}, "resources": {}}
        self.begins: Callable[[Wire], Awaitable[None]] = nothing
        self.answers = False
        self.finish = asyncio.Event()
        self.running: dict[Any, asyncio.Event] = {}
        for method in METHODS:
            self.on(method, self._work)
        self.on(CANCELLED, self._cancel)
        self.on("ping", lambda wire: wire.result({}))

    @property
    def cancelled(self) -> list[tuple[str | None, Any]]:
        """Session and request of every cancellation."""
        return [(received.session, received.params["requestId"]) for received in self.received(CANCELLED)]

    async def _work(self, wire: Wire) -> None:
        stopped = self.running[wire.request.id] = asyncio.Event()
        await self.begins(wire)
        ends = [asyncio.ensure_future(event.wait()) for event in (stopped, self.finish)]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        self.running.pop(wire.request.id)
        async with self._arrival:
            self._arrival.notify_all()
        if stopped.is_set() and not self.answers:
            wire.close()
        elif wire.is_answered:
            await wire.end(result=RESULT)
        else:
            await wire.result(RESULT)

    async def _cancel(self, wire: Wire) -> None:
        if (stopped := self.running.get(wire.request.params["requestId"])) is not None:
            stopped.set()
        await wire.reply(202)

    async def at_work(self, count: int) -> None:
        """Wait until it works on as many requests."""
        async with asyncio.timeout(WAIT_S), self._arrival:
            await self._arrival.wait_for(lambda: len(self.running) == count)


RESULT = {"content": [{"type": "text", "text": "done"}], "messages": [], "contents": []}


async def nothing(wire: Wire) -> None:
    """No byte before the work is done."""


async def stream(wire: Wire) -> None:
    """An event stream, and silence."""
    await wire.sse()


async def progress(wire: Wire) -> None:
    """An event stream with progress."""
    await wire.sse()
    await wire.notify("notifications/progress", {"progressToken": wire.request.progress_token, "progress": 1})


BEGINNINGS = {"before a byte": nothing, "on a silent stream": stream, "on a busy stream": progress}


@pytest.mark.parametrize("capabilities", SESSIONS.values(), ids=SESSIONS)
@pytest.mark.parametrize("begins", BEGINNINGS.values(), ids=BEGINNINGS)
@pytest.mark.parametrize("method", METHODS)
async def test_hanging_up_cancels_the_call_by_the_id_that_the_server_knows(
    method: str, begins: Callable[[Wire], Awaitable[None]], capabilities: dict[str, Any]
) -> None:
    async with SlowUpstream() as upstream, gateway_for(upstream, era="legacy") as front:
        upstream.begins = begins
        meta = {"progressToken": "client's own"}
        client = await send(
            front, method, METHODS[method], request_id="client's own", capabilities=capabilities, meta=meta
        )
        received = await upstream.seen(method)
        if begins is progress:
            assert (await client.message())["method"] == "notifications/progress"
        client.abort()
        await upstream.seen(CANCELLED)
        await upstream.at_work(0)
        assert upstream.cancelled == [(received.session, received.id)]
        assert received.id != "client's own"
        await until_quiet(front)


async def test_a_call_whose_reply_has_become_a_stream_is_cancelled_too() -> None:
    settings = {"server": {"stream_after": "1ms", "keepalive": "5ms"}}
    async with SlowUpstream() as upstream, gateway_for(upstream, settings=settings, era="legacy") as front:
        async with opened(front, "tools/call", METHODS["tools/call"]) as client:
            await client.comment()
            await client.comment()
        await upstream.seen(CANCELLED)
        await until_quiet(front)


@pytest.mark.parametrize("capabilities", SESSIONS.values(), ids=SESSIONS)
async def test_other_calls_go_on(capabilities: dict[str, Any]) -> None:
    async with SlowUpstream() as upstream, gateway_for(upstream, era="legacy") as front:
        others = [asyncio.ensure_future(front.call(capabilities=capabilities)) for _ in range(3)]
        await upstream.at_work(3)
        before = set(upstream.running)
        client = await send(front, "tools/call", METHODS["tools/call"], capabilities=capabilities)
        await upstream.at_work(4)
        (own,) = set(upstream.running) - before
        client.abort()
        await upstream.seen(CANCELLED)
        await upstream.at_work(3)
        assert [request_id for _, request_id in upstream.cancelled] == [own]
        upstream.finish.set()
        assert [(await other).text for other in others] == ["done"] * 3


@pytest.mark.parametrize("capabilities", SESSIONS.values(), ids=SESSIONS)
async def test_a_server_that_answers_all_the_same_disturbs_nobody(capabilities: dict[str, Any]) -> None:
    async with SlowUpstream() as upstream, gateway_for(upstream, era="legacy") as front:
        upstream.answers = True
        upstream.begins = stream
        async with opened(front, "tools/call", METHODS["tools/call"], capabilities=capabilities):
            await upstream.at_work(1)
        await upstream.seen(CANCELLED)
        await until_quiet(front)
        upstream.finish.set()
        assert (await front.call(capabilities=capabilities)).text == "done"


async def test_the_cancellation_does_not_queue_behind_the_call() -> None:
    async with SlowUpstream() as upstream, gateway_for(upstream, era="legacy") as front:
        turn = asyncio.Lock()

        @upstream.on("tools/call")
        async def one_at_a_time(wire: Wire) -> None:
            async with turn:
                await upstream._work(wire)

        for _ in range(2):
            await send_and_hang_up_when(front, lambda: upstream.seen("tools/call", len(upstream.cancelled) + 1))
            await upstream.seen(CANCELLED, len(upstream.received("tools/call")))
        await until_quiet(front)


async def send_and_hang_up_when(front: Any, arrived: Callable[[], Awaitable[Any]]) -> None:
    async with opened(front, "tools/call", METHODS["tools/call"]):
        await arrived()


@pytest.mark.parametrize("capabilities", SESSIONS.values(), ids=SESSIONS)
async def test_initialize_is_never_cancelled_and_its_session_serves_the_next_call(capabilities: dict[str, Any]) -> None:
    async with SlowUpstream() as upstream, gateway_for(upstream, era="legacy") as front:
        has_left = asyncio.Event()
        upstream.finish.set()

        @upstream.on("initialize")
        async def slow(wire: Wire) -> None:
            await has_left.wait()
            await upstream.answer(wire)

        async with opened(front, "tools/call", METHODS["tools/call"], capabilities=capabilities):
            await upstream.seen("initialize")
        await until(lambda: any(entry.get("status") == 499 for entry in front.log))
        has_left.set()
        await upstream.seen("notifications/initialized")
        assert not upstream.received("tools/call")
        assert (await front.call(capabilities=capabilities)).text == "done"
        assert len(upstream.received("initialize")) == 1
        assert not upstream.cancelled


async def test_hanging_up_while_the_session_opens_its_stream_gives_the_session_back() -> None:
    async with SlowUpstream() as upstream, gateway_for(upstream, era="legacy") as front:
        upstream.on("GET", lambda wire: wire.hang())
        async with opened(front, "tools/call", METHODS["tools/call"], capabilities=ASKS):
            await upstream.seen("GET")
        await until(lambda: any(entry.get("status") == 499 for entry in front.log))
        assert held(front).leased == 0
        assert not upstream.received("tools/call")


async def test_hanging_up_while_the_tools_are_listed_cancels_no_call() -> None:
    bounds: dict[str, Any] = {"connect_timeout": "100ms"}
    async with SlowUpstream() as upstream, gateway_for(upstream, era="legacy", **bounds) as front:
        upstream.on("tools/list", lambda wire: wire.hang(), times=1)
        async with opened(front, "tools/call", METHODS["tools/call"]):
            await upstream.seen("tools/list")
        await until(lambda: any(entry.get("status") == 499 for entry in front.log))
        await until_quiet(front)
        assert not upstream.received("tools/call")
        upstream.finish.set()
        assert (await front.call()).text == "done"


async def test_hanging_up_in_the_queue_for_a_session_leaves_the_queue() -> None:
    sessions: dict[str, Any] = {"sessions": {"max": 1}}
    async with SlowUpstream() as upstream, gateway_for(upstream, era="legacy", **sessions) as front:
        first = asyncio.ensure_future(front.call(capabilities=ASKS))
        await upstream.at_work(1)
        waiting = [await send(front, "tools/call", METHODS["tools/call"], capabilities=ASKS) for _ in range(5)]
        last = asyncio.ensure_future(front.call(capabilities=ASKS))
        await until(lambda: len(front.gateway.upstreams["docs"]._legacy._sessions._pool._turns) == 6)
        for client in waiting:
            client.abort()
        await until(lambda: len([entry for entry in front.log if entry.get("status") == 499]) == 5)
        upstream.finish.set()
        assert (await first).text == (await last).text == "done"
        assert len(upstream.received("tools/call")) == 2
        assert not upstream.cancelled


async def test_the_server_hears_of_the_cancellation_before_its_session_ends() -> None:
    async with SlowUpstream() as upstream, gateway_for(upstream, era="legacy") as front:
        has_heard = asyncio.Event()

        @upstream.on(CANCELLED)
        async def slowly(wire: Wire) -> None:
            await has_heard.wait()
            await upstream._cancel(wire)

        async with opened(front, "tools/call", METHODS["tools/call"], capabilities=ASKS):
            await upstream.at_work(1)
        await upstream.seen(CANCELLED)
        assert not upstream.received("DELETE")
        has_heard.set()
        await upstream.seen("DELETE")
        await until_quiet(front)


async def test_a_session_that_was_alone_with_a_cancelled_call_serves_no_other() -> None:
    async with SlowUpstream() as upstream, gateway_for(upstream, era="legacy") as front:
        upstream.finish.set()
        assert (await front.call(capabilities=ASKS)).text == "done"
        upstream.finish.clear()
        async with opened(front, "tools/call", METHODS["tools/call"], capabilities=ASKS):
            await upstream.at_work(1)
        await upstream.seen("DELETE")
        upstream.finish.set()
        assert (await front.call(capabilities=ASKS)).text == "done"
        assert [call.session for call in upstream.received("tools/call")] == ["sess-1", "sess-1", "sess-2"]


async def test_a_shared_session_is_asked_whether_it_lives_before_it_serves_again() -> None:
    async with SlowUpstream() as upstream, gateway_for(upstream, era="legacy") as front:
        async with opened(front, "tools/call", METHODS["tools/call"]):
            await upstream.at_work(1)
        await upstream.seen(CANCELLED)
        upstream.finish.set()
        assert (await front.call()).text == "done"
        assert conversation(upstream)[-3:] == [CANCELLED, "ping", "tools/call"]
        assert len(upstream.received("initialize")) == 1


async def test_a_session_that_died_of_a_cancellation_is_replaced_unnoticed() -> None:
    async with SlowUpstream() as upstream, gateway_for(upstream, era="legacy") as front:
        async with opened(front, "tools/call", METHODS["tools/call"]):
            await upstream.at_work(1)
        await upstream.seen(CANCELLED)
        upstream.forget()
        upstream.finish.set()
        assert (await front.call()).text == "done"
        assert upstream.received("tools/call")[-1].session == "sess-2"


async def test_a_posted_cancellation_is_taken_and_means_nothing() -> None:
    async with SlowUpstream() as upstream, gateway_for(upstream, era="legacy") as front:
        call = asyncio.ensure_future(front.call(request_id=5))
        await upstream.at_work(1)
        body = {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": 5}}
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28"}
        reply = await front.http.post(front.url + "/mcp", json=body, headers={**headers, "Mcp-Method": CANCELLED})
        assert (reply.status_code, reply.content) == (202, b"")
        upstream.finish.set()
        assert (await call).text == "done"
        assert not upstream.cancelled


async def test_a_round_is_not_cancelled_by_the_end_of_the_reply_that_asked() -> None:
    async with SlowUpstream() as upstream, gateway_for(upstream, era="legacy") as front:

        @upstream.on("tools/call")
        async def asks(wire: Wire) -> None:
            await wire.sse()
            form = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
            answer = await upstream.ask(wire, "elicitation/create", form, id=0)
            await wire.end(result={"content": [{"type": "text", "text": answer["result"]["action"]}]})

        async with opened(front, "tools/call", METHODS["tools/call"], capabilities=ASKS) as client:
            asked = (await client.answer())["result"]
        await until(lambda: held(front).suspended == 1)
        answers = {"inputResponses": {"elicitation_1": {"action": "decline"}}, "requestState": asked["requestState"]}
        retry = await front.ask("tools/call", {**METHODS["tools/call"], **answers}, capabilities=ASKS)
        assert retry.text == "decline"
        assert not upstream.cancelled


# --- storms ---


@pytest.mark.parametrize("capabilities", SESSIONS.values(), ids=SESSIONS)
async def test_a_storm_of_a_thousand_disconnects_leaves_nothing_behind(capabilities: dict[str, Any]) -> None:
    sessions: dict[str, Any] = {"sessions": {"max": 100}}
    async with SlowUpstream() as upstream, gateway_for(upstream, era="legacy", **sessions) as front:
        upstream.begins = stream
        stays = await send(front, "tools/call", METHODS["tools/call"], request_id="stays")  # waits as long as it takes
        await upstream.at_work(1)
        for wave in range(1, 11):
            clients = await asyncio.gather(
                *(send(front, "tools/call", METHODS["tools/call"], capabilities=capabilities) for _ in range(99))
            )
            await upstream.at_work(100)
            for client in clients:
                client.abort()
            await upstream.seen(CANCELLED, wave * 99)
            await upstream.at_work(1)
        late = [await send(front, "tools/call", METHODS["tools/call"], capabilities=capabilities) for _ in range(10)]
        for client in late:
            client.abort()  # before anybody has read the request
        await until(lambda: held(front).leased == 1 and held(front).background == 0)
        await upstream.at_work(1)
        upstream.finish.set()
        assert (await stays.answer())["result"]["content"] == RESULT["content"]
        stays.abort()
        await until_quiet(front)
        ids = [request_id for _, request_id in upstream.cancelled]
        assert len(set(ids)) == len(ids)
        assert set(ids) <= {received.id for received in upstream.received("tools/call")}
        assert (await front.call(capabilities=capabilities)).text == "done"
        await upstream.seen("tools/call")
        live = front.gateway.upstreams["docs"]._legacy.session_count
        assert len(upstream.sessions) == live <= 2 + len(late)


# --- modern servers ---


async def test_a_modern_server_is_told_by_the_end_of_its_own_reply_and_nothing_else() -> None:
    async with ScriptedUpstream("modern") as upstream, gateway_for(upstream, era="modern") as front:
        gone: dict[Any, asyncio.Event] = {}
        finish = asyncio.Event()

        @upstream.on("tools/call")
        async def slow(wire: Wire) -> None:
            gone[wire.request.id] = wire.gone
            await wire.sse()
            await finish.wait()
            await wire.end(result={"resultType": "complete", "content": [{"type": "text", "text": "done"}]})

        other = asyncio.ensure_future(front.call())
        first = await upstream.seen("tools/call")
        async with opened(front, "tools/call", METHODS["tools/call"]):
            second = await upstream.seen("tools/call", 2)
            assert not gone[second.id].is_set()
        async with asyncio.timeout(WAIT_S):
            await gone[second.id].wait()
        assert not gone[first.id].is_set()
        finish.set()
        assert (await other).text == "done"
        assert not upstream.received(CANCELLED)
