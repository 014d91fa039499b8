"""`sessions.reuse: sticky` with replicas that share a store, a real Redis: one session, whichever replica is asked."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from tests.integration.test_field_sessions import API_KEYS, ASKS, as_
from tests.support.gateway_app import Front
from tests.support.redis_server import RedisServer
from tests.support.scripted import ScriptedUpstream, Wire
from tests.support.sticky import known_sessions, remembering, replicas, sharing_of
from tests.support.stream_client import listening

ASKED = {"jsonrpc": "2.0", "id": "q-1", "method": "roots/list"}


@pytest.fixture
async def redis() -> AsyncIterator[RedisServer]:
    async with RedisServer() as redis:
        yield redis


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with remembering() as upstream:
        yield upstream


async def remember(front: Front, text: str, headers: dict[str, str] | None = None) -> None:
    assert (await front.call(text, tool="remember", headers=headers)).text == text


async def recall(front: Front, headers: dict[str, str] | None = None) -> str:
    return (await front.call(tool="recall", headers=headers)).text


async def until(condition: Any) -> None:
    """Wait for what nothing announces; bounded."""
    async with asyncio.timeout(10):
        while True:
            met = condition()
            if await met if asyncio.iscoroutine(met) else met:
                return
            await asyncio.sleep(0.005)


async def entry_names(redis: RedisServer) -> list[bytes]:
    async with Redis.from_url(redis.url) as client:
        return [key for key in await client.keys() if b":sticky:" in key]


async def pass_time(redis: RedisServer, left_s: float) -> None:
    """Let every entry be as old as one that stays for so many more seconds."""
    async with Redis.from_url(redis.url) as client:
        for key in await entry_names(redis):
            await client.pexpire(key, int(left_s * 1000))


async def forget_entries(redis: RedisServer) -> None:
    async with Redis.from_url(redis.url) as client:
        for key in await entry_names(redis):
            await client.delete(key)


def make_due(front: Front) -> None:
    for session in known_sessions(front):
        session.share.due_s = 0.0


def settle(front: Front) -> Any:
    """Wait until nothing is done in the background."""
    return until(lambda: len(front.gateway.upstreams["docs"]._background) == 0)


def make_idle(front: Front) -> None:
    for session in known_sessions(front):
        session.idle_since_s = float("-inf")
    front.sweep()


# --- one session ---


async def test_what_one_replica_was_told_the_other_recalls(upstream: ScriptedUpstream, redis: RedisServer) -> None:
    async with replicas(upstream, redis, 3) as fronts:
        await remember(fronts[0], "it")
        assert [await recall(front) for front in fronts] == ["it", "it", "it"]
        assert len(upstream.received("initialize")) == 1
        assert {received.headers["mcp-protocol-version"] for received in upstream.received("tools/call")} == {
            "2025-11-25"
        }


async def test_first_calls_at_all_replicas_at_once_open_one_session(
    upstream: ScriptedUpstream, redis: RedisServer
) -> None:
    async with replicas(upstream, redis, 4) as fronts:
        await asyncio.gather(*(front.calls(["hi"] * 4, tool="recall") for front in fronts))
        assert len(upstream.received("initialize")) == 1
        assert len(upstream.sessions) == 1


async def test_a_replica_whose_attempt_fails_lets_another_one_try(
    upstream: ScriptedUpstream, redis: RedisServer
) -> None:
    upstream.on("initialize", lambda wire: wire.reply(503), times=1)
    async with replicas(upstream, redis) as fronts:
        answers = await asyncio.gather(*(front.call(tool="recall") for front in fronts))
        assert sorted("error" in answer.response for answer in answers) == [False, True]
        assert len(upstream.received("initialize")) == 2


async def test_a_call_in_a_known_session_costs_no_command(upstream: ScriptedUpstream, redis: RedisServer) -> None:
    async with replicas(upstream, redis) as fronts:
        for front in fronts:
            await recall(front)
        before = [front.gateway.store.traffic.commands for front in fronts if front.gateway.store is not None]
        scripts = (await redis.commands()).get("eval", 0)
        for front in fronts:
            await front.calls(["hi"] * 20, tool="recall")
        after = (await redis.commands()).get("eval", 0)
        assert after == scripts
        assert len(before) == 2


async def test_each_user_and_each_value_has_a_session_of_its_own_at_every_replica(
    upstream: ScriptedUpstream, redis: RedisServer
) -> None:
    async with replicas(upstream, redis, settings=API_KEYS, sessions={"affinity": "X-Conversation"}) as (one, other):
        users = [{**as_(name), "x-conversation": value} for name in ("alice", "bob") for value in ("1", "2")]
        for number, user in enumerate(users):
            await remember(one, f"secret-{number}", user)
        assert [await recall(other, user) for user in users] == ["secret-0", "secret-1", "secret-2", "secret-3"]
        assert await recall(other, as_("alice")) == "None"
        assert len(upstream.sessions) == 5


async def test_the_store_holds_nothing_that_can_be_read_or_moved_to_another_user(
    upstream: ScriptedUpstream, redis: RedisServer
) -> None:
    upstream.instructions = "the instructions"
    async with replicas(upstream, redis, settings=API_KEYS) as (one, other):
        await remember(one, "of alice", as_("alice"))
        (alices,) = await entry_names(redis)
        async with Redis.from_url(redis.url) as client:
            held = await client.get(alices) or b""
        for secret in (b"sess-1", b"instructions", b"alice", b"of alice"):
            assert secret not in held + alices
        await remember(one, "of bob", as_("bob"))
        (bobs,) = set(await entry_names(redis)) - {alices}
        async with Redis.from_url(redis.url) as client:
            await client.set(bobs, await client.get(alices) or b"")
        assert await recall(other, as_("bob")) == "None"  # what was put there is not taken for his
        assert await recall(other, as_("alice")) == "of alice"


# --- expired, idle, left ---


async def test_what_the_server_forgets_is_opened_anew_once_for_all(
    upstream: ScriptedUpstream, redis: RedisServer
) -> None:
    async with replicas(upstream, redis) as (one, other):
        await remember(one, "old")
        assert await recall(other) == "old"
        upstream.forget()
        await remember(one, "new")
        assert await recall(other) == "new"  # it hears a 404, and finds that there is a newer one
        assert await recall(one) == "new"
        assert len(upstream.received("initialize")) == 2


async def test_a_successor_that_the_server_has_forgotten_as_well_is_followed_by_another(
    upstream: ScriptedUpstream, redis: RedisServer
) -> None:
    async with replicas(upstream, redis) as (one, other):
        assert await recall(one) == await recall(other) == "None"
        for _ in range(2):
            upstream.forget()
            await recall(one)
        upstream.forget()
        await remember(other, "it")  # of the first session it knows that it is gone, of the third it does not
        assert await recall(one) == "it"
        assert len(upstream.sessions) == 1


async def test_replicas_that_hear_of_it_at_once_open_one_session(
    upstream: ScriptedUpstream, redis: RedisServer
) -> None:
    async with replicas(upstream, redis, 3) as fronts:
        for front in fronts:
            await recall(front)
        upstream.forget()
        await asyncio.gather(*(front.calls(["hi"] * 3, tool="recall") for front in fronts))
        assert len(upstream.received("initialize")) == 2
        assert len(upstream.sessions) == 1


async def test_a_session_that_is_idle_here_is_not_ended_while_it_is_used_elsewhere(
    upstream: ScriptedUpstream, redis: RedisServer
) -> None:
    async with replicas(upstream, redis) as (one, other):
        await remember(one, "it")
        assert await recall(other) == "it"
        make_idle(one)
        await settle(one)
        one.sweep()
        await settle(one)
        assert known_sessions(one) == []
        assert not upstream.received("DELETE")
        assert await recall(other) == "it"
        assert await recall(one) == "it"
        assert len(upstream.received("initialize")) == 1


async def test_a_session_that_nobody_uses_any_more_is_ended_once(
    upstream: ScriptedUpstream, redis: RedisServer
) -> None:
    async with replicas(upstream, redis) as fronts:
        for front in fronts:
            await recall(front)
            make_idle(front)
            await settle(front)
        await pass_time(redis, sharing_of(fronts[0])._times.left_s)
        for front in fronts:
            for _session, share in sharing_of(front)._left._sessions.values():
                share.due_s = 0.0
            front.sweep()
            await settle(front)
        assert len(upstream.received("DELETE")) == 1
        assert await entry_names(redis) == []
        assert [len(sharing_of(front)._left) for front in fronts] == [0, 0]


async def test_a_long_call_keeps_its_session(upstream: ScriptedUpstream, redis: RedisServer) -> None:
    async with replicas(upstream, redis) as (one, other):
        await recall(one)
        assert await recall(other) == "None"
        upstream.on("tools/call", lambda wire: wire.hang(), times=1)
        call = asyncio.create_task(one.http.post(one.url + "/mcp", **_request()))
        await upstream.seen("tools/call", 3)
        make_idle(other)
        await settle(other)
        await pass_time(redis, sharing_of(one)._times.left_s)
        make_due(one)
        one.sweep()  # says that it is in use
        await settle(one)
        for _session, share in sharing_of(other)._left._sessions.values():
            share.due_s = 0.0
        other.sweep()
        await settle(other)
        assert not upstream.received("DELETE")
        call.cancel()
        await asyncio.wait([call])


def _request() -> dict[str, Any]:
    from tests.support.messages import good_request

    headers, body = good_request("tools/call", {"name": "recall", "arguments": {}})
    return {"headers": headers, "content": body}


async def test_a_replica_that_stops_leaves_its_sessions_to_the_others(
    upstream: ScriptedUpstream, redis: RedisServer
) -> None:
    async with replicas(upstream, redis, 1) as (other,):
        async with replicas(upstream, redis, 1) as (one,):
            await remember(one, "it")
        assert await recall(other) == "it"
        assert not upstream.received("DELETE")


async def test_too_many_sessions_at_one_replica_are_left_and_not_ended(
    upstream: ScriptedUpstream, redis: RedisServer
) -> None:
    sessions = {"affinity": "X-C", "max": 2}
    async with replicas(upstream, redis, sessions=sessions) as (one, other):
        for value in "abc":
            await remember(one, value, {"x-c": value})
        assert len(known_sessions(one)) == 2
        assert await recall(other, {"x-c": "a"}) == "a"
        assert not upstream.received("DELETE")


# --- the store is down ---


async def test_known_sessions_go_on_without_the_store(upstream: ScriptedUpstream, redis: RedisServer) -> None:
    async with replicas(upstream, redis) as fronts:
        await remember(fronts[0], "it")
        assert await recall(fronts[1]) == "it"
        await redis.kill()
        for front in fronts:
            make_due(front)
            assert [await recall(front) for _ in range(3)] == ["it", "it", "it"]
            await settle(front)


async def test_without_the_store_a_replica_has_a_session_of_its_own_until_it_is_back(
    upstream: ScriptedUpstream, redis: RedisServer
) -> None:
    async with replicas(upstream, redis) as (one, other):
        await redis.kill()
        await remember(one, "of one")
        await remember(other, "of other")
        assert len(upstream.sessions) == 2
        await redis.start()
        await until(lambda: one.gateway.store.is_up and other.gateway.store.is_up)
        make_due(one)
        assert await recall(one) == "of one"
        await settle(one)  # now the store knows of its session
        make_due(other)
        assert await recall(other) == "of other"
        await settle(other)
        assert await recall(other) == "of one"
        await until(lambda: len(upstream.received("DELETE")) == 1)
        assert len(upstream.sessions) == 1


async def test_a_store_that_lost_everything_is_told_again(upstream: ScriptedUpstream, redis: RedisServer) -> None:
    async with replicas(upstream, redis, 3) as (one, other, third):
        await remember(one, "it")
        assert await recall(other) == "it"
        await redis.kill()
        await redis.start()
        await until(lambda: all(front.gateway.store.is_up for front in (one, other, third)))
        for front in (one, other):
            make_due(front)
            assert await recall(front) == "it"
            await settle(front)
        assert await recall(third) == "it"
        assert len(upstream.received("initialize")) == 1


async def test_nothing_is_ended_because_an_entry_is_missing(upstream: ScriptedUpstream, redis: RedisServer) -> None:
    async with replicas(upstream, redis) as (one, other):
        await remember(one, "it")
        assert await recall(other) == "it"
        make_idle(one)
        await settle(one)
        await forget_entries(redis)
        for _session, share in sharing_of(one)._left._sessions.values():
            share.due_s = 0.0
        one.sweep()
        await settle(one)
        assert not upstream.received("DELETE")
        assert await recall(other) == "it"


# --- what is heard on the session's stream ---


def offer_one_stream(upstream: ScriptedUpstream) -> None:
    """One GET stream for each session, as the SDKs have it."""
    open_ones: set[str | None] = set()

    @upstream.on("GET")
    async def get(wire: Wire) -> None:
        if wire.request.session in open_ones:
            await wire.reply(409)
            return
        open_ones.add(wire.request.session)
        try:
            await upstream._hold_stream(wire)
        finally:
            open_ones.discard(wire.request.session)


async def question_in_call(upstream: ScriptedUpstream, front: Front) -> tuple[asyncio.Task[Any], Wire]:
    """A call at a replica that the server has not answered yet."""
    wires: asyncio.Queue[Wire] = asyncio.Queue()

    async def hold(wire: Wire) -> None:
        await wire.sse()
        wires.put_nowait(wire)
        await wire.hang()

    upstream.on("tools/call", hold, times=1)
    call = asyncio.create_task(front.call(tool="recall", capabilities={"roots": {}}))
    return call, await wires.get()


async def test_a_question_that_names_no_call_goes_to_the_only_call_if_no_other_replica_is_there(
    upstream: ScriptedUpstream, redis: RedisServer
) -> None:
    offer_one_stream(upstream)
    async with replicas(upstream, redis, 1) as (front,):
        call, _wire = await question_in_call(upstream, front)
        await upstream.seen("GET")
        await upstream.push(ASKED)
        assert (await call).result["inputRequests"] == {"q-1": {"method": "roots/list", "params": {}}}


@pytest.mark.parametrize("has_stream", [True, False])
async def test_a_question_that_names_no_call_is_refused_where_replicas_share_the_session(
    upstream: ScriptedUpstream, redis: RedisServer, has_stream: bool
) -> None:
    offer_one_stream(upstream)
    async with replicas(upstream, redis) as (one, other):
        await one.call(tool="recall", capabilities={"roots": {}})
        await other.call(tool="recall", capabilities={"roots": {}})
        call, _wire = await question_in_call(upstream, one if has_stream else other)
        await upstream.push(ASKED)
        answer = (await upstream.seen("response")).message
        assert answer["error"]["message"] == "No client to ask"
        call.cancel()
        await asyncio.wait([call])


async def test_a_replica_without_the_stream_serves_calls_all_the_same(
    upstream: ScriptedUpstream, redis: RedisServer
) -> None:
    offer_one_stream(upstream)
    async with replicas(upstream, redis) as (one, other):
        assert (await one.call(tool="recall", capabilities=ASKS)).text == "None"
        assert (await other.call(tool="recall", capabilities=ASKS)).text == "None"
        (session,) = known_sessions(other)
        assert (session.listener.is_open, session.listener.is_taken) == (False, True)


async def test_a_listener_at_a_replica_without_the_stream_hears_on_a_session_of_its_own(
    upstream: ScriptedUpstream, redis: RedisServer
) -> None:
    upstream.capabilities = {"tools": {"listChanged": True}}
    offer_one_stream(upstream)
    async with replicas(upstream, redis) as (one, other):
        assert await recall(one) == await recall(other) == "None"
        for front in (one, other):
            discovered = await front.ask("server/discover")
            assert discovered.result["capabilities"]["tools"] == {"listChanged": True}
        async with listening(one) as first, listening(other) as second:
            await upstream.push({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            for stream in (first, second):
                assert (await stream.message())["method"] == "notifications/tools/list_changed"
        assert len(upstream.received("initialize")) == 2
        await upstream.seen("DELETE")
        assert len(upstream.sessions) == 1


async def test_a_question_on_the_stream_of_its_call_is_answered_at_whatever_replica(
    upstream: ScriptedUpstream, redis: RedisServer
) -> None:
    offer_one_stream(upstream)

    @upstream.on("tools/call")
    async def ask(wire: Wire) -> None:
        await wire.sse()
        number = wire.request.params["arguments"]["text"]
        answer = await upstream.ask(wire, "roots/list", None, id=f"q-{number}")
        await wire.end(result={"content": [{"type": "text", "text": answer["result"]["roots"][0]["uri"]}]})

    async with replicas(upstream, redis) as fronts:
        roots = {"roots": {}}
        asked = await asyncio.gather(*(front.call(str(at), capabilities=roots) for at, front in enumerate(fronts)))
        for number, answer in enumerate(asked):
            retry = {
                "name": "echo",
                "arguments": {"text": str(number)},
                "requestState": answer.result["requestState"],
                "inputResponses": {f"q-{number}": {"roots": [{"uri": f"file:///{number}"}]}},
            }
            done = await fronts[1 - number].ask("tools/call", retry, capabilities=roots)  # relayed, at that
            assert done.text == f"file:///{number}"
        assert len(upstream.received("initialize")) == 1


async def test_a_listener_whose_stream_another_replica_takes_listens_on_a_session_of_its_own(
    upstream: ScriptedUpstream, redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.upstream.listening.LOOK_S", 0.01)
    upstream.capabilities = {"tools": {"listChanged": True}}
    upstream.offer_get()
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    async with replicas(upstream, redis, 1) as (front,), listening(front) as stream:

        @upstream.on("GET")
        async def get(wire: Wire) -> None:
            await (wire.reply(409) if wire.request.session == "sess-1" else upstream._hold_stream(wire))

        for wire in list(upstream._streams):
            wire.reset()
        assert (await stream.message())["method"] == changed["method"]  # something may have been missed
        await upstream.push(changed)
        assert (await stream.message())["method"] == changed["method"]
        assert len(upstream.received("initialize")) == 2


async def test_a_lock_that_nobody_holds_any_more_is_waited_out(upstream: ScriptedUpstream, redis: RedisServer) -> None:
    async with replicas(upstream, redis) as (one, other):
        await recall(one)
        (name,) = await entry_names(redis)
        async with Redis.from_url(redis.url) as client:
            entry = await client.get(name) or b""
            await client.set(name, b"l" * 22 + entry[22:30], px=200)
        assert await recall(other) == "None"
        assert len(upstream.received("initialize")) == 2


async def test_what_cannot_be_opened_any_more_is_replaced(upstream: ScriptedUpstream, redis: RedisServer) -> None:
    async with replicas(upstream, redis) as (one, other):
        await recall(one)
        (name,) = await entry_names(redis)
        async with Redis.from_url(redis.url) as client:
            await client.setrange(name, 60, b"????")
        assert await recall(other) == "None"
        assert len(upstream.received("initialize")) == 2


async def test_a_server_without_sessions_is_served_by_every_replica_by_itself(
    upstream: ScriptedUpstream, redis: RedisServer
) -> None:
    upstream.with_sessions = False
    async with replicas(upstream, redis) as fronts:
        for front in fronts:
            assert (await front.call("hi", tool="remember")).text == "hi"
        assert len(upstream.received("initialize")) == 2
        await until(lambda: _has_none(redis))


async def _has_none(redis: RedisServer) -> bool:
    return await entry_names(redis) == []


async def test_no_replica_makes_a_shared_session_less_talkative(upstream: ScriptedUpstream, redis: RedisServer) -> None:
    upstream.capabilities = {"tools": {}, "logging": {}}
    upstream.on("logging/setLevel", lambda wire: wire.result({}))
    async with replicas(upstream, redis) as (one, other):
        for front, level in ((one, "debug"), (other, "error"), (other, "warning")):
            await front.call(tool="recall", meta={"io.modelcontextprotocol/logLevel": level})
        levels = [received.params["level"] for received in upstream.received("logging/setLevel")]
        assert levels == ["debug", "debug"]
