"""Three replicas behind a balancer that knows nothing of rounds: every retry lands where it lands.

`REPLICA_CALLS` makes as many calls in place of the usual number.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.support.asking_server import AskingServer, Call
from tests.support.asking_tools import ELICIT, FORM
from tests.support.redis_server import RedisServer
from tests.support.replicas import Replicas
from tests.support.round_client import RoundClient
from tests.support.round_robin import RoundRobin
from tests.support.steadfast import Steadfast

IN_FLIGHT = 64
CALLS = int(os.environ.get("REPLICA_CALLS", "1000"))


@asynccontextmanager
async def cluster(**how: Any) -> AsyncIterator[tuple[AskingServer, RedisServer, Replicas, Steadfast]]:
    """A server, three replicas on one Redis, and a client in front of them."""
    async with AskingServer(**how) as server, RedisServer() as redis:

        @server.tool
        async def twice(call: Call) -> str:
            await call.ask(ELICIT, FORM)
            await call.ask(ELICIT, FORM)
            return "done"

        async with Replicas(redis.url, server.url) as replicas, RoundRobin(replicas.bases) as balancer:
            async with RoundClient(f"{balancer.url}/mcp", wait_s=60) as client:
                yield server, redis, replicas, Steadfast(client)


def keys(count: int) -> list[str]:
    return [f"call-{number}" for number in range(count)]


def never_twice(server: AskingServer) -> None:
    """No call was made twice, and nothing was answered twice."""
    assert not {key: count for key, count in server.executions.items() if count > 1}
    assert not [answer for answer in server.answers if not answer.was_awaited]


async def test_a_thousand_calls_of_two_rounds_each() -> None:
    async with cluster() as (server, _redis, _replicas, client):
        await client.calls("twice", keys(CALLS), IN_FLIGHT)
        assert client.tally.ends == {"done": CALLS}, client.tally.failures[:3]
        assert server.executions == Counter(keys(CALLS))
        never_twice(server)


async def kill_now_and_then(replicas: Replicas, until: "asyncio.Task[None]") -> int:
    """Kill one replica after the other, and start it again, as long as calls are made."""
    killed = 0
    while not until.done():
        await asyncio.wait([until], timeout=2.0)
        if until.done():
            break
        replica = replicas[killed % len(replicas)]
        await replica.kill()
        await asyncio.wait([until], timeout=1.0)
        await replica.start()
        killed += 1
    await until
    return killed


@pytest.mark.parametrize("event_ids", [True, False], ids=["with event ids", "without"])
async def test_replicas_are_killed_while_calls_are_made(event_ids: bool) -> None:
    async with cluster(event_ids=event_ids) as (server, _redis, replicas, client):
        calls = asyncio.ensure_future(client.calls("twice", keys(CALLS), IN_FLIGHT))
        assert await kill_now_and_then(replicas, calls) >= 2
        ends = client.tally.ends
        assert sum(ends.values()) == CALLS
        assert ends["failed"] == 0, client.tally.failures[:3]
        never_twice(server)
        if event_ids:
            assert ends["lost"] == 0
        else:
            assert ends["lost"] > 0, "nothing was lost: the kills came too late"
        print(dict(ends), client.tally.turned_away)
