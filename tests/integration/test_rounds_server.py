"""What a legacy server may do around its question: withdraw it, give up, lose stream or session, ask too much."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.wire.jsonrpc import JsonObject, request
from tests.support.asking_server import AskingServer, Call, RpcError
from tests.support.asking_tools import ELICIT, FORM, PAGE, PROMPT, ROOTS, SAMPLE, filled, offer_tools
from tests.support.round_client import Reply, RoundClient
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


# --- a page must be visited first: -32042 ---


class Toll:
    """A tool that fails with -32042 until the page was visited."""

    def __init__(self, *pages: JsonObject) -> None:
        self.is_paid = False
        self.pages = pages or (PAGE,)

    async def __call__(self, _call: Call) -> Any:
        if not self.is_paid:
            raise RpcError(-32042, "Open a page first", {"elicitations": list(self.pages)})
        return "paid"


ACCEPTED: JsonObject = {"elicitation_1": {"action": "accept"}}


async def test_a_page_to_visit_first_is_a_round_and_then_a_new_call(server: AskingServer, client: RoundClient) -> None:
    server.tools["pay"] = toll = Toll()
    asked = await client.call("pay", {"key": "k"})
    question = {key: value for key, value in PAGE.items() if key != "elicitationId"}
    assert asked.questions == {"elicitation_1": {"method": ELICIT, "params": question}}
    again = await client.call("pay", {"key": "k"}, answers=ACCEPTED, state=asked.state)
    assert list(again.questions) == ["elicitation_1"]
    toll.is_paid = True
    assert (await client.call("pay", {"key": "k"}, answers=ACCEPTED, state=again.state)).text == "paid"
    assert server.executions == {"k": 3}


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_page_that_the_user_will_not_visit_ends_the_call(
    server: AskingServer, client: RoundClient, action: str
) -> None:
    server.tools["pay"] = Toll()
    asked = await client.call("pay")
    declined = await client.call("pay", answers={"elicitation_1": {"action": action}}, state=asked.state)
    assert declined.result["isError"] is True
    assert server.executions == {"pay": 1}


async def test_several_pages_must_all_be_visited(server: AskingServer, client: RoundClient) -> None:
    server.tools["pay"] = toll = Toll(PAGE, {**PAGE, "url": "https://two.test/"})
    asked = await client.call("pay")
    again = await client.call("pay", answers=ACCEPTED, state=asked.state)
    assert list(again.questions) == ["elicitation_2"]
    assert server.executions == {"pay": 1}
    toll.is_paid = True
    done = await client.call("pay", answers={"elicitation_2": {"action": "accept"}}, state=again.state)
    assert done.text == "paid"


async def test_the_token_of_a_page_is_good_for_one_use_and_one_request(
    server: AskingServer, client: RoundClient
) -> None:
    server.tools["pay"] = server.tools["other"] = toll = Toll()
    asked = await client.call("pay")
    assert (await client.call("other", answers=ACCEPTED, state=asked.state)).status == 400
    toll.is_paid = True
    assert (await client.call("pay", answers=ACCEPTED, state=asked.state)).text == "paid"
    assert (await client.call("pay", answers=ACCEPTED, state=asked.state)).status == 400
    assert server.executions == {"pay": 2}


async def test_a_page_for_a_client_that_cannot_show_one(server: AskingServer, client: RoundClient) -> None:
    server.tools["pay"] = Toll()
    for declared in ({}, {"elicitation": {}}, {"elicitation": {"form": {}}}):
        refused = await client.call("pay", capabilities=declared)
        assert_undeclared(refused, {"elicitation": {"url": {}}})


async def test_prompts_and_resources_may_require_a_page(server: AskingServer, client: RoundClient) -> None:
    server.prompts["greet"] = server.resources["doc://1"] = Toll()
    for method, target in (("prompts/get", "greet"), ("resources/read", "doc://1")):
        asked = await client.request(method, target)
        declined = await client.request(
            method, target, answers={"elicitation_1": {"action": "decline"}}, state=asked.state
        )
        assert declined.error["code"] == -32602


# --- what the request did not declare ---


def assert_undeclared(reply: Reply, required: JsonObject) -> None:
    assert (reply.status, reply.error["code"]) == (400, -32021)
    assert reply.error["data"] == {"requiredCapabilities": required}


@pytest.mark.parametrize(
    ("declared", "question", "missing"),
    [
        ({}, (ELICIT, FORM), {"elicitation": {"form": {}}}),
        ({"elicitation": {"url": {}}}, (ELICIT, FORM), {"elicitation": {"form": {}}}),
        ({"elicitation": {}}, (ELICIT, PAGE), {"elicitation": {"url": {}}}),
        ({"elicitation": {}}, (SAMPLE, PROMPT), {"sampling": {}}),
        ({"sampling": {}}, (SAMPLE, {**PROMPT, "tools": []}), {"sampling": {"tools": {}}}),
        (
            {"sampling": {"tools": {}}},
            (SAMPLE, {**PROMPT, "includeContext": "allServers"}),
            {"sampling": {"context": {}}},
        ),
        ({"sampling": {}}, (ROOTS, None), {"roots": {}}),
    ],
)
async def test_exactly_the_missing_capability_is_named(
    server: AskingServer, client: RoundClient, declared: JsonObject, question: Any, missing: JsonObject
) -> None:
    refusals: list[RpcError] = []

    @server.tool
    async def bold(call: Call) -> str:
        try:
            await call.ask(*question)
        except RpcError as error:
            refusals.append(error)
            raise
        return "asked"

    refused = await client.call("bold", capabilities=declared)
    assert_undeclared(refused, missing)
    await server.until(lambda: not server.running)
    assert not server.running


async def test_the_server_sees_exactly_what_each_request_declared(server: AskingServer, client: RoundClient) -> None:
    @server.tool
    async def wary(call: Call) -> str:
        if "elicitation" not in call.session.capabilities:
            return "no-ui"
        return str((await call.ask(ELICIT, FORM))["action"])

    for _ in range(3):
        asked = await client.call("wary", capabilities={"elicitation": {"form": {}}})
        assert list(asked.questions) == ["elicitation_1"]
        assert (await client.call("wary", capabilities={})).text == "no-ui"
        done = await client.call("wary", answers=ADA, state=asked.state, capabilities={"elicitation": {"form": {}}})
        assert done.text == "accept"


async def test_a_retry_that_declares_less_than_is_still_open(server: AskingServer, client: RoundClient) -> None:
    asked = await client.call("at_once", {"count": 2})
    refused = await client.call("at_once", {"count": 2}, answers=ADA, state=asked.state, capabilities={"roots": {}})
    assert_undeclared(refused, {"elicitation": {"form": {}}})
    await server.until(lambda: server.cancelled)


# --- methods that cannot ask ---


async def test_a_question_during_a_list_is_refused_and_the_list_goes_on(
    server: AskingServer, client: RoundClient
) -> None:
    refusals: list[RpcError] = []

    async def nosy(call: Call) -> None:
        try:
            await call.ask(ELICIT, FORM)
        except RpcError as error:
            refusals.append(error)

    server.listing = nosy
    listed = await client.request("tools/list")
    assert [tool["name"] for tool in listed.result["tools"]][:1] == ["book"]
    assert (await client.call("plain")).text == "plain"
    assert len(refusals) >= 1


async def test_a_ping_is_answered_and_an_unknown_request_refused_while_suspended(
    server: AskingServer, client: RoundClient
) -> None:
    asked = await client.call("book")
    (session,) = server.sessions.values()
    session.aside.send(request("p-1", "ping"))
    session.aside.send(request("x-1", "tasks/get", {}))
    await server.until(lambda: {"p-1", "x-1"} <= {answer.id for answer in server.answers})
    bodies = {answer.id: answer.body for answer in server.answers}
    assert bodies["p-1"] == {"result": {}}
    assert bodies["x-1"]["error"]["code"] == -32601
    assert (await client.call("book", answers=ADA, state=asked.state)).text == "Ada"


async def test_a_malformed_question_is_refused_and_the_call_goes_on(server: AskingServer, client: RoundClient) -> None:
    @server.tool
    async def clumsy(call: Call) -> str:
        await call.ask(ELICIT, FORM)
        try:
            await call.ask(ELICIT, ["no", "object"])  # type: ignore[arg-type]
        except RpcError as error:
            return str(error)
        return "asked"

    asked = await client.call("clumsy")
    done = await client.call("clumsy", answers=ADA, state=asked.state)
    assert done.text.startswith("-32602")


# --- a server that keeps no sessions ---


async def test_a_server_that_could_not_hear_the_answer_fails_at_once() -> None:
    async with AskingServer(with_sessions=False) as server:
        offer_tools(server)
        async with running_gateway(server) as gateway, RoundClient(gateway.url) as client:
            failed = await client.call("book")
            assert (failed.status, failed.error["data"]["reason"]) == (502, "nonsense")
            assert (await client.call("plain")).text == "plain"
            await gateway.until_idle()
