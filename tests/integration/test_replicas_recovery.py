"""Real replicas, one of which is killed while it keeps a suspended call."""

from collections.abc import AsyncIterator

import pytest

from tests.support.asking_server import AskingServer, Call
from tests.support.asking_tools import ELICIT, FORM, filled
from tests.support.redis_server import RedisServer
from tests.support.replicas import Replicas
from tests.support.round_client import RoundClient

pytestmark = pytest.mark.replicas

LOST = {
    "code": -32602,
    "message": "The call behind this request state is lost; it must be made anew, and may already have had effects",
    "data": {"reason": "lost"},
}


@pytest.fixture
async def redis() -> AsyncIterator[RedisServer]:
    async with RedisServer() as redis:
        yield redis


async def test_a_suspended_call_outlives_the_replica_that_kept_it(redis: RedisServer) -> None:
    async with AskingServer(event_ids=True) as server:

        @server.tool
        async def greet(call: Call) -> str:
            first = await call.ask(ELICIT, FORM)
            second = await call.ask(ELICIT, FORM)
            return f"{first['content']['name']} and {second['content']['name']}"

        async with Replicas(redis.url, server.url, count=2) as (one, other), RoundClient(other.url) as client:
            asked = await client.call("greet", url=one.url)
            await one.kill()
            again = await client.call("greet", answers={"elicitation_1": filled("Ada")}, state=asked.state)
            done = await client.call("greet", answers={"elicitation_2": filled("Bob")}, state=again.state)
            assert done.text == "Ada and Bob"
            assert server.executions == {"greet": 1}


async def test_a_call_that_nobody_can_go_on_with_is_lost_and_ended(redis: RedisServer) -> None:
    async with AskingServer() as server:

        @server.tool
        async def greet(call: Call) -> str:
            return str((await call.ask(ELICIT, FORM))["content"])

        async with Replicas(redis.url, server.url, count=2) as (one, other), RoundClient(other.url) as client:
            asked = await client.call("greet", url=one.url)
            await one.kill()
            lost = await client.call("greet", answers={"elicitation_1": filled("Ada")}, state=asked.state)
            assert lost.error == LOST
            await server.until(lambda: not server.running)
            assert server.executions == {"greet": 1}
