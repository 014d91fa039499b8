"""`subscriptions/listen` in front of a legacy server: what is promised, who is told what, what a break costs."""

import asyncio
import hashlib
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import pytest

from gateway import app
from gateway.core.subscriptions import MOST_PARTS
from gateway.upstream import backoff, legacy_session, listener
from gateway.upstream import listening as legacy_listening
from gateway.upstream.listening import PATIENCE
from tests.support.changing_server import PROMPTS, TOOLS, UPDATED, ChangingUpstream, served, sessions_of
from tests.support.gateway_app import Front, gateway_for
from tests.support.leftovers import until, until_quiet
from tests.support.messages import PREFIX
from tests.support.scripted import ScriptedUpstream, Wire
from tests.support.stream_client import ACKNOWLEDGED, SUBSCRIPTION, OpenStream, listening, opened

QUICK = (0.001,)
ASKS: dict[str, Any] = {"elicitation": {}}
HASTY = {"server": {"drain": "100ms"}}


@pytest.fixture(autouse=True)
def quick_reconnections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "PAUSES_S", QUICK)
    monkeypatch.setattr(backoff, "PAUSES_S", QUICK)
    monkeypatch.setattr(app, "_FAREWELL_S", 0.1)


def tagged(method: str, id: str | int, **params: Any) -> dict[str, Any]:
    """What a listener is told of a change."""
    return {"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": {SUBSCRIPTION: id}}}


def complete(id: str | int) -> dict[str, Any]:
    """The result that ends a listener's stream."""
    return {"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "_meta": {SUBSCRIPTION: id}}}


async def granted(stream: OpenStream) -> dict[str, Any]:
    """What the acknowledgement, the first message of all, promises."""
    acknowledgement = await stream.message()
    assert acknowledgement["method"] == ACKNOWLEDGED
    promised: dict[str, Any] = acknowledgement["params"]["notifications"]
    return promised


ALL = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["note://1"],
}


def asking(front: Front, asked: Any = ALL, **request: Any) -> AbstractAsyncContextManager[OpenStream]:
    """A listener whose acknowledgement has not been read yet."""
    return opened(front, "subscriptions/listen", {"notifications": asked}, **request)


# --- what is promised ---


@pytest.mark.parametrize("id", ["L1", 5, "5", 0])
async def test_the_acknowledgement_comes_first_and_names_the_subscription_by_its_id(id: str | int) -> None:
    async with served() as (upstream, front), asking(front, request_id=id) as stream:
        assert await stream.message() == tagged(ACKNOWLEDGED, id, notifications=ALL)
        await upstream.tell(TOOLS)
        told = await stream.message()
        assert told == tagged(TOOLS, id)
        assert type(told["params"]["_meta"][SUBSCRIPTION]) is type(id)
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["x-accel-buffering"] == "no"
        assert "no-transform" in stream.headers["cache-control"]


PROMISES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "what the server has": ({"tools": {"listChanged": True}, "prompts": {}}, {"toolsListChanged": True}),
    "no more than was asked for": ({"logging": {}, "tools": {"listChanged": "yes"}}, {}),
    "no updates without subscribe": ({"resources": {"listChanged": True}}, {"resourcesListChanged": True}),
    "updates without list changes": ({"resources": {"subscribe": True}}, {"resourceSubscriptions": ["note://1"]}),
    "nothing without capabilities": ({}, {}),
}


@pytest.mark.parametrize(("capabilities", "promised"), PROMISES.values(), ids=PROMISES)
async def test_only_what_can_be_delivered_is_promised(capabilities: dict[str, Any], promised: dict[str, Any]) -> None:
    async with served() as (upstream, front):
        upstream.capabilities = capabilities
        async with asking(front) as stream:
            assert await granted(stream) == promised


async def test_nothing_is_promised_without_a_stream_or_a_session_to_hear_on() -> None:
    async with served() as (upstream, front):
        upstream.on("GET", lambda wire: wire.reply(405))
        async with asking(front, request_id="L") as stream:
            assert await granted(stream) == {}
            assert await stream.rest() == [complete("L")]
    async with served() as (upstream, front):
        upstream.with_sessions = False
        async with asking(front) as stream:
            assert await granted(stream) == {}


@pytest.mark.parametrize("asked", [{}, {"toolsListChanged": False}, {"resourceSubscriptions": []}])
async def test_a_listener_of_nothing_is_acknowledged_and_completed_at_once(asked: dict[str, Any]) -> None:
    async with served() as (_upstream, front):
        async with asking(front, asked, request_id=7) as stream:
            assert await granted(stream) == {}
            assert await stream.rest() == [complete(7)]
        await until_quiet(front)


async def test_what_the_server_refuses_is_left_out() -> None:
    async with served() as (upstream, front):
        upstream.refused = {"note://2"}
        asked = {"resourceSubscriptions": ["note://1", "note://2"]}
        async with asking(front, asked) as stream:
            assert await granted(stream) == {"resourceSubscriptions": ["note://1"]}
            await upstream.tell(UPDATED, uri="note://2")
            await upstream.tell(UPDATED, uri="note://1")
            assert (await stream.message())["params"]["uri"] == "note://1"


async def test_discover_promises_what_listen_can_deliver() -> None:
    async with served() as (upstream, front):
        assert (await front.ask("server/discover")).result["capabilities"]["tools"] == {"listChanged": True}
    async with served() as (upstream, front):
        upstream.on("GET", lambda wire: wire.reply(405))
        assert (await front.ask("server/discover")).result["capabilities"]["tools"] == {}


async def test_an_upstream_that_is_down_is_an_error_and_no_stream() -> None:
    async with served() as (upstream, front):
        await upstream.stop()
        async with asking(front) as stream:
            assert (await stream.answer())["error"]["data"]["reason"] == "unreachable"
            assert stream.status == 502
        await until_quiet(front)
        await upstream.start()
        async with listening(front):
            pass


# --- who is told what ---


async def test_a_change_reaches_every_listener_once_under_its_own_id() -> None:
    async with (
        served() as (upstream, front),
        listening(front, id="a") as first,
        listening(front, id=1) as second,
        listening(front, id="r", tools=False, uris=["note://1"]) as third,
    ):
        await upstream.tell(TOOLS)
        assert await first.message() == tagged(TOOLS, "a")
        assert await second.message() == tagged(TOOLS, 1)
        await upstream.tell(PROMPTS)
        await upstream.tell(UPDATED, uri="note://1")
        assert await third.message() == tagged(UPDATED, "r", uri="note://1")
        await upstream.tell(TOOLS)
        assert await first.message() == tagged(TOOLS, "a")
        assert len(upstream.streams) == 1


async def test_a_change_that_a_call_hears_reaches_the_listeners() -> None:
    async with served() as (upstream, front):

        @upstream.on("tools/call")
        async def add_tool(wire: Wire) -> None:
            await wire.sse()
            await wire.event({"jsonrpc": "2.0", "method": TOOLS})
            await wire.notify("notifications/progress", {"progressToken": wire.request.progress_token, "progress": 1})
            await wire.notify("notifications/message", {"level": "info", "data": "not for listeners"})
            await wire.end(result={"content": []})

        async with listening(front) as stream:
            answer = await front.call(meta={"progressToken": "p", f"{PREFIX}logLevel": "debug"})
            assert TOOLS not in [told["method"] for told in answer.notifications]
            assert await stream.message() == tagged(TOOLS, 1)
            await upstream.tell(TOOLS, stream_session(upstream))
            assert await stream.message() == tagged(TOOLS, 1)


def stream_session(upstream: ChangingUpstream) -> str | None:
    """One of the sessions that are listened on."""
    return next(iter(upstream.streams))


async def test_a_change_that_several_sessions_hear_is_told_once() -> None:
    async with served() as (upstream, front):
        await front.calls(["a", "b", "c"], capabilities={"elicitation": {}})
        async with listening(front) as stream:
            await upstream.until(lambda: len(upstream.streams) >= 2)
            await upstream.tell(TOOLS)
            await upstream.tell(TOOLS)
            assert await stream.message() == tagged(TOOLS, 1)
            await upstream.tell(PROMPTS)  # nobody's, but whatever comes before it would be told first
            await upstream.tell(TOOLS, stream_session(upstream))
            assert await stream.message() == tagged(TOOLS, 1)
            assert stream.wire.count(TOOLS.encode()) == 2


async def test_an_update_of_a_part_is_told_to_who_watches_the_whole() -> None:
    async with served() as (upstream, front), listening(front, tools=False, uris=["file:///dir"]) as stream:
        await upstream.tell(UPDATED, uri="file:///directory")
        await upstream.tell(UPDATED, uri="file:///dir/a/b")
        assert (await stream.message())["params"]["uri"] == "file:///dir/a/b"


async def test_a_flood_of_parts_is_told_as_the_whole() -> None:
    async with served() as (upstream, front), listening(front, uris=["file:///dir"]) as stream:
        await upstream.until(lambda: upstream.streams)
        flood = [f"file:///dir/{number}" for number in range(MOST_PARTS + 20)]
        body = b"".join(event(UPDATED, uri=uri) for uri in flood)
        await upstream.streams[stream_session(upstream)].text(body)
        told = [(await stream.message())["params"]["uri"] for _ in range(MOST_PARTS + 1)]
        assert told == [*flood[:MOST_PARTS], "file:///dir"]


def event(method: str, **params: Any) -> bytes:
    """An event as a server writes it."""
    fields = ", ".join(f'"{name}": "{value}"' for name, value in params.items())
    return f'data: {{"jsonrpc": "2.0", "method": "{method}", "params": {{{fields}}}}}\n\n'.encode()


KEYS = [{"name": name, "sha256": hashlib.sha256(name.encode()).hexdigest()} for name in ("alice", "bob")]


def as_user(name: str) -> dict[str, Any]:
    return {"headers": {"Authorization": f"Bearer {name}"}}


async def test_another_principal_learns_that_something_changed_and_nothing_else() -> None:
    settings = {"auth": {"type": "api_key", "keys": KEYS}}
    async with (
        served(settings=settings) as (upstream, front),
        listening(front, id="a", uris=["file:///dir"], **as_user("alice")) as alice,
        listening(front, id="b", uris=["file:///dir"], **as_user("bob")) as bob,
    ):
        (of_alice, _), (of_bob, _) = upstream.subscribed
        assert of_alice != of_bob
        await upstream.tell(UPDATED, of_alice, uri="file:///dir/secret")
        await upstream.tell(UPDATED, of_alice, uri="file:///dir", title="secret")
        await upstream.tell(TOOLS, of_alice, note="secret")
        told = [await alice.message() for _ in range(3)]
        assert [message["params"].get("uri") for message in told] == ["file:///dir/secret", "file:///dir", None]
        assert [message["params"].get("title") for message in told] == [None, "secret", None]
        assert told[2]["params"]["note"] == "secret"
        assert await bob.message() == tagged(UPDATED, "b", uri="file:///dir")
        assert await bob.message() == tagged(TOOLS, "b")


async def test_the_credentials_of_callers_make_sources_of_their_own() -> None:
    async with (
        served(auth={"type": "passthrough"}) as (upstream, front),
        listening(front, **as_user("alice")),
        listening(front, **as_user("bob")),
    ):
        authorizations = [received.headers["authorization"] for received in upstream.received("GET")]
        assert sorted(authorizations) == ["Bearer alice", "Bearer bob"]


# --- subscribed once, for as long as anybody listens ---


async def test_a_resource_is_subscribed_to_once_and_until_the_last_listener_leaves() -> None:
    async with served() as (upstream, front):
        async with listening(front, uris=["note://1"]) as stays:
            async with listening(front, uris=["note://1", "note://2"]):
                assert sessions_of(upstream.subscribed, "note://1") == [1]
            await upstream.seen("resources/unsubscribe")
            assert sessions_of(upstream.subscribed, "note://2") == []
            assert sessions_of(upstream.subscribed, "note://1") == [1]
            await upstream.tell(UPDATED, uri="note://1")
            assert (await stays.message())["params"]["uri"] == "note://1"
        await upstream.seen("DELETE")
        assert upstream.methods()[-2:] == ["resources/unsubscribe", "DELETE"]
        assert max(upstream.most.values()) == 1
        await until_quiet(front)


async def test_many_who_join_and_leave_at_once_are_counted_right() -> None:
    async with served() as (upstream, front):

        async def listener_of(number: int) -> None:
            async with listening(front, id=number, uris=[f"note://{number % 3}", "note://all"]):
                pass

        async with listening(front, id="stays", uris=["note://all"]):
            await asyncio.gather(*(listener_of(number) for number in range(60)))
            await until(lambda: front.gateway.upstreams["docs"]._subscriptions.__len__() == 1)
            await upstream.until(lambda: sum(upstream.subscribed.values()) == 1)
        await until_quiet(front)
        assert max(upstream.most.values()) == 1
        assert not upstream.subscribed
        assert not upstream.streams


async def test_a_listener_that_leaves_during_the_handshake_leaves_no_session_behind() -> None:
    async with served() as (upstream, front):
        has_left = asyncio.Event()

        @upstream.on("initialize", times=1)
        async def slow(wire: Wire) -> None:
            await has_left.wait()
            await upstream.answer(wire)

        async with asking(front):
            await upstream.seen("initialize")
        await until(lambda: not front.gateway.upstreams["docs"]._subscriptions._groups)
        has_left.set()
        await upstream.seen("DELETE")
        await until_quiet(front)
        assert not upstream.sessions


async def test_a_listener_that_leaves_while_it_subscribes_leaves_no_subscription_behind() -> None:
    async with served() as (upstream, front):
        has_left = asyncio.Event()
        async with listening(front):

            @upstream.on("resources/subscribe", times=1)
            async def slow(wire: Wire) -> None:
                await has_left.wait()
                await upstream._subscribe(wire)

            asked = {"resourceSubscriptions": ["note://1"]}
            async with asking(front, asked):
                await upstream.seen("resources/subscribe")
            has_left.set()
            await upstream.seen("resources/unsubscribe")
            await upstream.until(lambda: not upstream.subscribed)


async def test_a_server_that_never_answers_a_subscription_delays_nobody_else() -> None:
    async with served(settings=HASTY) as (upstream, front):
        upstream.on("resources/subscribe", lambda wire: wire.hang(), times=1)
        asked = {"resourceSubscriptions": ["note://slow"]}
        async with asking(front, asked):
            await upstream.seen("resources/subscribe")
            async with listening(front, uris=["note://1"]) as stream:
                await upstream.tell(TOOLS)
                assert await stream.message() == tagged(TOOLS, 1)


# --- bounds, and the patience of proxies ---


async def test_there_is_a_bound_on_listeners() -> None:
    settings = {"server": {"max_listeners": 2}}
    async with served(settings=settings) as (_upstream, front), listening(front), listening(front) as leaves:
        async with asking(front) as refused:
            error = (await refused.answer())["error"]
            assert (refused.status, error["data"]) == (503, {"reason": "full", "retryable": True})
            assert int(refused.headers["retry-after"]) > 0
        leaves.abort()
        await until(lambda: front.gateway._limit._open == 1)
        async with listening(front):
            pass


async def test_comments_keep_a_quiet_stream_alive() -> None:
    settings = {"server": {"keepalive": "10ms", "stream_after": "10ms"}}
    async with served(settings=settings) as (_upstream, front), listening(front) as stream:
        for _ in range(5):
            await stream.comment()


async def test_many_listeners_share_one_stream_of_the_server() -> None:
    async with served() as (upstream, front):
        async with AsyncExitStack() as stack, asyncio.timeout(20):
            listeners = [listening(front, id=number, uris=["note://1"]) for number in range(500)]
            streams = await asyncio.gather(*map(stack.enter_async_context, listeners))
            assert len(upstream.received("GET")) == 1
            assert len(upstream.received("initialize")) == 1
            assert len(upstream.received("resources/subscribe")) == 1
            await upstream.tell(TOOLS)
            told = await asyncio.gather(*(stream.message() for stream in streams))
            assert told == [tagged(TOOLS, number) for number in range(500)]
        await until_quiet(front)
        assert not upstream.sessions


# --- what breaks ---


async def test_a_stream_that_ended_is_opened_again_and_everything_counts_as_changed() -> None:
    async with served() as (upstream, front):
        async with listening(front, uris=["note://1"]) as stream:
            await upstream.drop()
            assert await stream.message() == tagged(TOOLS, 1)
            assert await stream.message() == tagged(UPDATED, 1, uri="note://1")
            await upstream.until(lambda: upstream.streams)
            await upstream.tell(TOOLS)
            assert await stream.message() == tagged(TOOLS, 1)
        assert len(upstream.received("initialize")) == 1
        assert len(upstream.received("resources/subscribe")) == 1
        assert all("last-event-id" not in received.headers for received in upstream.received("GET"))


async def test_a_server_that_still_sees_the_old_stream_is_asked_again() -> None:
    async with served() as (upstream, front):
        async with listening(front) as stream:
            upstream.is_deaf = True
            await upstream.drop()
            await upstream.seen("GET", 4)
            upstream.is_deaf = False
            assert await stream.message() == tagged(TOOLS, 1)
        assert len(upstream.received("initialize")) == 1


async def test_a_listener_that_comes_while_the_stream_is_being_reopened_is_promised_the_same() -> None:
    async with served() as (upstream, front), listening(front):
        upstream.is_deaf = True
        await upstream.drop()
        await upstream.seen("GET", 2)
        async with asking(front) as stream:
            await upstream.seen("GET", 4)
            upstream.is_deaf = False
            assert await granted(stream) == ALL
            await upstream.until(lambda: upstream.streams)


@pytest.mark.parametrize("status", [404, 400, 410])
async def test_a_session_that_expired_has_a_successor_with_the_same_subscriptions(status: int) -> None:
    async with served() as (upstream, front):
        upstream.unknown_session = lambda wire: wire.reply(status)
        async with listening(front, uris=["note://1"]) as stream:
            upstream.subscribed.clear()
            upstream.forget()
            await upstream.drop()
            assert await stream.message() == tagged(TOOLS, 1)
            assert await stream.message() == tagged(UPDATED, 1, uri="note://1")
            assert upstream.subscribed == {("sess-2", "note://1"): 1}
            await upstream.tell(UPDATED, uri="note://1")
            assert await stream.message() == tagged(UPDATED, 1, uri="note://1")
        await upstream.until(lambda: not upstream.sessions)
        assert len(upstream.received("initialize")) == 2
        assert [received.session for received in upstream.received("DELETE")] == ["sess-2"]


async def test_a_session_that_only_subscribing_shows_to_be_gone_has_a_successor() -> None:
    async with served() as (upstream, front), listening(front, uris=["note://1"]) as stream:
        upstream.forget()
        upstream.subscribed.clear()
        async with listening(front, id=2, uris=["note://2"]):
            assert upstream.subscribed == {("sess-2", "note://1"): 1, ("sess-2", "note://2"): 1}
            assert await stream.message() == tagged(TOOLS, 1)
            await upstream.until(lambda: set(upstream.streams) == {"sess-2"})


async def test_a_server_that_restarts_is_listened_to_again() -> None:
    async with served() as (upstream, front), listening(front, uris=["note://1"]) as stream:
        await upstream.stop()
        upstream.forget()
        upstream.subscribed.clear()
        await upstream.start()
        assert await stream.message() == tagged(TOOLS, 1)
        assert await stream.message() == tagged(UPDATED, 1, uri="note://1")
        assert upstream.subscribed == {("sess-2", "note://1"): 1}


async def test_listeners_are_told_when_nothing_more_will_come() -> None:
    async with served() as (upstream, front):
        async with listening(front, id="L") as stream:
            upstream.on("GET", lambda wire: wire.reply(405))
            await upstream.drop()
            (last,) = await stream.rest()
            assert last["id"] == "L"
            assert last["error"]["data"] == {"upstream": "docs", "reason": "nonsense", "retryable": False}
        async with asking(front) as stream:
            assert await granted(stream) == {}
        await until_quiet(front)


async def test_a_server_that_refuses_a_new_session_is_asked_a_few_times_before_listeners_are_told() -> None:
    async with served() as (upstream, front):
        async with listening(front) as first, listening(front) as second:
            upstream.on("initialize", lambda wire: wire.reply(502))
            upstream.forget()
            await upstream.drop()
            for stream in (first, second):
                (last,) = await stream.rest()
                assert last["error"]["data"]["reason"] == "nonsense"
        assert len(upstream.received("initialize")) == 1 + PATIENCE
        await until_quiet(front)


async def test_a_credential_that_no_longer_counts_ends_the_streams_that_rest_on_it() -> None:
    async with served(auth={"type": "passthrough"}) as (upstream, front):
        async with listening(front, **as_user("alice")) as stream:
            upstream.gate = lambda wire: wire.reply(401)
            await upstream.drop()
            (last,) = await stream.rest()
            assert "authorization" in last["error"]["message"]
        await until_quiet(front)


# --- one session for everything ---

STICKY: dict[str, Any] = {"sessions": {"reuse": "sticky"}}


async def test_where_a_user_has_one_session_it_is_the_one_that_is_listened_on() -> None:
    async with served(**STICKY) as (upstream, front):

        @upstream.on("tools/call")
        async def toggle(wire: Wire) -> None:
            """Tells the session of the call about what it is subscribed to, as the reference server does."""
            assert upstream.subscribed == {(wire.request.session, "note://1"): 1}
            await upstream.tell(UPDATED, wire.request.session, uri="note://1")
            await wire.result({"content": []})

        async with listening(front, uris=["note://1"], capabilities=ASKS) as stream:
            await front.call(capabilities=ASKS)
            assert await stream.message() == tagged(UPDATED, 1, uri="note://1")
        await upstream.seen("resources/unsubscribe")
        await until_quiet(front)
        assert upstream.sessions == {"sess-1"}
        assert not upstream.received("DELETE")


async def test_clients_of_different_kinds_listen_on_different_sessions() -> None:
    async with served(**STICKY) as (upstream, front):
        async with (
            listening(front, id="a", uris=["note://1"], capabilities=ASKS) as asked,
            listening(front, id="b", uris=["note://1"]) as plain,
            listening(front, id="c", uris=["note://1"]) as plain_too,
        ):
            assert sorted(upstream.subscribed.values()) == [1, 1]
            await upstream.tell(UPDATED, "sess-1", uri="note://1")
            for stream, id in ((asked, "a"), (plain, "b"), (plain_too, "c")):
                assert await stream.message() == tagged(UPDATED, id, uri="note://1")
        await until_quiet(front)


async def test_a_shared_session_that_breaks_is_followed_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy_listening, "LOOK_S", 0.01)
    async with served(**STICKY) as (upstream, front), listening(front, uris=["note://1"]) as stream:
        upstream.on("ping", lambda wire: wire.hang())
        upstream.on("tools/call", lambda wire: wire.hang(), times=1)
        monkeypatch.setattr(legacy_session, "_NOTE_TIMEOUT_S", 0.05)
        async with opened(front, "tools/call", {"name": "echo", "arguments": {}}):
            await upstream.seen("tools/call")
        await upstream.seen("notifications/cancelled")
        assert (await front.call()).text == "hi"  # on another session, since the first one does not answer
        assert await stream.message() == tagged(TOOLS, 1)
        await upstream.until(lambda: upstream.subscribed[("sess-2", "note://1")] == 1)
        await upstream.until(lambda: set(upstream.streams) == {"sess-2"})


# --- what the gateway itself makes of a change ---


async def test_a_list_change_makes_the_gateway_look_at_the_headers_of_tools_again() -> None:
    marked = {"type": "object", "properties": {"text": {"type": "string", "x-mcp-header": "Text"}}}
    async with served() as (upstream, front):
        assert (await front.call()).text == "hi"
        upstream.tools = [{"name": "echo", "inputSchema": marked}]
        assert (await front.call()).text == "hi"  # it does not know yet
        async with listening(front) as stream:
            await upstream.tell(TOOLS, stream_session(upstream))
            await stream.message()
            assert (await front.call()).error["code"] == -32020
            assert (await front.call(headers={"Mcp-Param-Text": "hi"})).text == "hi"


# --- the end ---


async def test_at_shutdown_a_stream_is_cancelled_completed_and_closed() -> None:
    async with served(settings=HASTY) as (upstream, front):
        async with listening(front, id="L1", uris=["note://1"]) as stream:
            upstream.on("resources/unsubscribe", lambda wire: wire.hang())  # not even that delays the end
            front.gateway.end_streams()
            cancelled, result = await stream.rest()
            assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", "L1")
            assert result == complete("L1")
        async with asking(front, request_id=2) as late:
            assert [message.get("method") for message in await late.rest()] == [
                ACKNOWLEDGED,
                "notifications/cancelled",
                None,
            ]


async def test_a_plain_server_is_not_listened_to_unasked() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, era="legacy") as front:
        async with asking(front, {"toolsListChanged": True}) as stream:
            assert await granted(stream) == {}
        await until_quiet(front)
