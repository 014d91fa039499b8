"""Questions that never reach the client: undeclared, during a method that cannot ask, malformed, unanswerable."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.wire.jsonrpc import JsonObject, request
from tests.support.asking_server import AskingServer, Call, RpcError
from tests.support.asking_tools import ELICIT, FORM, PAGE, PROMPT, ROOTS, SAMPLE, filled, offer_tools
from tests.support.round_client import Reply, RoundClient
from tests.support.running_gateway import RunningGateway, running_gateway

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


# --- unanswerable ---


async def test_a_server_that_could_not_hear_the_answer_fails_at_once() -> None:
    async with AskingServer(with_sessions=False) as server:
        offer_tools(server)
        async with running_gateway(server) as gateway, RoundClient(gateway.url) as client:
            failed = await client.call("book")
            assert (failed.status, failed.error["data"]["reason"]) == (502, "nonsense")
            assert (await client.call("plain")).text == "plain"
            await gateway.until_idle()
