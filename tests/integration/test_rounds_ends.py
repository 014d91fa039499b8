"""How rounds end when not with an answer: time, limits, a client that leaves, a silent server, a shutdown."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.asking_server import AskingServer, Call
from tests.support.asking_tools import ELICIT, FORM, filled, offer_tools
from tests.support.round_client import RoundClient
from tests.support.running_gateway import running_gateway

ADA = {"elicitation_1": filled("Ada")}
FROZEN = {"code": -32602, "message": "Invalid or expired request state"}
WALKED_AWAY = {
    0: {"result": {"action": "cancel"}},
    1: {"error": {"code": -32603, "message": "The client did not answer"}},
    2: {"error": {"code": -32603, "message": "The client did not answer"}},
}


@pytest.fixture
async def server() -> AsyncIterator[AskingServer]:
    async with AskingServer() as server:
        yield offer_tools(server)
        assert not server.running
        assert not server.sessions


# --- time ---


async def test_a_client_that_never_comes_back_is_answered_for_and_its_call_ended(server: AskingServer) -> None:
    async with running_gateway(server, rounds={"ttl": "100ms"}) as gateway, RoundClient(gateway.url) as client:
        asked = await client.call("mixed", {"key": "k"})
        (session,) = server.sessions
        await server.until(lambda: server.deleted)
        assert {answer.id: answer.body for answer in server.answers} == WALKED_AWAY
        assert len(server.cancelled) == 1
        assert server.deleted == [session]
        await gateway.until_idle()
        late = await client.call("mixed", {"key": "k"}, answers=ADA, state=asked.state)
        assert (late.status, late.error) == (400, FROZEN)
        assert server.executions == {"k": 1}


async def test_a_server_hears_the_answer_and_the_end_before_its_session_ends(server: AskingServer) -> None:
    async with running_gateway(server, rounds={"ttl": "100ms"}) as gateway, RoundClient(gateway.url) as client:
        await asyncio.gather(*(client.call("book", {"key": n}) for n in range(10)))
        await server.until(lambda: len(server.deleted) == 10)
        await gateway.until_idle()
    assert len(server.cancelled) == 10
    assert [answer.was_awaited for answer in server.answers] == [True] * 10


async def test_every_round_has_its_own_time(server: AskingServer) -> None:
    async with running_gateway(server, rounds={"ttl": "1h"}) as gateway, RoundClient(gateway.url) as client:
        asked = await client.call("in_turn", {"count": 2})
        again = await client.call("in_turn", {"count": 2}, answers=ADA, state=asked.state)
        (entry,) = gateway.gateway.rounds._entries.values()
        assert entry.timer.when() - asyncio.get_running_loop().time() > 3590
        await client.call("in_turn", {"count": 2}, answers={"elicitation_2": filled("Bob")}, state=again.state)
        await gateway.until_idle()


async def test_a_token_is_good_for_as_long_as_its_round_even_if_that_is_short(server: AskingServer) -> None:
    async with running_gateway(server, rounds={"ttl": "900ms"}) as gateway, RoundClient(gateway.url) as client:
        for number in range(10):
            asked = await client.call("book", {"key": number})
            assert (await client.call("book", {"key": number}, answers=ADA, state=asked.state)).text == "Ada"
        await gateway.until_idle()


async def test_an_outcome_that_nobody_fetches_is_forgotten_in_time(server: AskingServer) -> None:
    gives_up = asyncio.Event()

    @server.tool
    async def impatient(call: Call) -> str:
        call.put(ELICIT, FORM)
        await gives_up.wait()
        return "gave up"

    async with running_gateway(server, rounds={"ttl": "200ms"}) as gateway, RoundClient(gateway.url) as client:
        await client.call("impatient")
        gives_up.set()
        await gateway.until_idle()
        assert gateway.sessions == 1  # clean, and kept for the next call
        assert not server.cancelled


async def test_a_server_that_falls_silent_after_the_answer_is_given_up(server: AskingServer) -> None:
    @server.tool
    async def mute(call: Call) -> None:
        await call.ask(ELICIT, FORM)
        await asyncio.Event().wait()

    async with running_gateway(server, upstream={"timeout": "200ms"}) as gateway, RoundClient(gateway.url) as client:
        asked = await client.call("mute")
        failed = await client.call("mute", answers=ADA, state=asked.state)
        assert (failed.status, failed.error["data"]["reason"]) == (504, "timeout")
        await server.until(lambda: server.cancelled)
        await gateway.until_idle()


async def test_waiting_for_the_client_is_no_silence_of_the_server(server: AskingServer) -> None:
    async with running_gateway(server, upstream={"timeout": "100ms", "max_duration": "200ms"}) as gateway:
        async with RoundClient(gateway.url) as client:
            asked = await client.call("book")
            await asyncio.sleep(0.4)  # longer than both: that nothing happens cannot be waited for
            assert (await client.call("book", answers=ADA, state=asked.state)).text == "Ada"
        await gateway.until_idle()


# --- the client leaves ---


async def test_a_client_that_leaves_while_its_answer_is_at_work_cancels_the_call(server: AskingServer) -> None:
    at_work = asyncio.Event()

    @server.tool
    async def slow(call: Call) -> None:
        await call.ask(ELICIT, FORM)
        at_work.set()
        await asyncio.Event().wait()

    async with running_gateway(server) as gateway, RoundClient(gateway.url) as client:
        asked = await client.call("slow")
        retry = asyncio.create_task(client.call("slow", answers=ADA, state=asked.state))
        await at_work.wait()
        retry.cancel()
        await server.until(lambda: server.cancelled and server.deleted)
        await gateway.until_idle()
        late = await client.call("slow", answers=ADA, state=asked.state)
        assert late.error == FROZEN
        assert server.executions == {"slow": 1}


async def test_a_client_that_leaves_before_it_is_asked_cancels_the_call(server: AskingServer) -> None:
    at_work = asyncio.Event()

    @server.tool
    async def slow(_call: Call) -> None:
        at_work.set()
        await asyncio.Event().wait()

    async with running_gateway(server) as gateway, RoundClient(gateway.url) as client:
        call = asyncio.create_task(client.call("slow"))
        await at_work.wait()
        call.cancel()
        await server.until(lambda: server.cancelled and server.deleted)
        await gateway.until_idle()


async def test_one_client_that_leaves_disturbs_no_other(server: AskingServer) -> None:
    at_work = asyncio.Event()

    @server.tool
    async def slow(call: Call) -> str:
        answer = await call.ask(ELICIT, FORM)
        if call.arguments["key"] == "leaver":
            at_work.set()
            await asyncio.Event().wait()
        return str(answer["content"]["name"])

    async with running_gateway(server) as gateway, RoundClient(gateway.url) as client:
        leaver, stayer = [await client.call("slow", {"key": key}) for key in ("leaver", "stayer")]
        retry = asyncio.create_task(client.call("slow", {"key": "leaver"}, answers=ADA, state=leaver.state))
        await at_work.wait()
        retry.cancel()
        await server.until(lambda: server.cancelled)
        assert (await client.call("slow", {"key": "stayer"}, answers=ADA, state=stayer.state)).text == "Ada"
        await gateway.until_idle()


# --- limits ---


async def test_no_more_calls_are_suspended_than_there_is_room_for(server: AskingServer) -> None:
    async with running_gateway(server, rounds={"max": 2}) as gateway, RoundClient(gateway.url) as client:
        asked = [await client.call("book", {"key": key}) for key in ("a", "b")]
        refused = await client.call("book", {"key": "c"})
        assert (refused.status, refused.error["code"], refused.error["data"]["reason"]) == (503, -32603, "full")
        assert int(refused.headers["Retry-After"]) > 0
        await server.until(lambda: server.cancelled and server.deleted)
        assert server.answers[0].body == {"result": {"action": "cancel"}}
        assert gateway.suspended == 2
        for key, reply in zip(("a", "b"), asked, strict=True):
            assert (await client.call("book", {"key": key}, answers=ADA, state=reply.state)).text == "Ada"
        again = await client.call("book", {"key": "d"})
        assert (await client.call("book", {"key": "d"}, answers=ADA, state=again.state)).text == "Ada"
        await gateway.until_idle()


async def test_one_upstream_does_not_fill_the_gateway(server: AskingServer) -> None:
    async with AskingServer() as other:
        offer_tools(other)
        upstreams = {"other": {"url": other.url, "era": "legacy"}}
        async with running_gateway(server, upstreams=upstreams, rounds={"max_per_upstream": 1}) as gateway:
            async with RoundClient(gateway.url + "/docs") as client:
                asked = await client.call("book")
                assert (await client.call("book")).status == 503
                assert (await client.call("book", url=gateway.url + "/other")).asks
                assert (await client.call("book", answers=ADA, state=asked.state)).text == "Ada"
                assert (await client.call("book")).asks
            await gateway.until_at_rest()


async def test_a_call_that_has_a_place_keeps_it_through_its_rounds(server: AskingServer) -> None:
    async with running_gateway(server, rounds={"max": 1}) as gateway, RoundClient(gateway.url) as client:
        reply = await client.call("in_turn", {"count": 5})
        for number in range(1, 6):
            answers = {f"elicitation_{number}": filled("Ada")}
            reply = await client.call("in_turn", {"count": 5}, answers=answers, state=reply.state)
        assert reply.text == "Ada,Ada,Ada,Ada,Ada"
        await gateway.until_idle()


async def test_nobody_takes_the_place_of_a_call_that_goes_on(server: AskingServer) -> None:
    """Else a user might have any number of calls suspended, by answering them all before asking for more."""
    at_work, goes_on = asyncio.Event(), asyncio.Event()

    @server.tool
    async def slow(call: Call) -> str:
        await call.ask(ELICIT, FORM)
        at_work.set()
        await goes_on.wait()
        return str((await call.ask(ELICIT, FORM))["action"])

    async with running_gateway(server, rounds={"max": 1}) as gateway, RoundClient(gateway.url) as client:
        asked = await client.call("slow")
        retry = asyncio.create_task(client.call("slow", answers=ADA, state=asked.state))
        await at_work.wait()
        assert (await client.call("book")).status == 503
        goes_on.set()
        asked = await retry
        answers = {"elicitation_2": filled("Ada")}
        assert (await client.call("slow", answers=answers, state=asked.state)).text == "accept"
        asked = await client.call("book")
        assert (await client.call("book", answers=ADA, state=asked.state)).text == "Ada"
        await gateway.until_idle()


async def test_suspended_calls_take_no_session_from_those_at_work(server: AskingServer) -> None:
    async with running_gateway(server, upstream={"sessions": {"max": 2}}) as gateway:
        async with RoundClient(gateway.url) as client:
            asked = [await client.call("book", {"key": n}) for n in range(20)]
            assert gateway.suspended == 20
            assert (await client.call("plain")).text == "plain"
            replies = await asyncio.gather(
                *(client.call("book", {"key": n}, answers=ADA, state=reply.state) for n, reply in enumerate(asked))
            )
            assert [reply.text for reply in replies] == ["Ada"] * 20
        await gateway.until_idle()


# --- shutdown ---


async def test_a_gateway_that_ends_leaves_no_question_open(server: AskingServer) -> None:
    async with running_gateway(server) as gateway, RoundClient(gateway.url) as client:
        await client.call("mixed")
        await client.call("book")
    assert len(server.answers) == 4
    assert len(server.cancelled) == 2
    assert len(server.deleted) == 2


async def test_a_token_of_an_earlier_process_is_told_that_its_call_is_lost(server: AskingServer) -> None:
    state = {"keys": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
    async with running_gateway(server, state=state) as gateway, RoundClient(gateway.url) as client:
        asked = await client.call("book", {"key": "k"})
    async with running_gateway(server, state=state) as gateway, RoundClient(gateway.url) as client:
        lost = await client.call("book", {"key": "k"}, answers=ADA, state=asked.state)
        assert (lost.status, lost.error["code"], lost.error["data"]) == (400, -32602, {"reason": "lost"})
        assert server.executions == {"k": 1}


async def test_without_a_configured_key_it_is_merely_refused(server: AskingServer) -> None:
    async with running_gateway(server) as gateway, RoundClient(gateway.url) as client:
        asked = await client.call("book")
    async with running_gateway(server) as gateway, RoundClient(gateway.url) as client:
        refused = await client.call("book", answers=ADA, state=asked.state)
        assert (refused.status, refused.error) == (400, FROZEN)
