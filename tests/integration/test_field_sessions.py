"""Sessions with servers as they are deployed: forgotten, shared, leaked, missing, and never a call made twice."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.gateway_app import Answer, Front, conversation, gateway_for
from tests.support.messages import good_request
from tests.support.scripted import Handler, ScriptedUpstream, Wire, error_message

REOPENED = ["initialize", "notifications/initialized"]
ASKS: dict[str, Any] = {"elicitation": {}}
QUIET: dict[str, Any] = {}


def text(value: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": str(value)}]}


class Counter:
    """A tool that counts how often it ran."""

    def __init__(self, upstream: ScriptedUpstream) -> None:
        self.runs = 0
        upstream.on("tools/call", self.run)

    async def run(self, wire: Wire) -> None:
        self.runs += 1
        await wire.result(text(self.runs))


# --- how servers say that they forgot a session ---

FORGOTTEN: dict[str, Handler] = {
    "404": lambda wire: wire.reply(404),
    "404 with an error": lambda wire: wire.error(-32001, "Session not found", status=404, id=None),
    "404 with an error under the id": lambda wire: wire.error(-32001, "Session not found", status=404),
    "404 with json of its own": lambda wire: wire.message({"error": "unknown session"}, status=404),
    "410": lambda wire: wire.reply(410),
    "400": lambda wire: wire.reply(400),
    "400 with text": lambda wire: wire.reply(400, b"Invalid session ID", "text/plain"),
    "400 with an error": lambda wire: wire.error(
        -32000, "Bad Request: No valid session ID provided", status=400, id=None
    ),
    "400 with an error that says little": lambda wire: wire.error(-32600, "Invalid request", status=400, id=None),
    "400 with an error under a made-up id": lambda wire: wire.error(-32600, "no", status=400, id="server-error"),
    "400 with an error under the id": lambda wire: wire.error(-32000, "Session expired", status=400),
    "400 with an error in a stream": lambda wire: wire.reply(
        400,
        b'data: {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No valid session"}}\n\n',
        "text/event-stream",
    ),
    "200 with an error": lambda wire: wire.error(-32600, "Unknown session: please initialize", id=None),
    "200 with an error under the id": lambda wire: wire.error(-32000, "Session not found"),
}


@pytest.mark.parametrize("capabilities", [QUIET, ASKS], ids=["shared", "exclusive"])
@pytest.mark.parametrize("forgotten", FORGOTTEN.values(), ids=FORGOTTEN)
async def test_a_forgotten_session_is_replaced_and_the_call_made_once(
    forgotten: Handler, capabilities: dict[str, Any]
) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        tool = Counter(upstream)
        upstream.unknown_session = forgotten
        assert (await front.call(capabilities=capabilities)).text == "1"
        upstream.forget()
        upstream.log.clear()
        assert (await front.call(capabilities=capabilities)).text == "2"
        assert tool.runs == 2
        assert [method for method in conversation(upstream) if method != "ping"] == [
            "tools/call",
            *REOPENED,
            "tools/call",
        ]
        assert upstream.received("initialize")[0].session is None
        assert [received.session for received in upstream.received("tools/call")] == ["sess-1", "sess-2"]


@pytest.mark.parametrize("reuse", ["pooled", "sticky", "none"])
async def test_a_session_that_is_forgotten_while_it_is_opened_is_replaced_whatever_is_kept(reuse: str) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, sessions={"reuse": reuse}) as front:
        tool = Counter(upstream)
        upstream.on("notifications/initialized", lambda wire: forget_and_take(upstream, wire), times=1)
        for capabilities in (QUIET, ASKS):
            runs = tool.runs
            assert (await front.call(capabilities=capabilities)).text == str(runs + 1)
            upstream.forget()
            assert (await front.call(capabilities=capabilities)).text == str(runs + 2)


async def forget_and_take(upstream: ScriptedUpstream, wire: Wire) -> None:
    upstream.forget()
    await wire.reply(202)


async def test_an_error_about_the_request_is_none_about_the_session() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.on("tools/call", lambda wire: wire.error(-32602, "Unknown tool", status=400))
        assert (await front.call()).error["code"] == -32602
        assert len(upstream.received("initialize")) == len(upstream.received("tools/call")) == 1


@pytest.mark.parametrize("capabilities", [QUIET, ASKS], ids=["shared", "exclusive"])
async def test_a_tool_that_fails_over_a_session_of_its_own_does_not_run_again(capabilities: dict[str, Any]) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.on("tools/call", lambda wire: wire.error(-32000, "Browser session not found"))
        answer = await front.call(capabilities=capabilities)
        assert answer.error["message"] == "Browser session not found"
        assert len(upstream.received("tools/call")) == len(upstream.received("initialize")) == 1
        upstream.on("tools/call", upstream.answer)
        assert (await front.call("hi", capabilities=capabilities)).text == "hi"
        assert len(upstream.received("initialize")) == 1


async def test_a_server_that_forgets_every_session_at_once_is_not_courted_for_ever() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        assert (await front.call("hi")).text == "hi"
        upstream.log.clear()
        upstream.on("tools/call", lambda wire: wire.reply(404))
        lost = await front.call()
        assert lost.status == 502
        assert lost.error["data"] == {"upstream": "docs", "reason": "session_lost", "retryable": True}
        assert conversation(upstream) == ["tools/call", *REOPENED, "tools/call"]


async def test_a_401_in_the_middle_of_a_session_is_a_forgotten_session_if_the_credential_still_opens_one() -> None:
    headers = {"Authorization": "Bearer good"}
    async with ScriptedUpstream() as upstream, gateway_for(upstream, headers=headers) as front:
        tool = Counter(upstream)
        await front.call()
        upstream.unknown_session = lambda wire: wire.reply(401)
        upstream.forget()
        upstream.log.clear()
        assert (await front.call()).text == "2"
        assert tool.runs == 2
        said = [method for method in conversation(upstream) if method != "DELETE"]
        assert said == ["tools/call", *REOPENED, "tools/call"]


async def test_a_401_to_a_new_session_too_is_a_refusal() -> None:
    headers = {"Authorization": "Bearer good"}
    async with ScriptedUpstream() as upstream, gateway_for(upstream, headers=headers) as front:
        await front.call()
        upstream.on("tools/call", lambda wire: wire.reply(401))
        assert (await front.call()).failure == (502, "unauthorized", False)
        assert len(upstream.received("tools/call")) == 3
        assert len(upstream.received("initialize")) == 2


# --- a call is never made twice ---


async def break_at_once(wire: Wire) -> None:
    wire.reset()


async def break_after_the_head(wire: Wire) -> None:
    await wire.sse()
    wire.reset()


async def break_after_progress(wire: Wire) -> None:
    await wire.sse()
    await wire.notify("notifications/progress", {"progressToken": wire.request.progress_token, "progress": 1})
    wire.reset()


async def end_in_half_a_body(wire: Wire) -> None:
    await wire.raw(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"jsonrpc":')
    wire.reset()


async def close_at_once(wire: Wire) -> None:
    wire.close()


BREAKS = [break_at_once, break_after_the_head, break_after_progress, end_in_half_a_body, close_at_once]


@pytest.mark.parametrize("capabilities", [QUIET, ASKS], ids=["shared", "exclusive"])
@pytest.mark.parametrize("breaks", BREAKS)
async def test_a_call_whose_connection_breaks_ran_once_and_its_outcome_is_unknown(
    breaks: Handler, capabilities: dict[str, Any]
) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.on("tools/call", breaks, times=1)
        failed = await front.call(capabilities=capabilities)
        assert failed.failure == (502, "outcome_unknown", False)
        assert "'docs'" in failed.error["message"]
        assert len(upstream.received("tools/call")) == 1
        assert (await front.call("hi", capabilities=capabilities)).text == "hi"
        assert len(upstream.received("tools/call")) == 2


@pytest.mark.parametrize("breaks", BREAKS)
async def test_a_list_whose_connection_breaks_is_sent_at_most_once_more(breaks: Handler) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.on("tools/list", breaks)
        assert (await front.ask("tools/list")).failure == (502, "outcome_unknown", False)
        assert len(upstream.received("tools/list")) <= 2


# --- many calls and one session ---


async def test_many_calls_at_once_share_one_session_and_replace_it_once() -> None:
    texts = [str(number) for number in range(20)]
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        assert [answer.text for answer in await front.calls(texts)] == texts
        assert len(upstream.received("initialize")) == 1
        upstream.forget()
        assert [answer.text for answer in await front.calls(texts)] == texts
        assert len(upstream.received("initialize")) == 2
        assert len(upstream.sessions) == 1


async def test_a_failed_handshake_fails_those_who_wait_for_it_and_is_not_remembered() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.on("initialize", lambda wire: wire.reply(503, headers={"Retry-After": "3"}), times=1)
        failed = await front.calls([str(number) for number in range(20)])
        assert {answer.failure for answer in failed} == {(503, "full", True)}
        assert {answer.headers["retry-after"] for answer in failed} == {"3"}
        assert len(upstream.received("initialize")) == 1
        assert (await front.call("hi")).text == "hi"


async def test_a_client_that_leaves_does_not_take_the_handshake_away_from_the_others() -> None:
    may_open = asyncio.Event()
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("initialize")
        async def open_late(wire: Wire) -> None:
            await may_open.wait()
            await upstream.answer(wire)

        first, second = (asyncio.create_task(front.call(name)) for name in ("first", "second"))
        await upstream.seen("initialize")
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert (await front.http.get(front.url + "/healthz")).status_code == 200
        may_open.set()
        assert (await second).text == "second"
        assert len(upstream.received("initialize")) == 1


async def test_a_call_that_waits_for_room_takes_that_of_a_handshake_that_failed() -> None:
    may_fail = asyncio.Event()
    sessions = {"max": 1}
    async with ScriptedUpstream() as upstream, gateway_for(upstream, sessions=sessions, era="legacy") as front:

        @upstream.on("initialize", times=1)
        async def fail_late(wire: Wire) -> None:
            await may_fail.wait()
            await wire.reply(500)

        first = asyncio.create_task(front.call("first"))
        await upstream.seen("initialize")
        second = asyncio.create_task(front.call("second", capabilities=ASKS))
        assert (await front.http.get(front.url + "/healthz")).status_code == 200
        may_fail.set()
        assert (await first).failure == (502, "nonsense", True)
        assert (await second).text == "second"


async def test_a_call_that_waits_for_room_takes_a_session_of_its_own_kind_rather_than_a_new_one() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, sessions={"max": 2}) as front:
        texts = [str(number) for number in range(12)]
        assert [answer.text for answer in await front.calls(texts, capabilities=ASKS)] == texts
        assert len(upstream.received("initialize")) == 2
        assert not upstream.received("DELETE")


async def test_callers_that_compete_for_room_do_not_take_new_sessions_from_each_other() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, sessions={"max": 2}) as front:
        calls = [front.call(str(number), capabilities={"experimental": {f"x{number}": {}}}) for number in range(12)]
        assert [answer.text for answer in await asyncio.gather(*calls)] == [str(number) for number in range(12)]
        assert len(upstream.received("initialize")) == len(upstream.received("tools/call")) == 12


async def test_a_call_that_finds_no_room_is_told_when_to_come_again() -> None:
    sessions = {"max": 1}
    async with (
        ScriptedUpstream() as upstream,
        gateway_for(upstream, sessions=sessions, connect_timeout="50ms") as front,
    ):
        upstream.on("tools/call", Wire.hang, times=1)
        blocking = asyncio.create_task(front.call())
        await upstream.seen("tools/call")
        full = await front.call(capabilities=ASKS)
        assert full.failure == (503, "full", True)
        assert int(full.headers["retry-after"]) > 0
        blocking.cancel()
        await asyncio.gather(blocking, return_exceptions=True)


# --- whose session it is ---

KEYS = {"alice": "key-a", "bob": "key-b"}
API_KEYS = {
    "auth": {
        "type": "api_key",
        "keys": [{"name": name, "sha256": hashlib.sha256(key.encode()).hexdigest()} for name, key in KEYS.items()],
    }
}


def as_(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {KEYS[name]}"}


@asynccontextmanager
async def remembering_server() -> AsyncIterator[ScriptedUpstream]:
    """A server that keeps what a session told it."""
    memory: dict[str | None, str] = {}

    async with ScriptedUpstream() as upstream:

        @upstream.on("tools/call")
        async def remember(wire: Wire) -> None:
            if wire.request.params["name"] == "remember":
                memory[wire.request.session] = wire.request.params["arguments"]["text"]
            await wire.result(text(memory.get(wire.request.session)))

        yield upstream


@pytest.mark.parametrize("reuse", ["pooled", "sticky", "none"])
@pytest.mark.parametrize("capabilities", [QUIET, ASKS], ids=["shared", "exclusive"])
async def test_nobody_sees_what_the_session_of_another_holds(capabilities: dict[str, Any], reuse: str) -> None:
    async with (
        remembering_server() as upstream,
        gateway_for(upstream, settings=API_KEYS, sessions={"reuse": reuse}) as front,
    ):

        async def use(name: str, tool: str) -> str:
            return (await front.call(f"{name}-secret", tool=tool, headers=as_(name), capabilities=capabilities)).text

        assert await use("alice", "remember") == "alice-secret"
        assert await use("bob", "recall") == "None"
        for _ in range(5):
            turns = [("alice", "remember"), ("bob", "recall"), ("bob", "remember"), ("alice", "recall")]
            seen = await asyncio.gather(*(use(name, tool) for name, tool in turns))
            for (name, _tool), value in zip(turns, seen, strict=True):
                assert value in ("None", f"{name}-secret")
        if reuse == "sticky":
            assert await use("alice", "recall") == "alice-secret"
            assert len(upstream.received("initialize")) == 2


async def test_without_a_key_nobody_gets_as_far_as_a_session() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, settings=API_KEYS) as front:
        headers, body = good_request()
        assert (await front.http.post(front.url + "/mcp", content=body, headers=headers)).status_code == 401
        assert upstream.log == []


async def test_a_renewed_credential_opens_a_session_of_its_own() -> None:
    async with remembering_server() as upstream, gateway_for(upstream, auth={"type": "passthrough"}) as front:
        old, new = {"Authorization": "Bearer old"}, {"Authorization": "Bearer new"}
        await front.call("secret", tool="remember", headers=old)
        assert (await front.call(tool="recall", headers=new)).text == "None"
        assert (await front.call(tool="recall", headers=old)).text == "secret"
        for received in upstream.log:
            if received.session is not None:
                expected = "Bearer old" if received.session == "sess-1" else "Bearer new"
                assert received.headers["authorization"] == expected


async def test_a_client_that_leaves_cancels_its_own_call_and_nobody_elses() -> None:
    may_answer = asyncio.Event()
    async with ScriptedUpstream() as upstream, gateway_for(upstream, settings=API_KEYS) as front:

        @upstream.on("tools/call")
        async def wait(wire: Wire) -> None:
            await asyncio.wait(
                [asyncio.ensure_future(may_answer.wait()), asyncio.ensure_future(wire.gone.wait())],
                return_when=asyncio.FIRST_COMPLETED,
            )
            await upstream.answer(wire)

        leaving = asyncio.create_task(front.call("a", headers=as_("alice")))
        hers = await upstream.seen("tools/call")
        staying = asyncio.create_task(front.call("b", headers=as_("bob")))
        his = await upstream.seen("tools/call", 2)
        leaving.cancel()
        cancelled = await upstream.seen("notifications/cancelled")
        assert cancelled.params["requestId"] == hers.id
        assert cancelled.session == hers.session != his.session
        may_answer.set()
        assert (await staying).text == "b"
        assert len(upstream.received("notifications/cancelled")) == 1


# --- sessions that nobody needs any more ---


async def test_idle_sessions_are_ended_and_those_at_work_are_not() -> None:
    may_answer = asyncio.Event()
    async with (
        ScriptedUpstream() as upstream,
        gateway_for(upstream, settings=API_KEYS, sessions={"idle": "1ms"}) as front,
    ):

        async def wait(wire: Wire) -> None:
            await may_answer.wait()
            await upstream.answer(wire)

        await front.call(headers=as_("alice"))
        upstream.on("tools/call", wait)
        working = asyncio.create_task(front.call("b", headers=as_("bob")))
        busy = await upstream.seen("tools/call", 2)
        front.sweep()
        ended = await upstream.seen("DELETE")
        assert (ended.session, ended.headers["mcp-protocol-version"]) == ("sess-1", "2025-11-25")
        assert upstream.sessions == {busy.session}
        may_answer.set()
        assert (await working).text == "b"


@pytest.mark.parametrize("deletes", [None, lambda wire: wire.reply(405), lambda wire: wire.reply(404), Wire.hang])
async def test_a_shutdown_ends_every_session_and_waits_for_no_server(deletes: Handler | None) -> None:
    async with ScriptedUpstream() as upstream:
        if deletes is not None:
            upstream.on("DELETE", deletes)
        async with (
            asyncio.timeout(5),
            gateway_for(upstream, settings={**API_KEYS, "server": {"drain": "100ms"}}) as front,
        ):
            upstream.offer_get()
            for name in KEYS:
                await front.call(headers=as_(name))
                await front.call(headers=as_(name), capabilities=ASKS)
            assert len(upstream.received("initialize")) == 4
        deleted = [received.session for received in upstream.received("DELETE")]
        assert sorted(str(session) for session in deleted) == ["sess-1", "sess-2", "sess-3", "sess-4"]
        assert upstream.sessions == (set() if deletes is None else {"sess-1", "sess-2", "sess-3", "sess-4"})


async def test_there_are_never_more_sessions_than_allowed_and_the_oldest_make_room() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, sessions={"max": 3}) as front:
        for number in range(8):
            capabilities: dict[str, Any] = {"experimental": {f"x{number}": {}}}
            assert (await front.call(str(number), capabilities=capabilities)).text == str(number)
        await upstream.seen("DELETE", 5)
        assert upstream.sessions == {"sess-6", "sess-7", "sess-8"}
        assert len(upstream.received("initialize")) == 8


async def test_a_handshake_that_a_shutdown_overtakes_leaves_no_session() -> None:
    may_open = asyncio.Event()
    async with ScriptedUpstream() as upstream:

        @upstream.on("initialize")
        async def open_late(wire: Wire) -> None:
            await may_open.wait()
            await upstream.answer(wire)

        async with gateway_for(upstream) as front:
            waiting = asyncio.create_task(front.call())
            await upstream.seen("initialize")
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            asyncio.get_running_loop().call_later(0.05, may_open.set)  # while the gateway ends
        assert not upstream.sessions


# --- servers without sessions ---


@pytest.mark.parametrize("capabilities", [QUIET, ASKS], ids=["shared", "exclusive"])
async def test_a_server_without_sessions_is_introduced_to_once_and_never_sees_a_session_header(
    capabilities: dict[str, Any],
) -> None:
    async with ScriptedUpstream() as upstream:
        upstream.with_sessions = False
        async with gateway_for(upstream) as front:
            assert (await front.ask("tools/list", capabilities=capabilities)).result["tools"]
            for word in ("a", "b"):
                assert (await front.call(word, capabilities=capabilities)).text == word
        assert len(upstream.received("initialize")) == 1
        assert not upstream.received("DELETE")
        assert not [received for received in upstream.log if "mcp-session-id" in received.headers]


async def hold_back(wire: Wire) -> None:
    await wire.hang()


async def close_the_stream(wire: Wire) -> None:
    await wire.sse()
    await wire.end()


GETS: dict[str, Handler] = {
    "405": lambda wire: wire.reply(405),
    "404": lambda wire: wire.reply(404),
    "400": lambda wire: wire.reply(400),
    "500": lambda wire: wire.reply(500),
    "409": lambda wire: wire.reply(409),
    "a page": lambda wire: wire.reply(200, b"<html>", "text/html"),
    "json": lambda wire: wire.reply(200, b"{}", "application/json"),
    "a stream that closes at once": close_the_stream,
    "no answer": hold_back,
}


@pytest.mark.parametrize("get", GETS.values(), ids=GETS)
async def test_whatever_becomes_of_get_calls_go_on(get: Handler) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.on("GET", get)
        assert [answer.text for answer in await front.calls(["a", "b"])] == ["a", "b"]
        assert (await front.ask("tools/list")).result["tools"]
        assert len(upstream.received("initialize")) == 1


@pytest.mark.parametrize("get", [None, GETS["405"], GETS["a page"]], ids=["no session", "405", "a page"])
async def test_a_server_that_can_tell_of_no_change_promises_none(get: Handler | None) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.capabilities = {"tools": {"listChanged": True}}
        upstream.with_sessions = get is not None
        if get is not None:
            upstream.on("GET", get)
        answer = await front.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        [acknowledged] = answer.notifications
        assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
        assert not acknowledged["params"].get("notifications")
        assert "tools/list" not in upstream.methods()
        assert not [received for received in upstream.log if received.headers.get("mcp-session-id") == ""]


async def test_a_session_that_is_handed_out_late_is_used_from_then_on() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.with_sessions = False
        upstream.on("tools/list", lambda wire: wire.result({"tools": []}, headers={"Mcp-Session-Id": "sess-late"}))
        await front.call()
        assert upstream.received("tools/call")[0].session == "sess-late"


# --- ids ---


async def ask_with_ids(front: Front, ids: list[str | int]) -> list[Answer]:
    return await asyncio.gather(
        *(front.call(f"text {number}", request_id=request_id) for number, request_id in enumerate(ids))
    )


async def test_clients_that_use_the_same_id_get_their_own_answers_with_the_id_they_wrote() -> None:
    ids: list[str | int] = [1, 1, "1", 0, "", 9007199254740991, -5, "b7e0a1c2-5b0f-4a53-9d3f-0f6a2a1b9f10"]
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        waiting: list[Wire] = []

        @upstream.on("tools/call")
        async def answer_backwards(wire: Wire) -> None:
            waiting.append(wire)
            if len(waiting) == len(ids):
                for each in reversed(waiting):
                    await upstream.answer(each)
            else:
                wire.is_answered = True

        answers = await ask_with_ids(front, ids)  # each held to its id, with its type
        assert [answer.text for answer in answers] == [f"text {number}" for number in range(len(ids))]
        sent = [received.id for received in upstream.received("tools/call")]
        assert len(set(sent)) == len(ids)
        assert all(isinstance(request_id, str) for request_id in sent)


def raw(message: Mapping[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": "tools/list", **message}).encode()


@pytest.mark.parametrize("message", [{"id": None}, {"id": 1.5}, {"id": True}, {"id": [1]}, {"id": {}}])
async def test_an_id_that_is_none_never_reaches_a_server(message: dict[str, Any]) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28"}
        reply = await front.http.post(
            front.url + "/mcp",
            content=raw(message | {"params": {}}),
            headers=headers | {"Content-Type": "application/json", "Mcp-Method": "tools/list"},
        )
        assert reply.status_code == 400
        assert reply.json() == error_message(None, -32600, reply.json()["error"]["message"])
        assert upstream.log == []
