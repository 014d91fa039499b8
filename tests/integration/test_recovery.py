"""A replica dies with a suspended call, and another gets the retry: the call goes on, is made again, or is lost.

What was answered is not answered twice, a call that nobody vouches for is never made twice, and nothing hangs.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.core.claims import Claim, Stage
from gateway.upstream import recovered_call, resumption
from gateway.wire.jsonrpc import JsonObject
from tests.support.asking_server import AskingServer, Call, RpcError
from tests.support.asking_tools import DECLINED, ELICIT, FOLDERS, FORM, PAGE, ROOTS, filled, offer_tools
from tests.support.mortal import Mortal, mortal
from tests.support.round_client import Reply, RoundClient, notified

LOST: JsonObject = {
    "code": -32602,
    "message": "The call behind this request state is lost; it must be made anew, and may already have had effects",
    "data": {"reason": "lost"},
}
ADA, BOB = filled("Ada"), filled("Bob")
FIRST, SECOND = "elicitation_1", "elicitation_2"


@pytest.fixture(autouse=True)
def quick_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumption, "PAUSE_S", 0.0005)
    monkeypatch.setattr(recovered_call, "HEARING_S", 0.2)


async def greet(call: Call) -> str:
    """Asks twice, and tells what it does."""
    first = await call.ask(ELICIT, FORM)
    call.progress(1)
    call.log("info", "half of it")
    second = await call.ask(ELICIT, FORM)
    call.progress(2)
    return f"{first['content']['name']} and {second['content']['name']}"


def told(reply: Reply) -> list[Any]:
    """Progress and logs, in the order in which the client had them."""
    return [message["params"].get("progress", message["params"].get("data")) for message in reply.notifications]


def answered_once(server: AskingServer) -> list[str]:
    """The names that the server was answered; each of its questions must have had one answer."""
    ids = [(answer.session, answer.id) for answer in server.answers]
    assert len(ids) == len(set(ids)), server.answers
    assert all(answer.was_awaited for answer in server.answers)
    return [answer.body["result"]["content"]["name"] for answer in server.answers]


# --- resume ---

KINDS: dict[str, Callable[[AskingServer], None]] = {
    "on the stream of the call": lambda _server: None,
    "on the session's own stream": lambda server: setattr(server, "correlated", False),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
async def test_a_call_goes_on_at_another_replica_as_if_nothing_had_been(kind: Callable[[AskingServer], None]) -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url) as (one, other):
        kind(server)
        server.tool(greet)
        async with RoundClient(other.url) as client:
            asked = await client.call("greet", url=one.url)
            await one.die()
            assert (server.answers, server.cancelled, server.deleted) == ([], [], [])
            wants = notified(progress=7, logs="debug")
            again = await client.call("greet", answers={FIRST: ADA}, state=asked.state, meta=wants)
            assert list(again.questions) == [SECOND]
            wants = notified(progress=8, logs="debug")
            done = await client.call("greet", answers={SECOND: BOB}, state=again.state, meta=wants)
            assert done.text == "Ada and Bob"
            assert told(again) + told(done) == [1, "half of it", 2]
            assert done.notifications[-1]["params"]["progressToken"] == 8
        assert answered_once(server) == ["Ada", "Bob"]
        assert server.executions == {"greet": 1}
        assert (server.cancelled, server.deleted) == ([], [])
        other.sweep()
        await server.until(lambda: server.deleted)


async def test_a_call_goes_on_as_often_as_its_replica_dies() -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url, count=5) as replicas:
        offer_tools(server)
        names = ["Ada", "Bob", "Cy", "Di"]
        async with RoundClient(replicas[0].url) as client:
            reply = await client.call("in_turn", {"count": 4})
            for number, name in enumerate(names):
                await replicas[number].die()
                reply = await client.call(
                    "in_turn",
                    {"count": 4},
                    answers={f"elicitation_{number + 1}": filled(name)},
                    state=reply.state,
                    url=replicas[number + 1].url,
                )
            assert reply.text == "Ada,Bob,Cy,Di"
        assert answered_once(server) == names
        assert server.executions == {"in_turn": 1}


async def test_a_stream_that_is_closed_to_be_polled_is_polled_by_the_other_replica() -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url) as (one, other):

        @server.tool
        async def polled(call: Call) -> str:
            question = call.put(ELICIT, FORM)
            call.stream.cut()
            answer = await call.answer_to(question)
            call.stream.cut()
            return str(answer["content"]["name"])

        async with RoundClient(other.url) as client:
            asked = await client.call("polled", url=one.url)
            await one.die()
            assert (await client.call("polled", answers={FIRST: ADA}, state=asked.state)).text == "Ada"
        assert answered_once(server) == ["Ada"]


async def test_of_several_questions_the_rest_is_asked_again_and_what_was_sent_ahead_is_not_forgotten() -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url, count=3) as (one, other, third):

        @server.tool
        async def many(call: Call) -> str:
            questions = [call.put(ELICIT, FORM) for _ in range(2)]
            names = [(await call.answer_to(question))["content"]["name"] for question in questions]
            folders = await call.ask(ROOTS)
            return f"{names} {folders['roots'][0]['name']}"

        async with RoundClient(other.url) as client:
            asked = await client.call("many", answers={"roots_1": FOLDERS}, url=one.url)
            assert list(asked.questions) == [FIRST, SECOND]
            await one.die()
            again = await client.call("many", answers={SECOND: BOB}, state=asked.state)
            assert list(again.questions) == [FIRST]
            await other.die()
            done = await client.call("many", answers={FIRST: ADA}, state=again.state, url=third.url)
            assert done.text == "['Ada', 'Bob'] srv"
        assert server.executions == {"many": 1}


async def test_what_a_server_repeats_of_an_earlier_round_is_not_asked_again() -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url) as (one, other):
        server.tool(greet)
        async with RoundClient(other.url) as client:
            asked = await client.call("greet", url=one.url)
            again = await client.call("greet", answers={FIRST: ADA}, state=asked.state, url=one.url)
            await one.die()
            (session,) = server.sessions.values()
            for stream in session.streams.values():
                stream.repeats = True
            done = await client.call("greet", answers={SECOND: BOB}, state=again.state, meta=notified(progress=1))
            assert done.text == "Ada and Bob"
        assert answered_once(server) == ["Ada", "Bob"]


async def test_an_answer_that_does_not_fit_leaves_the_round_to_be_answered_again() -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url) as (one, other):
        offer_tools(server)
        async with RoundClient(other.url) as client:
            asked = await client.call("book", url=one.url)
            await one.die()
            wrong = await client.call("book", answers={FIRST: filled("A")}, state=asked.state)
            assert wrong.error["code"] == -32602
            assert "inputResponses.elicitation_1" in wrong.error["message"]
            assert (await client.call("book", answers={FIRST: ADA}, state=asked.state)).text == "Ada"
        assert answered_once(server) == ["Ada"]


async def test_a_used_token_stays_used() -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url) as (one, other):
        offer_tools(server)
        async with RoundClient(other.url) as client:
            asked = await client.call("book", url=one.url)
            await one.die()
            assert (await client.call("book", answers={FIRST: ADA}, state=asked.state)).text == "Ada"
            used = await client.call("book", answers={FIRST: ADA}, state=asked.state)
            assert used.error["message"] == "Invalid or expired request state"
        assert server.executions == {"book": 1}


async def test_a_capability_that_the_retry_lacks_is_named_and_the_server_told() -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url) as (one, other):
        server.tool(greet)
        async with RoundClient(other.url) as client:
            asked = await client.call("greet", url=one.url)
            await one.die()
            refused = await client.call("greet", answers={FIRST: ADA}, state=asked.state, capabilities={})
            assert refused.error["code"] == -32021
        assert "error" in server.answers[-1].body


async def test_a_client_that_leaves_cancels_the_call_that_was_recovered() -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url) as (one, other):

        @server.tool
        async def slow(call: Call) -> str:
            await call.ask(ELICIT, FORM)
            await asyncio.Event().wait()
            return ""

        async with RoundClient(other.url) as client:
            asked = await client.call("slow", url=one.url)
            await one.die()
            retry = asyncio.ensure_future(client.call("slow", answers={FIRST: ADA}, state=asked.state))
            await server.until(lambda: server.answers)
            retry.cancel()
            await server.until(lambda: server.cancelled and server.deleted)
        assert server.executions == {"slow": 1}


async def test_a_server_that_says_nothing_more_is_given_up_in_time() -> None:
    limits = {"timeout": "150ms"}
    async with AskingServer(event_ids=True) as server, mortal(server.url, upstream=limits) as (one, other):

        @server.tool
        async def silent(call: Call) -> str:
            await call.ask(ELICIT, FORM)
            await asyncio.Event().wait()
            return ""

        async with RoundClient(other.url) as client:
            asked = await client.call("silent", url=one.url)
            await one.die()
            late = await client.call("silent", answers={FIRST: ADA}, state=asked.state)
            assert (late.status, late.error["data"]["reason"]) == (504, "timeout")
        await server.until(lambda: server.cancelled and server.deleted)


# --- what the dead one had done ---


async def stage_at_death(one: Mortal, stage: Stage | None) -> None:
    """Let a replica die after it had claimed its one round, and written so much about it."""
    (handle,) = one.rounds._entries
    if stage is not None:
        one.board.claims[handle] = Claim(one.rounds.owner, stage)
    await one.die()


async def post_in_its_place(server: AskingServer, name: str) -> None:
    """Answer the open question as the replica did that died over it."""
    (session,) = server.sessions.values()
    question = session.pending.pop(0)
    question.answer.set_result({"result": filled(name)})


@pytest.mark.parametrize("stage", [Stage.CLAIMED, Stage.POSTED])
async def test_answers_that_the_server_has_had_are_not_delivered_again(stage: Stage) -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url, count=3) as (one, other, third):
        server.tool(greet)
        async with RoundClient(other.url) as client:
            asked = await client.call("greet", url=one.url)
            await stage_at_death(one, stage)
            await post_in_its_place(server, "Ada")
            again = await client.call("greet", answers={FIRST: ADA}, state=asked.state)
            assert list(again.questions) == [SECOND]
            await stage_at_death(other, stage)
            (session,) = server.sessions.values()
            session.pending.pop(1).answer.set_result({"result": BOB})
            done = await client.call("greet", answers={SECOND: BOB}, state=again.state, url=third.url)
            assert done.text == "Ada and Bob"
        assert server.answers == []
        assert server.executions == {"greet": 1}


async def test_a_result_that_its_client_never_got_is_fetched_from_the_server_again() -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url) as (one, other):
        offer_tools(server)
        async with RoundClient(other.url) as client:
            asked = await client.call("book", url=one.url)
            assert (await client.call("book", answers={FIRST: ADA}, state=asked.state, url=one.url)).text == "Ada"
            for _ in range(3):  # none of them is made on the session that the token tells of
                waiting = await client.call("book", url=one.url)
            await one.die()
            assert (await client.call("book", answers={FIRST: ADA}, state=asked.state)).text == "Ada"
            other.sweep()
            await server.until(lambda: server.deleted)
            assert (await client.call("book", answers={FIRST: BOB}, state=waiting.state)).text == "Bob"
        assert answered_once(server) == ["Ada", "Bob"]
        assert server.executions == {"book": 4}


async def test_answers_that_may_not_have_been_delivered_are_when_the_server_has_not_gone_on() -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url) as (one, other):

        @server.tool
        async def talkative(call: Call) -> str:
            question = call.put(ELICIT, FORM)
            await server.until(lambda: not call.stream.readers)
            call.progress(1)
            call.log("info", "still waiting")
            return str((await call.answer_to(question))["content"]["name"])

        async with RoundClient(other.url) as client:
            asked = await client.call("talkative", url=one.url)
            await stage_at_death(one, Stage.CLAIMED)
            server._tell_soon()
            meta = notified(progress=7, logs="debug")
            done = await client.call("talkative", answers={FIRST: ADA}, state=asked.state, meta=meta)
            assert (told(done), done.text) == ([1, "still waiting"], "Ada")
        assert answered_once(server) == ["Ada"]


async def test_a_server_is_heard_for_longer_than_it_may_be_silent() -> None:
    limits = {"timeout": "100ms"}
    async with AskingServer(event_ids=True) as server, mortal(server.url, upstream=limits) as (one, other):
        offer_tools(server)
        async with RoundClient(other.url) as client:
            asked = await client.call("book", url=one.url)
            await stage_at_death(one, Stage.CLAIMED)
            assert (await client.call("book", answers={FIRST: ADA}, state=asked.state)).text == "Ada"
        assert answered_once(server) == ["Ada"]


async def test_a_replica_that_dies_over_a_recovery_leaves_it_to_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url, count=3) as (one, other, third):
        offer_tools(server)
        async with RoundClient(other.url) as client:
            asked = await client.call("book", url=one.url)
            await stage_at_death(one, Stage.CLAIMED)
            with monkeypatch.context() as patched:
                patched.setattr(recovered_call, "HEARING_S", 60.0)
                retry = asyncio.ensure_future(client.call("book", answers={FIRST: ADA}, state=asked.state))
                await other.until(lambda: server.resumptions)
                await other.die()
                assert (await retry).error["message"] == "Invalid or expired request state"
            assert (server.answers, server.cancelled, server.deleted) == ([], [], [])
            assert (await client.call("book", answers={FIRST: ADA}, state=asked.state, url=third.url)).text == "Ada"
        assert answered_once(server) == ["Ada"]
        assert server.executions == {"book": 1}


async def test_a_server_is_not_asked_what_era_it_is_of_for_a_round_of_another_replica() -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url, upstream={"era": "auto"}) as (one, other):
        offer_tools(server)
        async with RoundClient(other.url) as client:
            asked = await client.call("book", url=one.url)
            await one.die()
            assert (await client.call("book", answers={FIRST: ADA}, state=asked.state)).text == "Ada"
            assert [replica.gateway.upstreams["docs"].era for replica in (one, other)] == ["legacy", None]


async def test_how_far_a_round_has_come_is_written_when_the_server_has_taken_the_answers() -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url) as (one, other):
        server.tool(greet)
        async with RoundClient(other.url) as client:
            asked = await client.call("greet", url=one.url)
            (handle,) = one.rounds._entries
            await one.die()
            again = await client.call("greet", answers={FIRST: ADA}, state=asked.state)
            await other.until(lambda: one.board.claims[handle] == Claim(other.rounds.owner, Stage.POSTED))
            await client.call("greet", answers={SECOND: BOB}, state=again.state)


# --- lost ---


async def forget(server: AskingServer) -> None:
    """The server has been restarted."""
    for session in list(server.sessions.values()):
        server.forget(session)


async def refuse_get(server: AskingServer) -> None:
    """The server does not offer GET."""
    for session in server.sessions.values():
        session.streams.clear()


async def end_streams(server: AskingServer) -> None:
    """The server has nothing on its streams any more."""
    for session in server.sessions.values():
        for stream in session.streams.values():
            stream.name = None
            stream.end()
            stream._messages.clear()


HOPELESS: dict[str, Callable[[AskingServer], Awaitable[None]]] = {
    "no session any more": forget,
    "no stream any more": refuse_get,
    "nothing on the stream": end_streams,
}


@pytest.mark.parametrize("stage", [None, Stage.CLAIMED, Stage.POSTED], ids=["unclaimed", "claimed", "posted"])
@pytest.mark.parametrize("fate", HOPELESS.values(), ids=HOPELESS)
async def test_what_cannot_be_picked_up_is_lost_and_ended(
    fate: Callable[[AskingServer], Awaitable[None]], stage: Stage | None
) -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url) as (one, other):

        @server.tool
        async def stubborn(call: Call) -> str:
            await call.ask(ELICIT, FORM)
            await asyncio.Event().wait()
            return ""

        async with RoundClient(other.url) as client:
            asked = await client.call("stubborn", url=one.url)
            await stage_at_death(one, stage)
            await fate(server)
            for _ in range(2):
                lost = await client.call("stubborn", answers={FIRST: ADA}, state=asked.state)
                assert (lost.status, lost.error) == (400, LOST)
        if fate is not forget:
            await server.until(lambda: server.cancelled and server.deleted)
        assert server.executions == {"stubborn": 1}


async def test_a_call_without_event_ids_is_lost_and_ended() -> None:
    async with AskingServer() as server, mortal(server.url) as (one, other):
        offer_tools(server)
        async with RoundClient(other.url) as client:
            asked = await client.call("book", url=one.url)
            await one.die()
            assert (await client.call("book", answers={FIRST: ADA}, state=asked.state)).error == LOST
        await server.until(lambda: server.cancelled and server.deleted)
        assert (server.answers, server.executions) == ([], {"book": 1})


@pytest.mark.parametrize("recovery", ["none", "replay"])
async def test_a_call_is_not_gone_on_with_where_the_operator_does_not_want_it(recovery: str) -> None:
    rounds = {"recovery": recovery, "replay": ["other"] if recovery == "replay" else []}
    async with AskingServer(event_ids=True) as server, mortal(server.url, rounds=rounds) as (one, other):
        offer_tools(server)
        async with RoundClient(other.url) as client:
            asked = await client.call("book", url=one.url)
            assert not one.rounds.items()[0][1].is_resumable
            await one.die()
            assert (await client.call("book", answers={FIRST: ADA}, state=asked.state)).error == LOST
        await server.until(lambda: server.cancelled and server.deleted)


async def test_what_is_too_much_for_a_token_is_lost() -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url) as (one, other):

        @server.tool
        async def wordy(call: Call) -> str:
            await call.ask(ELICIT, {**FORM, "message": "word " * 10_000})
            return ""

        async with RoundClient(other.url) as client:
            asked = await client.call("wordy", url=one.url)
            assert len(asked.state) < 2000
            assert not one.rounds.items()[0][1].is_resumable
            await one.die()
            assert (await client.call("wordy", answers={FIRST: ADA}, state=asked.state)).error == LOST
        await server.until(lambda: server.cancelled and server.deleted)


# --- replay ---

REPLAY = {"replay": ["gre*", "book"]}


async def test_a_tool_that_the_operator_vouches_for_is_called_again_with_the_answers_so_far() -> None:
    async with AskingServer() as server, mortal(server.url, count=3, rounds=REPLAY) as (one, other, third):
        server.tool(greet)
        async with RoundClient(other.url) as client:
            asked = await client.call("greet", url=one.url)
            assert one.rounds.items()[0][1].is_resumable
            await one.die()
            again = await client.call("greet", answers={FIRST: ADA}, state=asked.state, meta=notified(progress=1))
            assert (told(again), list(again.questions)) == ([1], [SECOND])
            await server.until(lambda: len(server.cancelled) == len(server.deleted) == 1)
            await other.die()
            done = await client.call("greet", answers={SECOND: BOB}, state=again.state, url=third.url)
            assert done.text == "Ada and Bob"
        assert server.executions == {"greet": 3}


async def test_a_question_that_is_another_one_now_is_not_given_the_old_answer() -> None:
    async with AskingServer() as server, mortal(server.url, rounds=REPLAY) as (one, other):

        @server.tool
        async def greet(call: Call) -> str:
            count = server.executions["greet"]
            answer = await call.ask(ELICIT, {**FORM, "message": f"Delete {count} files?"})
            return str(answer["content"]["name"])

        async with RoundClient(other.url) as client:
            asked = await client.call("greet", url=one.url)
            await one.die()
            again = await client.call("greet", answers={FIRST: ADA}, state=asked.state)
            assert again.questions[FIRST]["params"]["message"] == "Delete 2 files?"
            assert (await client.call("greet", answers={FIRST: BOB}, state=again.state)).text == "Bob"


async def test_a_call_that_its_server_does_not_know_any_more_is_made_again_if_it_may_be() -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url, rounds=REPLAY) as (one, other):
        offer_tools(server)
        async with RoundClient(other.url) as client:
            asked = await client.call("book", url=one.url)
            await one.die()
            await forget(server)
            assert (await client.call("book", answers={FIRST: ADA}, state=asked.state)).text == "Ada"
        assert server.executions == {"book": 2}


async def test_a_call_that_may_be_made_again_is_gone_on_with_if_it_can_be() -> None:
    async with AskingServer(event_ids=True) as server, mortal(server.url, rounds=REPLAY) as (one, other):
        offer_tools(server)
        async with RoundClient(other.url) as client:
            asked = await client.call("book", url=one.url)
            await one.die()
            assert (await client.call("book", answers={FIRST: ADA}, state=asked.state)).text == "Ada"
        assert server.executions == {"book": 1}


@pytest.mark.parametrize(("hints", "executions"), [({"readOnlyHint": True}, 2), ({"readOnlyHint": False}, 1)])
async def test_a_tool_is_called_again_if_its_own_hint_allows_it(hints: JsonObject, executions: int) -> None:
    rounds = {"replay_hints": ["read-only"]}
    async with AskingServer() as server, mortal(server.url, rounds=rounds) as (one, other):
        offer_tools(server)
        server.annotations["book"] = hints
        async with RoundClient(other.url) as client:
            asked = await client.call("book", url=one.url)
            await one.die()
            reply = await client.call("book", answers={FIRST: ADA}, state=asked.state)
            assert ("error" in reply.message) is (executions == 1)
        await server.until(lambda: server.cancelled)
        assert server.executions == {"book": executions}


# --- what no replica need keep ---


@pytest.mark.parametrize("answer", [{"action": "accept"}, DECLINED])
async def test_a_round_without_a_call_outlives_its_replica(answer: JsonObject) -> None:
    async with AskingServer() as server, mortal(server.url, rounds={"recovery": "none"}) as (one, other):

        @server.tool
        async def pay(call: Call) -> str:
            if server.executions["pay"] == 1:
                raise RpcError(-32042, "sign in first", {"elicitations": [PAGE]})
            return "paid"

        async with RoundClient(other.url) as client:
            asked = await client.call("pay", url=one.url)
            assert one.rounds.items()[0][1].is_resumable
            await one.die()
            again = await client.call("pay", answers={}, state=asked.state)
            assert again.questions == asked.questions
            done = await client.call("pay", answers={FIRST: answer}, state=again.state)
            assert (done.text == "paid") is (answer != DECLINED)
        assert server.executions == {"pay": 1 if answer == DECLINED else 2}


async def test_a_call_that_may_have_been_made_after_its_page_is_not_made_again() -> None:
    async with AskingServer() as server, mortal(server.url) as (one, other):

        @server.tool
        async def pay(call: Call) -> str:
            raise RpcError(-32042, "sign in first", {"elicitations": [PAGE]})

        async with RoundClient(other.url) as client:
            asked = await client.call("pay", url=one.url)
            await stage_at_death(one, Stage.CLAIMED)
            lost = await client.call("pay", answers={FIRST: {"action": "accept"}}, state=asked.state)
            assert lost.error == LOST
        assert server.executions == {"pay": 1}
