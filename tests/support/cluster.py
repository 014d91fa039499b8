"""Servers, three replicas on one Redis, a load balancer that knows nothing of rounds, and clients that do not give up.

async with cluster(plain=AskingServer(), resumable=AskingServer(event_ids=True)) as on:
    await on.clients["plain"].calls("twice", keys, 64)
    assert on.clients["plain"].tally.ends == {"done": len(keys)}
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from tests.support.asking_server import AskingServer, Call
from tests.support.asking_tools import ELICIT, FORM
from tests.support.redis_server import RedisServer
from tests.support.replicas import Replicas
from tests.support.round_client import RoundClient
from tests.support.round_robin import RoundRobin
from tests.support.steadfast import Steadfast

_BOUND_S: Final = 30.0


async def once(call: Call) -> str:
    """Asks once."""
    await call.ask(ELICIT, FORM)
    return "done"


async def twice(call: Call) -> str:
    """Asks twice, one after the other."""
    await call.ask(ELICIT, FORM)
    await call.ask(ELICIT, FORM)
    return "done"


async def hello(_call: Call) -> str:
    """Asks nothing."""
    return "hello"


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a test acts upon.

    Args:
        servers: by the name of their upstream.
        clients: one for each of them.
        redis: the store.
        replicas: three.
        balancer: in front of them.
        http: a client of single requests.
    """

    servers: dict[str, AskingServer]
    clients: dict[str, Steadfast]
    redis: RedisServer
    replicas: Replicas
    balancer: RoundRobin
    http: RoundClient

    async def made(self, more: int) -> None:
        """Wait until so many more calls have been made."""
        before = self._executed
        async with asyncio.timeout(_BOUND_S):
            while self._executed < before + more:  # noqa: ASYNC110 -- several servers
                await asyncio.sleep(0.02)

    async def at_rest(self) -> None:
        """Wait until no replica keeps anything."""
        for replica in self.replicas:
            await replica.until(suspended=0)

    def check(self) -> None:
        """No call was made twice, nothing was answered twice, and what ended as done was made."""
        for name, server in self.servers.items():
            assert not {key: count for key, count in server.executions.items() if count > 1 and key != "hello"}
            assert not [answer for answer in server.answers if not answer.was_awaited]
            ends = self.clients[name].ends
            assert not {key for key, end in ends.items() if end == "done"} - set(server.executions)
            assert self.clients[name].tally.ends["failed"] == 0, self.clients[name].tally.failures[:3]

    @property
    def _executed(self) -> int:
        return sum(server.executions.total() for server in self.servers.values())


@asynccontextmanager
async def cluster(
    *, options: dict[str, Any] | None = None, think_s: float = 0.0, **servers: AskingServer
) -> AsyncIterator[Cluster]:
    """Have all of it up and running.

    Args:
        options: sections of the replicas' configuration.
        think_s: how long users think about a question.
        servers: by the name of their upstream.
    """
    async with AsyncExitStack() as stack:
        for server in servers.values():
            await stack.enter_async_context(server)
            for tool in (once, twice, hello):
                server.tool(tool)
        redis = await stack.enter_async_context(RedisServer())
        urls = {name: server.url for name, server in servers.items()}
        replicas = await stack.enter_async_context(Replicas(redis.url, urls, **(options or {})))
        balancer = await stack.enter_async_context(RoundRobin(replicas.bases))
        http = await stack.enter_async_context(RoundClient(f"{balancer.url}/mcp", wait_s=60))
        clients = {name: Steadfast(http, f"{balancer.url}/mcp/{name}", think_s=think_s) for name in servers}
        yield Cluster(servers, clients, redis, replicas, balancer, http)


def keys(count: int) -> list[str]:
    """Names of so many calls."""
    return [f"call-{number}" for number in range(count)]


async def calls_until(event: asyncio.Event, clients: Iterable[Steadfast], in_flight: int) -> Counter[str]:
    """Make calls of two rounds, so many at a time with each client, until something has happened; how they ended."""
    clients = list(clients)

    def names() -> Iterable[str]:
        number = 0
        while not event.is_set():
            yield f"call-{(number := number + 1)}"

    await asyncio.gather(*(client.calls("twice", names(), in_flight) for client in clients))
    return sum((client.tally.ends for client in clients), Counter())
