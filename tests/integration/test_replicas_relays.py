"""What passes between real replicas: much of it, in order, and the word that a client has left."""

import asyncio

import pytest

from tests.support.asking_server import AskingServer, Call
from tests.support.asking_tools import ELICIT, FORM, filled
from tests.support.redis_server import RedisServer
from tests.support.replicas import Replicas
from tests.support.round_client import RoundClient, notified
from tests.support.round_robin import RoundRobin

pytestmark = pytest.mark.replicas

ADA = {"elicitation_1": filled("Ada")}
LARGE = 2_000_000
NOTICES = 100
AT_ONCE = 6


async def test_large_results_and_what_is_told_on_the_way_arrive_whole_and_in_order() -> None:
    async with AskingServer() as server, RedisServer() as redis:

        @server.tool
        async def recount(call: Call) -> str:
            await call.ask(ELICIT, FORM)
            for number in range(NOTICES):
                call.progress(number)
                call.log("info", f"{call.arguments['key']} {number}")
            return str(call.arguments["key"]) * LARGE

        async with Replicas(redis.url, server.url) as replicas, RoundRobin(replicas.bases) as balancer:
            async with RoundClient(f"{balancer.url}/mcp", wait_s=60) as client:

                async def recounted(key: str) -> None:
                    asked = await client.call("recount", {"key": key})
                    wanted = notified(f"token-{key}", "info")
                    done = await client.call("recount", {"key": key}, answers=ADA, state=asked.state, meta=wanted)
                    assert done.text == key * LARGE
                    told = [note["params"].get("data", note["params"].get("progress")) for note in done.notifications]
                    assert told[::2] == list(range(NOTICES))
                    assert told[1::2] == [f"{key} {number}" for number in range(NOTICES)]
                    tokens = {note["params"].get("progressToken") for note in done.notifications}
                    assert tokens == {f"token-{key}", None}

                await asyncio.gather(*(recounted(str(number)) for number in range(AT_ONCE)))
            assert (await redis.commands())["xadd"] > NOTICES, "some of it was relayed"


async def test_a_client_that_leaves_ends_the_call_at_whatever_replica_it_is() -> None:
    reached = asyncio.Semaphore(0)
    async with AskingServer() as server, RedisServer() as redis:

        @server.tool
        async def linger(call: Call) -> str:
            await call.ask(ELICIT, FORM)
            reached.release()
            await asyncio.Event().wait()
            return "never"

        async with (
            Replicas(redis.url, server.url) as replicas,
            RoundRobin(replicas.bases) as balancer,
            RoundClient(f"{balancer.url}/mcp", wait_s=60) as client,
        ):
            arguments = [{"key": f"k{number}"} for number in range(AT_ONCE)]
            asked = [await client.call("linger", each) for each in arguments]
            retries = [
                asyncio.create_task(client.call("linger", each, answers=ADA, state=question.state))
                for each, question in zip(arguments, asked, strict=True)
            ]
            for _ in retries:
                await reached.acquire()
            for retry in retries:
                retry.cancel()
            await server.until(lambda: len(server.cancelled) == AT_ONCE and not server.running)
            await server.until(lambda: not server.sessions)
            for replica in replicas:
                await replica.until(suspended=0)
