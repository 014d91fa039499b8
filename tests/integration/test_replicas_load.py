"""Three replicas under load, behind a balancer that knows nothing of rounds, while things happen to them.

`REPLICA_CALLS` makes as many calls in place of the usual number, `REPLICA_ROUNDS` has things happen so many times.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.support.asking_server import AskingServer
from tests.support.cluster import Cluster, calls_until, cluster, keys

pytestmark = pytest.mark.replicas

IN_FLIGHT = 64
CALLS = int(os.environ.get("REPLICA_CALLS", "1000"))
ROUNDS = int(os.environ.get("REPLICA_ROUNDS", "1"))
THINK_S = 1.0
"""Where things happen meanwhile: most calls are suspended when they do."""


@asynccontextmanager
async def under_load(on: Cluster) -> AsyncIterator[None]:
    """Calls are made for as long as the block lasts, and come to their ends; then nothing is left over."""
    is_over = asyncio.Event()
    calls = asyncio.ensure_future(calls_until(is_over, on.clients.values(), IN_FLIGHT // len(on.clients)))
    try:
        await on.made(IN_FLIGHT)
        yield
    except BaseException:
        calls.cancel()  # they may wait for what the test has stopped
        raise
    is_over.set()
    await calls
    on.check()
    await on.at_rest()


def ends(on: Cluster, name: str) -> Counter[str]:
    return on.clients[name].tally.ends


async def test_a_thousand_calls_of_two_rounds_each() -> None:
    async with cluster(docs=AskingServer()) as on:
        await on.clients["docs"].calls("twice", keys(CALLS), IN_FLIGHT)
        assert ends(on, "docs") == {"done": CALLS}, on.clients["docs"].tally.failures[:3]
        assert on.servers["docs"].executions == Counter(keys(CALLS))
        on.check()
        assert (await on.redis.commands())["xadd"] > CALLS, "most retries landed on another replica"
        assert min(on.balancer.served.values()) > CALLS / 2
        await on.at_rest()


async def test_replicas_are_killed_one_after_the_other() -> None:
    servers = {
        "resumable": AskingServer(event_ids=True),
        "polled": AskingServer(polled=True),
        "plain": AskingServer(),
    }
    async with cluster(think_s=THINK_S, **servers) as on:
        async with under_load(on):
            for replica in on.replicas * ROUNDS:
                await on.made(60)
                await replica.kill()
                await on.made(20)
                await replica.start()
        for name, server in servers.items():
            has_event_ids = name != "plain"
            assert (ends(on, name)["lost"] == 0) is has_event_ids, ends(on, name)
            assert (server.resumptions > 0) is has_event_ids
            assert ends(on, name)["done"] > ends(on, name)["lost"] + ends(on, name)["unknown"]
            await server.until(lambda server=server, name=name: len(server.running) <= ends(on, name)["unknown"])


async def test_a_rolling_restart_fails_no_call() -> None:
    options = {"server": {"lame_duck": "300ms", "drain": "1s"}}
    servers = {"resumable": AskingServer(event_ids=True), "polled": AskingServer(polled=True)}
    async with cluster(options=options, think_s=THINK_S, **servers) as on:
        async with under_load(on):
            for replica in on.replicas * ROUNDS:
                replica.terminate()
                assert await replica.ended() == 0
                await replica.start()
        for name, server in servers.items():
            assert ends(on, name) == {"done": server.executions.total()}
            assert server.resumptions > 0, "rounds were handed over"


async def test_the_store_is_stopped_and_started_and_no_call_is_lost() -> None:
    async with cluster(think_s=THINK_S, plain=AskingServer(), resumable=AskingServer(event_ids=True)) as on:
        async with under_load(on):
            for _ in range(ROUNDS):
                await on.redis.stop()
                for replica in on.replicas:
                    await replica.until(store="down", ready=True)
                plain = [on.http.call("hello", url=f"{base}/mcp/plain") for base in on.replicas.bases]
                assert [reply.text for reply in await asyncio.gather(*plain)] == ["hello"] * 3
                await on.made(IN_FLIGHT // 2)  # rounds whose retries land where they began go on
                await on.redis.start()
                for replica in on.replicas:
                    await replica.until(store="up")
                await on.made(IN_FLIGHT)
        for name, server in on.servers.items():
            assert ends(on, name).total() == server.executions.total() - (3 * ROUNDS if name == "plain" else 0)
            assert set(ends(on, name)) == {"done"}, ends(on, name)
            assert on.clients[name].tally.turned_away > 0


async def test_a_replica_stands_still_and_wakes_and_no_call_has_two_owners() -> None:
    async with cluster(think_s=THINK_S, resumable=AskingServer(event_ids=True)) as on:
        server = on.servers["resumable"]
        async with under_load(on):
            for replica in on.replicas[:ROUNDS]:
                before = server.resumptions
                await replica.until_it_keeps(IN_FLIGHT // 8)
                replica.stop()
                await server.until(lambda before=before: server.resumptions > before)
                replica.go_on()
                await replica.until(ready=True)
                await on.made(IN_FLIGHT)
        assert ends(on, "resumable") == {"done": server.executions.total()}
        assert not server.cancelled
