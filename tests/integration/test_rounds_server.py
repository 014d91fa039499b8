"""What a legacy server may do while its question is out: withdraw it, give up, lose its stream or its session."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.support.asking_server import AskingServer, Call, RpcError
from tests.support.asking_tools import ELICIT, FORM, PROMPT, ROOTS, SAMPLE, filled, offer_tools
from tests.support.round_client import RoundClient
from tests.support.running_gateway import RunningGateway, running_gateway

LOST = {
    "code": -32602,
    "message": "The call behind this request state is lost; it must be made anew, and may already have had effects",
    "data": {"reason": "lost"},
}
ADA = {"elicitation_1": filled("Ada")}


@pytest.fixture(params=[True, False], ids=["correlated", "uncorrelated"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[AskingServer]:
    async with AskingServer(correlated=request.param) as server:
        yield offer_tools(server)


@pytest.fixture
async def gateway(server: AskingServer) -> AsyncIterator[RunningGateway]:
    async with running_gateway(server) as gateway:
        yield gateway
        await gateway.until_idle()
    assert not server.sessions
    assert not server.running


@pytest.fixture
async def client(gateway: RunningGateway) -> AsyncIterator[RoundClient]:
    async with RoundClient(gateway.url) as client:
        yield client


# --- withdrawn, given up ---


async def test_a_withdrawn_question_lets_the_retry_go_on(server: AskingServer, client: RoundClient) -> None:
    withdraws, goes_on = asyncio.Event(), asyncio.Event()

    @server.tool
    async def fickle(call: Call) -> str:
        question = call.put(ELICIT, FORM)
        await withdraws.wait()
        call.withdraw(question)
        await goes_on.wait()
        return "on my own"

    asked = await client.call("fickle")
    withdraws.set()
    retry = asyncio.create_task(client.call("fickle", answers=ADA, state=asked.state))
    goes_on.set()
    assert (await retry).text == "on my own"
    assert server.executions == {"fickle": 1}


async def test_a_question_withdrawn_before_it_was_put_is_not_put(server: AskingServer, client: RoundClient) -> None:
    @server.tool
    async def hasty(call: Call) -> str:
        call.withdraw(call.put(ELICIT, FORM))
        await asyncio.sleep(0.02)  # longer than the gathering
        return str((await call.ask(SAMPLE, PROMPT))["model"])

    asked = await client.call("hasty")
    assert list(asked.questions) == ["sampling_1"]
    answers = {"sampling_1": {"role": "assistant", "content": {"type": "text", "text": ""}, "model": "m"}}
    assert (await client.call("hasty", answers=answers, state=asked.state)).text == "m"


async def test_the_result_of_a_server_that_gave_up_is_kept_for_the_retry(
    server: AskingServer, gateway: RunningGateway, client: RoundClient
) -> None:
    gives_up = asyncio.Event()

    @server.tool
    async def impatient(call: Call) -> str:
        call.put(ELICIT, FORM)
        await gives_up.wait()
        return "gave up"

    asked = await client.call("impatient")
    gives_up.set()
    await gateway.until(lambda: gateway.leased == 0)
    assert gateway.suspended == 1
    done = await client.call("impatient", answers=ADA, state=asked.state)
    assert (done.text, done.result["resultType"]) == ("gave up", "complete")
    assert server.executions == {"impatient": 1}
    assert not server.answers


async def test_an_error_of_a_server_that_gave_up_is_kept_too(
    server: AskingServer, gateway: RunningGateway, client: RoundClient
) -> None:
    gives_up = asyncio.Event()

    @server.tool
    async def sulky(call: Call) -> str:
        call.put(ELICIT, FORM)
        await gives_up.wait()
        raise RpcError(-32000, "too slow")

    asked = await client.call("sulky")
    gives_up.set()
    await gateway.until(lambda: gateway.leased == 0)
    failed = await client.call("sulky", answers=ADA, state=asked.state)
    assert (failed.status, failed.error["code"], failed.error["message"]) == (200, -32000, "too slow")


async def test_a_question_that_comes_while_the_client_is_away_is_put_next(
    server: AskingServer, client: RoundClient
) -> None:
    asks_more = asyncio.Event()

    @server.tool
    async def curious(call: Call) -> str:
        first = call.put(ELICIT, FORM)
        await asks_more.wait()
        second = call.put(ROOTS)
        await call.answer_to(first)
        return str((await call.answer_to(second))["roots"])

    asked = await client.call("curious")
    assert list(asked.questions) == ["elicitation_1"]
    asks_more.set()
    again = await client.call("curious", answers={}, state=asked.state)
    if list(again.questions) == ["elicitation_1"]:  # the second question was still on its way
        again = await client.call("curious", answers={}, state=again.state)
    assert set(again.questions) <= {"elicitation_1", "roots_1"}
    done = await client.call("curious", answers={**ADA, "roots_1": {"roots": []}}, state=again.state)
    assert done.text == "[]"


# --- the stream ends while the call is suspended ---


async def test_a_stream_closed_without_event_ids_has_lost_the_call() -> None:
    async with AskingServer() as server:
        closes = asyncio.Event()

        @server.tool
        async def closing(call: Call) -> str:
            question = call.put(ELICIT, FORM)
            await closes.wait()
            call.stream.cut()
            return str((await call.answer_to(question))["action"])

        async with running_gateway(server) as gateway, RoundClient(gateway.url) as client:
            asked = await client.call("closing")
            closes.set()
            await server.until(lambda: server.cancelled)
            lost = await client.call("closing", answers=ADA, state=asked.state)
            assert (lost.status, lost.error) == (400, LOST)
            assert server.executions == {"closing": 1}
            assert [answer.body for answer in server.answers] == [{"result": {"action": "cancel"}}]
            await gateway.until_idle()
        assert not server.running


@pytest.mark.parametrize("correlated", [True, False])
async def test_a_stream_closed_with_event_ids_is_picked_up_by_the_retry(correlated: bool) -> None:
    async with AskingServer(event_ids=True, correlated=correlated) as server:

        @server.tool
        async def polled(call: Call) -> str:
            names = []
            for _ in range(3):
                question = call.put(ELICIT, FORM)
                call.stream.cut()
                names.append((await call.answer_to(question))["content"]["name"])
            return ",".join(names)

        async with running_gateway(server) as gateway, RoundClient(gateway.url) as client:
            reply = await client.call("polled")
            for number, name in enumerate(("Ada", "Bob", "Cyd"), 1):
                answers = {f"elicitation_{number}": filled(name)}
                assert list(reply.questions) == list(answers)
                reply = await client.call("polled", answers=answers, state=reply.state)
            assert reply.text == "Ada,Bob,Cyd"
            assert server.executions == {"polled": 1}
            await gateway.until_idle()


async def test_a_result_that_came_while_nobody_read_is_found_by_the_retry() -> None:
    async with AskingServer(event_ids=True) as server:
        done = asyncio.Event()

        @server.tool
        async def gone_on(call: Call) -> str:
            call.put(ELICIT, FORM)
            await done.wait()
            call.stream.cut()
            return "went on"

        async with running_gateway(server) as gateway, RoundClient(gateway.url) as client:
            asked = await client.call("gone_on")
            done.set()
            await server.until(lambda: not server.running)
            assert (await client.call("gone_on", answers=ADA, state=asked.state)).text == "went on"
            await gateway.until_idle()


# --- the session dies while the call is suspended ---


@pytest.mark.parametrize("event_ids", [False, True], ids=["no event ids", "event ids"])
async def test_a_session_that_died_is_told_and_the_call_is_not_made_again(event_ids: bool) -> None:
    async with AskingServer(event_ids=event_ids) as server:
        offer_tools(server)
        async with running_gateway(server) as gateway, RoundClient(gateway.url) as client:
            asked = await client.call("book", {"key": "k"})
            (session,) = server.sessions.values()
            server.forget(session)
            await server.until(lambda: not server.running)
            failed = await client.call("book", {"key": "k"}, answers=ADA, state=asked.state)
            assert "error" in failed.message
            assert failed.status in (400, 502)
            assert failed.error.get("data", {}).get("reason") in ("lost", "session_lost", "outcome_unknown")
            assert server.executions == {"k": 1}
            await gateway.until_idle()
            again = await client.call("book", {"key": "k2"})
            assert (await client.call("book", {"key": "k2"}, answers=ADA, state=again.state)).text == "Ada"


async def test_a_session_that_died_behind_open_streams_is_told() -> None:
    """The server forgot the session, and only the answer finds out."""
    async with AskingServer() as server:
        offer_tools(server)
        async with running_gateway(server) as gateway, RoundClient(gateway.url) as client:
            asked = await client.call("book", {"key": "k"})
            server.sessions.clear()
            failed = await client.call("book", {"key": "k"}, answers=ADA, state=asked.state)
            assert (failed.status, failed.error["data"]["reason"]) == (502, "session_lost")
            assert failed.error["data"]["retryable"] is False
            assert server.executions == {"k": 1}
            await gateway.until_idle()
