"""Progress, logs and cancellation: what reaches whom while a call runs, and what a client that leaves sets going."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx
import pytest

from gateway.server.endpoint import CLIENT_LEFT
from tests.support.api_keys import keys
from tests.support.gateway_app import BOUND_S, Answer, Front, gateway_for
from tests.support.messages import PREFIX, good_request
from tests.support.raw_http import connect
from tests.support.scripted import Received, ScriptedUpstream, Wire

PROGRESS = "notifications/progress"
MESSAGE = "notifications/message"
CANCELLED = "notifications/cancelled"
QUIET: dict[str, Any] = {}
ASKS: dict[str, Any] = {"elicitation": {"form": {}}}
TEXT = {"content": [{"type": "text", "text": "done"}]}

Era = Literal["legacy", "modern"]
eras = pytest.mark.parametrize("era", ["legacy", "modern"])
kinds = pytest.mark.parametrize("capabilities", [QUIET, ASKS], ids=["shared", "exclusive"])


async def finish(upstream: ScriptedUpstream, wire: Wire) -> None:
    """End a stream with a result, in the server's era."""
    await wire.end(result=upstream._in_era(TEXT))


def progress_script(upstream: ScriptedUpstream, *values: Any, token: Any = None, **more: Any) -> None:
    """Have every call send progress for its own token (or another one), then its result."""

    async def script(wire: Wire) -> None:
        named = wire.request.progress_token if token is None else token
        await wire.sse()
        for value in values:
            await wire.notify(PROGRESS, {"progressToken": named, "progress": value, **more})
        await finish(upstream, wire)

    upstream.on("tools/call", script)


def progress_of(answer: Answer) -> list[Any]:
    assert {note["method"] for note in answer.notifications} <= {PROGRESS}
    return [note["params"]["progress"] for note in answer.notifications]


# --- progress ---


@eras
@pytest.mark.parametrize("token", ["abc", 0, 7, "7", "", 2**53, "x" * 256])
async def test_progress_comes_with_the_clients_own_token_before_the_response(era: Era, token: str | int) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:
        progress_script(upstream, 1, 2, 3, total=3, message="on the way")
        answer = await front.call(meta={"progressToken": token})
        assert answer.result["content"] == TEXT["content"]
        params = [note["params"] for note in answer.notifications]
        expected = {"progressToken": token, "total": 3, "message": "on the way"}
        assert params == [{**expected, "progress": value} for value in (1, 2, 3)]
        assert {type(given["progressToken"]) for given in params} == {type(token)}
        assert upstream.received("tools/call")[0].progress_token not in (None, token)


@eras
@kinds
async def test_without_a_token_there_is_no_progress(era: Era, capabilities: Mapping[str, Any]) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:
        progress_script(upstream, 1, 2)
        answer = await front.call(capabilities=capabilities)
        assert (answer.is_stream, answer.notifications) == (False, [])


@eras
@pytest.mark.parametrize("token", ["mine", None])
@pytest.mark.parametrize("invented", ["tool-call-1", "mine", 1, True, {}])
async def test_progress_under_a_token_that_the_server_made_up_goes_nowhere(
    era: Era, token: str | None, invented: Any
) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:
        progress_script(upstream, 1, 2, token=invented)
        answer = await front.call(meta={} if token is None else {"progressToken": token})
        assert (answer.text, answer.notifications) == ("done", [])


@eras
async def test_progress_only_ever_increases(era: Era) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:
        progress_script(upstream, 0, 1, 1, 0.5, 1.5, 1.5, -3, 2, "3", None, True, 4)
        assert progress_of(await front.call(meta={"progressToken": "t"})) == [0, 1, 1.5, 2, 4]


@eras
async def test_progress_of_another_call_in_flight_is_not_given_to_this_one(era: Era) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:
        both = asyncio.Barrier(2)

        @upstream.on("tools/call")
        async def cross(wire: Wire) -> None:
            await both.wait()
            calls = {call.params["arguments"]["text"]: call.progress_token for call in upstream.received("tools/call")}
            own = wire.request.params["arguments"]["text"]
            other = calls["a" if own == "b" else "b"]
            await wire.sse()
            await wire.notify(PROGRESS, {"progressToken": other, "progress": 50})
            await wire.notify(PROGRESS, {"progressToken": calls[own], "progress": 1, "message": own})
            await both.wait()
            await finish(upstream, wire)

        answers = await asyncio.gather(*(front.call(text, meta={"progressToken": text}) for text in "ab"))
        for text, answer in zip("ab", answers, strict=True):
            own = {"progressToken": text, "progress": 1, "message": text}
            assert [note["params"] for note in answer.notifications] == [own]


@eras
async def test_equal_tokens_of_two_users_are_kept_apart(era: Era) -> None:
    settings = keys(alice="key-a", bob="key-b")
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream, settings=settings) as front:
        both = asyncio.Barrier(2)

        @upstream.on("tools/call")
        async def script(wire: Wire) -> None:
            await both.wait()
            await wire.sse()
            text = wire.request.params["arguments"]["text"]
            token = wire.request.progress_token
            await wire.notify(PROGRESS, {"progressToken": token, "progress": 1, "message": text})
            await finish(upstream, wire)

        answers = await asyncio.gather(
            *(
                front.call(f"of {key}", meta={"progressToken": 1}, headers={"Authorization": f"Bearer {key}"})
                for key in ("key-a", "key-b")
            )
        )
        for key, answer in zip(("key-a", "key-b"), answers, strict=True):
            assert [note["params"]["message"] for note in answer.notifications] == [f"of {key}"]
        tokens = [call.progress_token for call in upstream.received("tools/call")]
        assert len(set(tokens)) == 2


@kinds
async def test_progress_on_the_sessions_own_stream_finds_its_call(capabilities: Mapping[str, Any]) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.offer_get()

        @upstream.on("tools/call")
        async def aside(wire: Wire) -> None:
            await upstream.seen("GET")
            params = {"progressToken": wire.request.progress_token, "progress": 1}
            await upstream.push({"jsonrpc": "2.0", "method": PROGRESS, "params": params})
            await wire.result(TEXT)

        await front.ask("tools/list", capabilities=capabilities)
        await upstream.seen("GET")
        answer = await front.call(meta={"progressToken": "t"}, capabilities=capabilities)
        assert [note["params"] for note in answer.notifications] == [{"progressToken": "t", "progress": 1}]


@eras
async def test_nothing_follows_the_response(era: Era) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call")
        async def go_on(wire: Wire) -> None:
            token = wire.request.progress_token
            await wire.sse()
            await wire.notify(PROGRESS, {"progressToken": token, "progress": 1})
            await wire.event({"jsonrpc": "2.0", "id": wire.request.id, "result": upstream._in_era(TEXT)})
            await wire.notify(PROGRESS, {"progressToken": token, "progress": 2})
            await wire.end()

        answer = await front.call(meta={"progressToken": "t"})
        assert (answer.text, progress_of(answer)) == ("done", [1])


# --- logs ---

LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


def log_script(upstream: ScriptedUpstream, *messages: Mapping[str, Any]) -> None:
    """Have every call log, then give its result."""

    async def script(wire: Wire) -> None:
        await wire.sse()
        for message in messages or [{"level": level, "data": level} for level in LEVELS]:
            await wire.notify(MESSAGE, message)
        await finish(upstream, wire)

    upstream.on("tools/call", script)


def logged(answer: Answer) -> list[str]:
    assert {note["method"] for note in answer.notifications} <= {MESSAGE}
    return [note["params"]["level"] for note in answer.notifications]


def wants(level: str) -> dict[str, Any]:
    return {f"{PREFIX}logLevel": level}


@asynccontextmanager
async def logging_server(era: Era = "legacy", *, declares: bool = True) -> AsyncIterator[ScriptedUpstream]:
    async with ScriptedUpstream(era) as upstream:
        if declares:
            upstream.capabilities = {"tools": {}, "logging": {}}
            upstream.on("logging/setLevel", lambda wire: wire.result({}))
        log_script(upstream)
        yield upstream


declared = pytest.mark.parametrize("declares", [True, False], ids=["declared", "undeclared"])


@eras
@declared
@kinds
async def test_nothing_is_logged_to_who_did_not_ask(era: Era, declares: bool, capabilities: Mapping[str, Any]) -> None:
    async with logging_server(era, declares=declares) as upstream, gateway_for(upstream) as front:
        assert (await front.call(meta=wants("debug"), capabilities=capabilities)).text == "done"
        answer = await front.call(capabilities=capabilities)
        assert (answer.is_stream, answer.notifications) == (False, [])


@eras
@declared
@pytest.mark.parametrize("level", ["debug", "warning", "emergency"])
async def test_logs_come_from_the_level_asked_for_upwards(era: Era, declares: bool, level: str) -> None:
    async with logging_server(era, declares=declares) as upstream, gateway_for(upstream) as front:
        answer = await front.call(meta=wants(level))
        assert logged(answer) == LEVELS[LEVELS.index(level) :]
        assert answer.text == "done"
        assert bool(upstream.received("logging/setLevel")) == (declares and era == "legacy")


@eras
@declared
async def test_calls_side_by_side_are_filtered_each_by_its_own_level(era: Era, declares: bool) -> None:
    async with logging_server(era, declares=declares) as upstream, gateway_for(upstream) as front:
        levels = ["debug", "error", "info", "alert"]
        answers = await asyncio.gather(*(front.call(meta=wants(level)) for level in levels))
        assert [logged(answer)[0] for answer in answers] == levels


async def test_the_level_is_set_when_a_session_says_too_little_and_only_then() -> None:
    async with logging_server() as upstream, gateway_for(upstream) as front:
        for level in ("error", "error", "alert", "debug", "info"):
            assert logged(await front.call(meta=wants(level)))[0] == level
        levels = [request.params["level"] for request in upstream.received("logging/setLevel")]
        assert levels == ["error", "debug"]
        assert len(upstream.received("initialize")) == 1


@pytest.mark.parametrize(("status", "code"), [(200, -32601), (200, -32603), (403, -32000), (501, -32601)])
async def test_a_call_goes_on_without_the_level_when_it_cannot_be_set(status: int, code: int) -> None:
    async with logging_server() as upstream, gateway_for(upstream) as front:
        upstream.on("logging/setLevel", lambda wire: wire.error(code, status=status))
        assert logged(await front.call(meta=wants("error")))[0] == "error"


async def test_a_level_that_is_set_too_slowly_does_not_keep_the_call_for_ever() -> None:
    async with logging_server() as upstream, gateway_for(upstream, connect_timeout="200ms") as front:
        upstream.on("logging/setLevel", lambda wire: wire.hang())
        assert logged(await front.call(meta=wants("error")))[0] == "error"


@eras
async def test_an_unknown_level_is_refused_and_goes_no_further(era: Era) -> None:
    async with logging_server(era) as upstream, gateway_for(upstream) as front:
        answer = await front.call(meta=wants("loud"))
        assert (answer.status, answer.error["code"]) == (400, -32602)
        assert upstream.log == []


@eras
@pytest.mark.parametrize("method", ["logging/setLevel", "ping", "resources/subscribe", "resources/unsubscribe"])
async def test_methods_of_old_sessions_are_unknown_and_go_no_further(era: Era, method: str) -> None:
    async with logging_server(era) as upstream, gateway_for(upstream) as front:
        answer = await front.ask(method, {"level": "info", "uri": "a:b"}, request_id="x")
        assert (answer.status, answer.error["code"]) == (404, -32601)
        assert upstream.log == []


@eras
async def test_log_messages_keep_what_they_say_and_odd_ones_are_dropped(era: Era) -> None:
    full = {"level": "error", "logger": "db", "data": {"deep": [1, None, {"é": "ž"}]}, "x-own": 1}
    odd: list[dict[str, Any]] = [
        {"data": "no level"},
        {"level": "loud", "data": 1},
        {"level": 3},
        {"level": None},
        {"level": ["error"]},
    ]
    async with logging_server(era) as upstream, gateway_for(upstream) as front:
        log_script(upstream, *odd, full, {"level": "error", "logger": None, "data": 0}, {"level": "alert"})
        answer = await front.call(meta=wants("debug"))
        params = [note["params"] for note in answer.notifications]
        assert params == [full, {"level": "error", "data": 0}, {"level": "alert", "data": None}]


async def test_logs_on_the_sessions_own_stream_come_before_the_response() -> None:
    async with logging_server() as upstream, gateway_for(upstream) as front:
        upstream.offer_get()

        @upstream.on("tools/call")
        async def aside(wire: Wire) -> None:
            for level in ("info", "error"):
                message = {"jsonrpc": "2.0", "method": MESSAGE, "params": {"level": level, "data": level}}
                await upstream.push(message)
            await wire.result(TEXT)

        answer = await front.call(meta=wants("warning"))
        assert (logged(answer), answer.text) == (["error"], "done")


@eras
async def test_other_notifications_are_nobodys_business(era: Era) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call")
        async def chatter(wire: Wire) -> None:
            await wire.sse()
            for method in ("notifications/x-own", "notifications/tasks/status", "notifications/elicitation/complete"):
                await wire.notify(method, {"elicitationId": "e", "taskId": "t"})
            await wire.event({"jsonrpc": "2.0", "method": PROGRESS})
            await wire.event({"jsonrpc": "2.0", "method": MESSAGE, "params": ["error"]})
            await finish(upstream, wire)

        answer = await front.call(meta={"progressToken": 1, **wants("debug")})
        assert (answer.text, answer.notifications) == ("done", [])


# --- a client that leaves ---

REQUESTS: dict[str, Mapping[str, Any]] = {
    "tools/call": {"name": "echo", "arguments": {"text": "slow"}},
    "prompts/get": {"name": "p"},
    "resources/read": {"uri": "note://1"},
    "tools/list": {},
}
OFFERED: dict[str, Any] = {"tools": {}, "prompts": {}, "resources": {}}


class Leaver:
    """Clients that close their connection before they have their answer."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._tasks: list[asyncio.Task[httpx.Response]] = []

    def start(self, method: str, params: Mapping[str, Any], **more: Any) -> None:
        headers, body = good_request(method, params, **more)
        post = self._front.http.post(f"{self._front.url}/mcp", content=body, headers=headers)
        self._tasks.append(asyncio.create_task(post))

    async def leave(self) -> None:
        """Close the connections, and wait until the gateway says that it has noticed."""
        for task in self._tasks:
            assert not task.done()
            task.cancel()
        await asyncio.wait(self._tasks, timeout=BOUND_S)
        await until_noticed(self._front, len(self._tasks))


async def until_noticed(front: Front, count: int) -> None:
    """Wait until the gateway has noticed that so many clients left."""
    async with asyncio.timeout(BOUND_S):
        while sum(entry.get("status") == CLIENT_LEFT for entry in front.log) < count:  # noqa: ASYNC110 -- only the log tells
            await asyncio.sleep(0.002)


async def hang_silently(wire: Wire) -> None:
    await wire.hang()


async def hang_on_a_stream(wire: Wire) -> None:
    await wire.sse()
    await wire.hang()


hangs = pytest.mark.parametrize("hang", [hang_silently, hang_on_a_stream], ids=["no headers", "a stream"])


def cancelled_ids(upstream: ScriptedUpstream) -> list[Any]:
    return [note.params["requestId"] for note in upstream.received(CANCELLED)]


@hangs
@kinds
@pytest.mark.parametrize("method", REQUESTS)
async def test_a_client_that_leaves_cancels_its_own_request_and_no_other(
    method: str, capabilities: Mapping[str, Any], hang: Any
) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.capabilities = OFFERED
        other_may_end = asyncio.Event()
        await front.call("warm", capabilities=capabilities)

        @upstream.on("tools/call", times=1)
        async def other(wire: Wire) -> None:
            await other_may_end.wait()
            await upstream.answer(wire)

        staying = asyncio.create_task(front.call("stays", capabilities=capabilities))
        await upstream.seen("tools/call", 2)
        gone: list[asyncio.Event] = []

        async def slow(wire: Wire) -> None:
            gone.append(wire.gone)
            await hang(wire)

        before = len(upstream.received(method))
        upstream.on(method, slow, times=1)
        leaver = Leaver(front)
        leaver.start(method, REQUESTS[method], capabilities=capabilities)
        slow_one = await upstream.seen(method, before + 1)
        await leaver.leave()
        note = await upstream.seen(CANCELLED)
        assert note.params["requestId"] == slow_one.id
        assert (note.session, "id" in note.message) == (slow_one.session, False)
        async with asyncio.timeout(BOUND_S):
            await gone[0].wait()
        other_may_end.set()
        assert (await staying).text == "stays"
        assert cancelled_ids(upstream) == [slow_one.id]
        assert (await front.call("next", capabilities=capabilities)).text == "next"


@kinds
async def test_an_answer_that_comes_after_all_is_dropped(capabilities: Mapping[str, Any]) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call", times=1)
        async def answer_late(wire: Wire) -> None:
            await wire.sse()
            await upstream.seen(CANCELLED)
            await wire.end(result=TEXT)

        leaver = Leaver(front)
        leaver.start("tools/call", REQUESTS["tools/call"], capabilities=capabilities)
        await upstream.seen("tools/call")
        await leaver.leave()
        await upstream.seen(CANCELLED)
        assert (await front.call("next", capabilities=capabilities)).text == "next"


async def test_a_cancellation_does_not_queue_behind_the_call_that_it_cancels() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call", times=1)
        async def one_at_a_time(wire: Wire) -> None:
            await upstream.seen(CANCELLED)
            await wire.hang()

        leaver = Leaver(front)
        leaver.start("tools/call", REQUESTS["tools/call"])
        call = await upstream.seen("tools/call")
        await leaver.leave()
        note = await upstream.seen(CANCELLED)
        assert note.connection != call.connection


@kinds
async def test_many_clients_that_leave_at_once_cancel_each_its_own(capabilities: Mapping[str, Any]) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, sessions={"max": 200}) as front:
        gone: list[asyncio.Event] = []

        async def slow(wire: Wire) -> None:
            gone.append(wire.gone)
            await hang_on_a_stream(wire)

        upstream.on("tools/call", slow)
        await front.ask("tools/list", capabilities=capabilities)
        leaver = Leaver(front)
        for number in range(60):
            leaver.start("tools/call", REQUESTS["tools/call"], request_id=number, capabilities=capabilities)
        await upstream.seen("tools/call", 60)
        await leaver.leave()
        await upstream.seen(CANCELLED, 60)
        assert sorted(cancelled_ids(upstream)) == sorted(call.id for call in upstream.received("tools/call"))
        async with asyncio.timeout(BOUND_S):
            await asyncio.gather(*(event.wait() for event in gone))


@pytest.mark.parametrize("step", ["server/discover", "initialize", "notifications/initialized"])
async def test_a_client_that_leaves_during_the_handshake_cancels_nothing(step: str) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        go_on = asyncio.Event()

        @upstream.on(step, times=1)
        async def slow(wire: Wire) -> None:
            await go_on.wait()
            await upstream.answer(wire)

        leaver = Leaver(front)
        leaver.start("tools/call", REQUESTS["tools/call"])
        await upstream.seen(step)
        await leaver.leave()
        go_on.set()
        assert (await front.call("next")).text == "next"
        assert upstream.received(CANCELLED) == []
        assert len(upstream.received("initialize")) == 1
        assert len(upstream.received("tools/call")) == 1


async def test_a_round_is_not_cancelled_by_closing_the_connection_that_it_came_on() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call")
        async def ask(wire: Wire) -> None:
            await wire.sse()
            form = {"message": "?", "requestedSchema": {"type": "object", "properties": {"n": {"type": "string"}}}}
            answer = await upstream.ask(wire, "elicitation/create", form, id="e-1")
            content = [{"type": "text", "text": answer["result"]["content"]["n"]}]
            await wire.end(result={"content": content})

        async with httpx.AsyncClient(timeout=BOUND_S, trust_env=False) as own:
            shared, front.http = front.http, own
            first = await front.call(capabilities=ASKS)
            front.http = shared
        assert first.result["resultType"] == "input_required"
        [key] = first.result["inputRequests"]
        answers = {key: {"action": "accept", "content": {"n": "seven"}}}
        params = {"name": "echo", "arguments": {"text": "hi"}, "inputResponses": answers}
        retry = await front.ask(
            "tools/call", {**params, "requestState": first.result["requestState"]}, capabilities=ASKS
        )
        assert retry.text == "seven"
        assert upstream.received(CANCELLED) == []


@eras
@pytest.mark.parametrize("method", [CANCELLED, "notifications/initialized", "notifications/x-own"])
async def test_a_notification_is_taken_note_of_and_goes_no_further(era: Era, method: str) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:
        may_end = asyncio.Event()

        @upstream.on("tools/call")
        async def slow(wire: Wire) -> None:
            await may_end.wait()
            await upstream.answer(wire)

        call = asyncio.create_task(front.call("hi", request_id=1))
        await upstream.seen("tools/call")
        before = len(upstream.log)
        headers, _body = good_request(method)
        body = b'{"jsonrpc":"2.0","method":"%b","params":{"requestId":1}}' % method.encode()
        reply = await front.http.post(f"{front.url}/mcp", content=body, headers=headers)
        assert (reply.status_code, reply.content) == (202, b"")
        may_end.set()
        assert (await call).text == "hi"
        assert len(upstream.log) == before


@hangs
async def test_leaving_a_modern_server_closes_the_response_and_says_nothing_else(hang: Any) -> None:
    async with ScriptedUpstream("modern") as upstream, gateway_for(upstream) as front:
        gone: list[asyncio.Event] = []

        async def slow(wire: Wire) -> None:
            gone.append(wire.gone)
            await hang(wire)

        upstream.on("tools/call", slow, times=1)
        leaver = Leaver(front)
        leaver.start("tools/call", REQUESTS["tools/call"])
        await upstream.seen("tools/call")
        await leaver.leave()
        async with asyncio.timeout(BOUND_S):
            await gone[0].wait()
        assert upstream.methods() == ["server/discover", "tools/call"]
        assert (await front.call("next")).text == "next"


def sent_to(calls: Sequence[Received]) -> list[Any]:
    return [call.params["arguments"]["text"] for call in calls]


async def test_a_client_that_leaves_before_its_request_was_sent_sends_nothing() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, sessions={"max": 1}) as front:
        may_end = asyncio.Event()

        @upstream.on("tools/call", times=1)
        async def slow(wire: Wire) -> None:
            await may_end.wait()
            await upstream.answer(wire)

        first = asyncio.create_task(front.call("first", capabilities=ASKS))
        await upstream.seen("tools/call")
        headers, body = good_request(
            "tools/call", {"name": "echo", "arguments": {"text": "never"}}, capabilities=ASKS, request_id="never"
        )
        async with connect(front.url) as connection:
            await connection.send("POST", "/mcp", headers, body)
            await front.http.post(f"{front.url}/none")  # what was sent before has arrived by now
        await until_noticed(front, 1)
        may_end.set()
        assert (await first).text == "first"
        assert (await front.call("last", capabilities=ASKS)).text == "last"
        assert sent_to(upstream.received("tools/call")) == ["first", "last"]
        assert upstream.received(CANCELLED) == []
