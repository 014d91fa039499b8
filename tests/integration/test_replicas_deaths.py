"""Calls that outlive more than one death: of replica after replica, of all of them, and of who relays."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest

from gateway.wire.jsonrpc import JsonObject
from tests.support.asking_server import AskingServer, Call
from tests.support.asking_tools import ELICIT, FORM, filled
from tests.support.redis_server import RedisServer
from tests.support.replicas import Replica, Replicas
from tests.support.round_client import Reply, RoundClient
from tests.support.steadfast import may_be_sent_again

pytestmark = pytest.mark.replicas

BOUND_S = 30.0
ADA, BOB = {"elicitation_1": filled("Ada")}, {"elicitation_2": filled("Bob")}


class Scene:
    """One call, on a server that asks twice, and works in between for as long as it must."""

    def __init__(self, upstream: str, server: AskingServer, client: RoundClient) -> None:
        self.server = server
        self._upstream, self._client = upstream, client
        self.works = asyncio.Event()
        self.may_go_on = asyncio.Event()
        self.asked: Reply | None = None

        @server.tool
        async def greet(call: Call) -> str:
            first = await call.ask(ELICIT, FORM)
            self.works.set()
            await self.may_go_on.wait()
            second = await call.ask(ELICIT, FORM)
            return f"{first['content']['name']} and {second['content']['name']}"

    async def ask(self, replica: Replica) -> None:
        self.asked = await self._client.call("greet", url=f"{replica.url}/{self._upstream}")

    async def answer(self, replica: Replica, answers: JsonObject = ADA) -> Reply:
        """Send a retry, and send it again if told to."""
        assert self.asked is not None
        url = f"{replica.url}/{self._upstream}"
        async with asyncio.timeout(BOUND_S):
            while may_be_sent_again(  # noqa: ASYNC110 -- as a client waits
                reply := await self._client.call("greet", answers=answers, state=self.asked.state, url=url)
            ):
                await asyncio.sleep(0.1)
        return reply

    async def answer_in_vain(self, replica: Replica) -> None:
        """Send a retry, and have its connection broken while the server works."""
        with pytest.raises(aiohttp.ClientError):
            await self.answer(replica)

    async def ends_well(self, replica: Replica) -> None:
        """The same retry, sent again, is served, and so is the next one; nothing of it twice."""
        again = asyncio.create_task(self.answer(replica))
        self.may_go_on.set()
        self.asked = await again
        assert (await self.answer(replica, BOB)).text == "Ada and Bob"
        assert self.server.executions == {"greet": 1}
        assert [answer.was_awaited for answer in self.server.answers] == [True, True]
        assert not self.server.cancelled


@asynccontextmanager
async def scenes(**kinds: dict[str, bool]) -> AsyncIterator[tuple[Replicas, list[Scene]]]:
    """Three replicas, and a scene on each kind of server."""
    async with AsyncExitStack() as stack:
        servers = {name: await stack.enter_async_context(AskingServer(**kind)) for name, kind in kinds.items()}
        redis = await stack.enter_async_context(RedisServer())
        urls = {name: server.url for name, server in servers.items()}
        replicas = await stack.enter_async_context(Replicas(redis.url, urls))
        client = await stack.enter_async_context(RoundClient("", wait_s=30))
        yield replicas, [Scene(name, server, client) for name, server in servers.items()]


RESUMABLE = {"resumable": {"event_ids": True}, "polled": {"polled": True}}


async def together(steps: Iterable[Coroutine[object, object, None]]) -> None:
    await asyncio.gather(*steps)


async def kill_while_servers_work(cast: list[Scene], at: Replica, *victims: Replica) -> None:
    """Send the retries to a replica, and kill some while the servers work on them."""
    retries = asyncio.gather(*(scene.answer_in_vain(at) for scene in cast))
    for scene in cast:
        await scene.works.wait()
    await together(replica.kill() for replica in victims)
    await retries


async def test_a_call_outlives_one_replica_after_the_other() -> None:
    """The client comes back at once, when the second replica that died still counts as alive."""
    async with scenes(**RESUMABLE) as ((one, other, third), cast):
        await together(scene.ask(one) for scene in cast)
        await one.kill()
        await kill_while_servers_work(cast, other, other)
        await together(scene.ends_well(third) for scene in cast)


async def test_a_call_outlives_its_own_replica_and_the_one_that_relays() -> None:
    async with scenes(**RESUMABLE) as ((one, other, third), cast):
        await together(scene.ask(one) for scene in cast)
        await kill_while_servers_work(cast, other, one, other)
        await together(scene.ends_well(third) for scene in cast)


async def test_a_call_outlives_all_replicas() -> None:
    async with scenes(**RESUMABLE) as (replicas, cast):
        await together(scene.ask(replicas[0]) for scene in cast)
        await together(replica.kill() for replica in replicas)
        await together(replica.start() for replica in replicas)
        await together(scene.ends_well(replicas[0]) for scene in cast)


async def test_who_comes_back_after_its_relay_died_gets_the_outcome_at_any_other_replica() -> None:
    async with scenes(plain={}) as ((one, other, third), cast):
        await together(scene.ask(one) for scene in cast)
        await kill_while_servers_work(cast, other, other)
        await together(scene.ends_well(third) for scene in cast)
