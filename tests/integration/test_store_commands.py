"""What replicas keep in the shared store, on a real one: claims, inboxes, and that all of it goes away."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from cryptography.fernet import Fernet, MultiFernet
from redis.asyncio import Redis

from gateway.core.claims import Claim, Stage
from gateway.core.relay import Cancel, Done, Message
from gateway.core.tokens import Sealer
from gateway.rounds.claims import Claims
from gateway.rounds.heartbeat import Heartbeat
from gateway.rounds.inbox import Inbox
from gateway.store.connection import SharedStore
from tests.support.leftovers import until
from tests.support.redis_server import RedisServer

SEALER = Sealer(MultiFernet([Fernet(Fernet.generate_key())]))


async def nothing() -> None:
    pass


@pytest.fixture
async def redis() -> AsyncIterator[RedisServer]:
    async with RedisServer() as server:
        yield server


@pytest.fixture
async def store(redis: RedisServer) -> AsyncIterator[SharedStore]:
    async with Redis.from_url(redis.url) as client:
        await client.flushdb()
    made = SharedStore(redis.url, "era-gateway")
    yield made
    await made.close()


async def test_a_claim_is_made_noted_taken_over_and_given_back(store: SharedStore) -> None:
    one, other = Claims(store, "one", 600), Claims(store, "other", 600)
    assert await one.take("h") is None
    assert await other.take("h") == Claim("one")
    await one.note("h", Stage.POSTED)
    posted = Claim("one", Stage.POSTED)
    assert await other.take_from(Claim("one"), "h") is None
    taken = await other.take_from(posted, "h")
    assert taken == Claim("other", Stage.POSTED)
    await one.give_back(posted, "h", to=None)
    assert await one.of("h") == taken
    await other.give_back(taken, "h", to=posted)
    await one.give_back(posted, "h", to=None)
    assert await one.of("h") is None


async def test_messages_small_and_large_arrive_in_order_and_what_was_read_is_dropped(
    redis: RedisServer, store: SharedStore
) -> None:
    received: list[Message] = []
    sender, reader = Inbox(store, "a", SEALER, received.append), Inbox(store, "b", SEALER, received.append)
    sent: list[Message] = [Done([str(number) * (100_000 if number % 3 == 0 else 1)]) for number in range(9)]
    for message in sent:
        await sender.send(message, "b")
    reading = asyncio.create_task(reader.read())
    await until(lambda: len(received) == len(sent))
    await reader.tidy()
    reading.cancel()
    await asyncio.wait([reading])
    assert received == sent
    async with Redis.from_url(redis.url) as client:
        assert await client.xlen(store.key("inbox", "b")) == 0
        assert await client.keys(store.key("body", "*")) == []


async def test_everything_that_a_replica_leaves_goes_away_by_itself(redis: RedisServer, store: SharedStore) -> None:
    inbox = Inbox(store, "a", SEALER, lambda _message: None)
    await inbox.send(Cancel("r"), "dead")
    await inbox.send(Done(["x" * 100_000]), "dead")
    await Claims(store, "a", 600).take("h")
    await Claims(store, "b", 600).take_from(Claim("a"), "h")
    await Heartbeat(store, "a", nothing, lambda: 0.0).beat()
    async with Redis.from_url(redis.url) as client:
        keys = await client.keys("*")
        assert len(keys) == 4
        assert [key for key in keys if await client.ttl(key) < 0] == []
