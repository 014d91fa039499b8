"""Three replicas behind a balancer that knows nothing of rounds: every retry lands where it lands.

`REPLICA_CALLS` makes as many calls in place of the usual number.
"""

import asyncio
import itertools
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterator
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
async def cluster(
    *, event_ids: bool = False, **sections: Any
) -> AsyncIterator[tuple[AskingServer, RedisServer, Replicas, Steadfast]]:
    """A server, three replicas on one Redis, and a client in front of them; `sections` is configuration."""
    async with AskingServer(event_ids=event_ids) as server, RedisServer() as redis:

        @server.tool
        async def twice(call: Call) -> str:
            await call.ask(ELICIT, FORM)
            await call.ask(ELICIT, FORM)
            return "done"

        async with Replicas(redis.url, server.url, **sections) as replicas, RoundRobin(replicas.bases) as balancer:
            async with RoundClient(f"{balancer.url}/mcp", wait_s=60) as client:
                yield server, redis, replicas, Steadfast(client)


def keys(count: int) -> list[str]:
    return [f"call-{number}" for number in range(count)]


def keys_until(event: asyncio.Event) -> Iterator[str]:
    """Keys for as many calls as can be made until something has happened."""
    return itertools.takewhile(lambda _: not event.is_set(), (f"call-{number}" for number in itertools.count()))


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


async def kill_one_after_the_other(replicas: Replicas) -> None:
    """Kill each replica, and start it again: every few seconds one."""
    for replica in replicas:
        await asyncio.sleep(1.5)  # calls are made meanwhile
        await replica.kill()
        await asyncio.sleep(0.5)
        await replica.start()


@pytest.mark.parametrize("event_ids", [True, False], ids=["with event ids", "without"])
async def test_replicas_are_killed_while_calls_are_made(event_ids: bool) -> None:
    async with cluster(event_ids=event_ids) as (server, _redis, replicas, client):
        killed = asyncio.Event()
        calls = asyncio.ensure_future(client.calls("twice", keys_until(killed), IN_FLIGHT))
        await kill_one_after_the_other(replicas)
        killed.set()
        await calls
        ends = client.tally.ends
        assert ends["failed"] == 0, client.tally.failures[:3]
        assert (ends["lost"] == 0) is event_ids, ends
        assert ends["done"] > ends["lost"] + ends["unknown"]
        never_twice(server)


async def test_a_rolling_restart_fails_no_call() -> None:
    server = {"lame_duck": "500ms", "drain": "3s"}
    async with cluster(event_ids=True, server=server) as (upstream, _redis, replicas, client):
        restarted = asyncio.Event()
        calls = asyncio.ensure_future(client.calls("twice", keys_until(restarted), IN_FLIGHT))
        for replica in replicas:
            replica.terminate()
            assert await replica.ended() == 0
            await replica.start()
        restarted.set()
        await calls
        assert list(client.tally.ends) == ["done"], client.tally.failures[:3]
        assert client.tally.ends["done"] == len(upstream.executions)
        never_twice(upstream)
