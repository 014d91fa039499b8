"""Two replicas on one Redis: whichever gets the retry, the call goes on where it is."""

from collections.abc import AsyncIterator

import pytest
from cryptography.fernet import Fernet

from tests.support.asking_server import AskingServer, Call
from tests.support.asking_tools import ELICIT, FORM, filled, offer_tools
from tests.support.redis_server import RedisServer
from tests.support.round_client import RoundClient
from tests.support.running_gateway import RunningGateway, running_gateway

KEY = Fernet.generate_key().decode()


@pytest.fixture
async def redis() -> AsyncIterator[RedisServer]:
    async with RedisServer() as redis:
        yield redis


@pytest.fixture
async def server() -> AsyncIterator[AskingServer]:
    async with AskingServer() as server:
        yield offer_tools(server)


@pytest.fixture
async def replicas(server: AskingServer, redis: RedisServer) -> AsyncIterator[list[RunningGateway]]:
    state = {"store": redis.url, "keys": KEY}
    async with running_gateway(server, state=state) as one, running_gateway(server, state=state) as other:
        yield [one, other]
        await one.until_idle()
        await other.until_idle()


async def test_a_retry_is_served_by_the_replica_that_keeps_its_round(
    server: AskingServer, replicas: list[RunningGateway]
) -> None:
    @server.tool
    async def greet(call: Call) -> str:
        first = await call.ask(ELICIT, FORM)
        second = await call.ask(ELICIT, FORM)
        return f"{first['content']['name']} and {second['content']['name']}"

    async with RoundClient(replicas[0].url) as one, RoundClient(replicas[1].url) as other:
        asked = await one.call("greet")
        again = await other.call("greet", answers={"elicitation_1": filled("Ada")}, state=asked.state)
        done = await other.call("greet", answers={"elicitation_2": filled("Bob")}, state=again.state)
        assert done.text == "Ada and Bob"
        assert server.executions == {"greet": 1}
        for client in (one, other):
            refused = await client.call("greet", answers={"elicitation_1": filled("Ada")}, state=asked.state)
            assert refused.error["message"] == "Invalid or expired request state"
