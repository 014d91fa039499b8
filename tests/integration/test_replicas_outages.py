"""Real replicas whose store goes away, which stand still, or which die while they relay."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from tests.support.asking_server import AskingServer, Call
from tests.support.asking_tools import ELICIT, FORM, filled
from tests.support.redis_server import RedisServer
from tests.support.replicas import Replica, Replicas
from tests.support.round_client import Reply, RoundClient

pytestmark = pytest.mark.replicas

ADA = {"elicitation_1": filled("Ada")}


class Stage:
    """A server that asks once, works until it may go on, and says what it heard; and two replicas before it."""

    def __init__(self, server: AskingServer, redis: RedisServer, replicas: Replicas, client: RoundClient) -> None:
        self.server, self.redis, self.client = server, redis, client
        self.one, self.other = replicas
        self.reached = asyncio.Event()
        self.goes_on = asyncio.Event()

        @server.tool
        async def greet(call: Call) -> str:
            name = str((await call.ask(ELICIT, FORM))["content"]["name"])
            self.reached.set()
            await self.goes_on.wait()
            return name

        @server.tool
        async def hello(call: Call) -> str:
            return "hello"

    async def ask(self, replica: Replica) -> Reply:
        return await self.client.call("greet", url=replica.url)

    async def answer(self, replica: Replica, asked: Reply) -> Reply:
        return await self.client.call("greet", answers=ADA, state=asked.state, url=replica.url)


@asynccontextmanager
async def stage(*, event_ids: bool = True) -> AsyncIterator[Stage]:
    async with (
        AskingServer(event_ids=event_ids) as server,
        RedisServer() as redis,
        Replicas(redis.url, server.url, count=2) as replicas,
        RoundClient("", wait_s=30) as client,
    ):
        yield Stage(server, redis, replicas, client)


async def test_without_the_store_everything_goes_on_that_does_not_need_it() -> None:
    async with stage() as on:
        on.goes_on.set()
        here, there, before = [await on.ask(on.one) for _ in range(3)]
        await on.redis.kill()
        await on.one.until(store="down")
        await on.other.until(store="down")
        assert (await on.one.readiness())[0] == 200

        assert (await on.client.call("hello", url=on.one.url)).text == "hello"
        assert (await on.answer(on.one, here)).text == "Ada"
        began_meanwhile = await on.ask(on.one)
        assert (await on.answer(on.one, began_meanwhile)).text == "Ada"
        for _ in range(2):
            refused = await on.answer(on.other, there)
            assert (refused.status, refused.error["data"]) == (503, {"reason": "store", "retryable": True})
            assert refused.headers["Retry-After"] == "2"

        await on.redis.start()
        await on.one.until(store="up")
        await on.other.until(store="up")
        assert (await on.answer(on.other, there)).text == "Ada"
        assert (await on.answer(on.one, before)).text == "Ada"
        assert len(on.server.answers) == 4
        assert all(answer.was_awaited for answer in on.server.answers)


async def test_the_store_goes_away_while_a_retry_is_relayed() -> None:
    async with stage() as on:
        asked = await on.ask(on.one)
        retry = asyncio.create_task(on.answer(on.other, asked))
        await on.reached.wait()
        await on.redis.kill()
        refused = await retry
        assert (refused.status, refused.error["data"]["retryable"]) == (503, True)
        await on.redis.start()
        await on.one.until(store="up")
        await on.other.until(store="up")
        again = asyncio.create_task(on.answer(on.other, asked))
        on.goes_on.set()
        assert (await again).text == "Ada"
        assert on.server.executions == {"greet": 1}
        assert len(on.server.answers) == 1


async def test_a_replica_that_stood_still_is_overtaken_and_harms_nothing() -> None:
    async with stage() as on:
        asked = await on.ask(on.one)
        on.one.stop()
        retry = asyncio.create_task(on.answer(on.other, asked))
        await on.reached.wait()
        on.one.go_on()
        late = await on.answer(on.one, asked)
        assert late.error["message"] == "Invalid or expired request state"
        on.goes_on.set()
        assert (await retry).text == "Ada"
        assert on.server.executions == {"greet": 1}
        assert len(on.server.answers) == 1
        assert not on.server.cancelled


async def test_a_slow_replica_that_lives_is_not_overtaken() -> None:
    async with stage() as on:
        on.goes_on.set()
        asked = await on.ask(on.one)
        on.one.stop()
        retry = asyncio.create_task(on.answer(on.other, asked))
        await asyncio.sleep(2.5)  # shorter than a replica may be silent, longer than a relayer waits between looks
        assert not retry.done()
        on.one.go_on()
        assert (await retry).text == "Ada"
        assert len(on.server.answers) == 1
        assert (await on.one.readiness())[1]["suspended"] == 0


async def test_the_outcome_of_a_relay_is_kept_for_the_client_whose_replica_died() -> None:
    async with stage() as on:
        asked = await on.ask(on.one)
        retry = asyncio.create_task(on.answer(on.other, asked))
        await on.reached.wait()
        await on.other.kill()
        try:
            await retry
        except aiohttp.ClientError:
            pass
        else:
            raise AssertionError("the replica that died has answered")
        await on.other.start()
        again = asyncio.create_task(on.answer(on.other, asked))
        on.goes_on.set()
        assert (await again).text == "Ada"
        assert on.server.executions == {"greet": 1}
        assert len(on.server.answers) == 1
        assert not on.server.cancelled


async def test_an_owner_that_dies_over_a_relayed_retry_is_succeeded_while_the_client_waits() -> None:
    async with stage() as on:
        asked = await on.ask(on.one)
        retry = asyncio.create_task(on.answer(on.other, asked))
        await on.reached.wait()
        await on.one.kill()
        on.goes_on.set()
        assert (await retry).text == "Ada"
        assert on.server.executions == {"greet": 1}
        assert len(on.server.answers) == 1
