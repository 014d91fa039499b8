"""Progress and log messages across rounds: each leg of a call gets what it asks for."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.asking_server import AskingServer, Call
from tests.support.asking_tools import (
    ELICIT,
    FORM,
    filled,
    offer_tools,
)
from tests.support.round_client import RoundClient, notified
from tests.support.running_gateway import RunningGateway, running_gateway


@pytest.fixture
async def server() -> AsyncIterator[AskingServer]:
    async with AskingServer() as server:
        yield offer_tools(server)


@pytest.fixture
async def gateway(server: AskingServer) -> AsyncIterator[RunningGateway]:
    async with running_gateway(server) as gateway:
        yield gateway
        await gateway.until_at_rest()
        assert not server.unheard
    assert not server.sessions


@pytest.fixture
async def client(gateway: RunningGateway) -> AsyncIterator[RoundClient]:
    async with RoundClient(gateway.url) as client:
        yield client


async def test_each_leg_gets_the_progress_and_logs_that_it_asks_for(server: AskingServer, client: RoundClient) -> None:
    @server.tool
    async def chatty(call: Call) -> str:
        for leg in range(3):
            call.progress(leg * 2 + 1)
            call.log("info", f"info {leg}")
            call.log("error", f"error {leg}")
            if leg < 2:
                await call.ask(ELICIT, FORM)
        return "done"

    first = await client.call("chatty", meta=notified(progress="p-1", logs="info"))
    assert _told(first.notifications) == [("p-1", 1), "info 0", "error 0"]
    answers = {"elicitation_1": filled("Ada")}
    second = await client.call("chatty", answers=answers, state=first.state, meta=notified(progress=2))
    assert _told(second.notifications) == [(2, 3)]
    answers = {"elicitation_2": filled("Bob")}
    third = await client.call("chatty", answers=answers, state=second.state, meta=notified(logs="error"))
    assert _told(third.notifications) == ["error 2"]
    assert third.text == "done"


async def test_progress_may_be_wanted_by_a_later_leg_alone(server: AskingServer, client: RoundClient) -> None:
    @server.tool
    async def slow(call: Call) -> str:
        await call.ask(ELICIT, FORM)
        call.progress(1)
        return "done"

    asked = await client.call("slow")
    answers = {"elicitation_1": filled("Ada")}
    done = await client.call("slow", answers=answers, state=asked.state, meta=notified(progress="late"))
    assert _told(done.notifications) == [("late", 1)]


async def test_what_a_server_tells_while_its_client_is_away_is_told_first_on_the_retry(
    server: AskingServer, client: RoundClient
) -> None:
    goes_on = asyncio.Event()

    @server.tool
    async def busy(call: Call) -> str:
        question = call.put(ELICIT, FORM)
        await goes_on.wait()
        call.progress(1)
        call.log("info", "meanwhile")
        await call.answer_to(question)
        call.progress(2)
        return "done"

    asked = await client.call("busy", meta=notified(progress="first", logs="info"))
    goes_on.set()
    answers = {"elicitation_1": filled("Ada")}
    meta = notified(progress="second", logs="info")
    done = await client.call("busy", answers=answers, state=asked.state, meta=meta)
    assert _told(done.notifications) == [("second", 1), "meanwhile", ("second", 2)]


def _told(notifications: list[dict[str, Any]]) -> list[Any]:
    """Progress as (token, value), logs as their text."""
    return [
        params["data"] if "data" in params else (params["progressToken"], params["progress"])
        for params in (message["params"] for message in notifications)
    ]
