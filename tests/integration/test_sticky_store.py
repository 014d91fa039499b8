"""gateway.store.sticky on a real Redis, as a user who may do no more than the gateway's should."""

from collections.abc import AsyncIterator

import pytest
from cryptography.fernet import Fernet, MultiFernet
from redis.asyncio import Redis

from gateway.core.sticky import Entry
from gateway.core.tokens import Sealer
from gateway.store.connection import SharedStore
from gateway.store.sticky import StickyStore
from tests.support.redis_server import RedisServer

RIGHTS = (
    "on >word ~era-gateway:* resetchannels -@all +@connection +@string +@hash +@stream +@keyspace +eval -@dangerous"
)
KEY = Fernet.generate_key()
LOCK_S, KEEP_S = 15.0, 600.0
NAME = "a-session"


@pytest.fixture
async def redis() -> AsyncIterator[RedisServer]:
    async with RedisServer("--user", "gateway", *RIGHTS.split()) as redis:
        yield redis


@pytest.fixture
async def stores(redis: RedisServer) -> AsyncIterator[list[StickyStore]]:
    """Two replicas, and one whose upstream is another."""
    url = redis.url.replace("redis://", "redis://gateway:word@")
    connections = [SharedStore(url, "era-gateway") for _ in range(3)]
    sealer = Sealer(MultiFernet([Fernet(KEY)]))
    yield [StickyStore(at, sealer, up) for at, up in zip(connections, ("docs", "docs", "notes"), strict=True)]
    for connection in connections:
        await connection.close()


async def claim(store: StickyStore, dead: str = "") -> Entry:
    return await store.claim(NAME, dead=dead, lock_s=LOCK_S, keep_s=KEEP_S)


async def opened(store: StickyStore, data: bytes = b"session") -> str:
    entry = await claim(store)
    assert await store.publish(NAME, entry.stamp, data, keep_s=KEEP_S)
    return entry.stamp


async def expires_s(redis: RedisServer) -> float:
    async with Redis.from_url(redis.url) as client:
        return float(await client.pttl(f"era-gateway:sticky:docs:{NAME}")) / 1000


async def test_one_of_two_gets_the_lock_and_the_other_sees_it(redis: RedisServer, stores: list[StickyStore]) -> None:
    one, other, elsewhere = stores
    mine = await claim(one)
    assert (mine.is_mine, mine.data) == (True, None)
    theirs = await claim(other)
    assert (theirs.stamp, theirs.is_mine, theirs.data) == (mine.stamp, False, None)
    assert (await claim(elsewhere)).is_mine
    assert 0 < await expires_s(redis) <= LOCK_S


async def test_what_was_opened_is_found_and_is_no_longer_one_replicas(
    redis: RedisServer, stores: list[StickyStore]
) -> None:
    one, other, _ = stores
    stamp = await opened(one)
    assert await claim(one) == Entry(stamp, b"session", is_sole=True)
    assert await one.is_sole(NAME, stamp)
    assert await claim(other) == Entry(stamp, b"session")
    assert not await one.is_sole(NAME, stamp)
    assert LOCK_S < await expires_s(redis) <= KEEP_S


async def test_what_is_known_to_be_dead_makes_room_for_exactly_one(stores: list[StickyStore]) -> None:
    one, other, _ = stores
    dead = await opened(one)
    mine = await claim(one, dead)
    assert mine.is_mine
    assert not (await claim(other, dead)).is_mine
    assert await one.publish(NAME, mine.stamp, b"next", keep_s=KEEP_S)
    assert (await claim(other, dead)).data == b"next"


async def test_a_lock_that_was_lost_or_given_up_opens_nothing(stores: list[StickyStore]) -> None:
    one, other, _ = stores
    mine = await claim(one)
    await other.release(NAME, "not-its-stamp-of-22-ch")
    assert not await one.publish(NAME, "another-stamp-of-22-ch", b"x", keep_s=KEEP_S)
    await one.release(NAME, mine.stamp)
    assert not await one.publish(NAME, mine.stamp, b"x", keep_s=KEEP_S)
    stamp = await opened(other)
    await one.release(NAME, stamp)  # what is open is no lock
    assert not await one.publish(NAME, stamp, b"x", keep_s=KEEP_S)
    assert (await claim(one)).data == b"session"


async def test_use_is_told_and_tells_what_is_there_now(redis: RedisServer, stores: list[StickyStore]) -> None:
    one, other, _ = stores
    assert await one.touch(NAME, "", keep_s=KEEP_S) is None
    stamp = await opened(one)
    told = await other.touch(NAME, stamp, keep_s=2 * KEEP_S)
    assert told is not None
    assert told.stamp == stamp
    assert await expires_s(redis) > KEEP_S
    assert await other.touch(NAME, "another-stamp-of-22-ch", keep_s=1) == Entry(stamp, b"session")
    assert await expires_s(redis) > KEEP_S


async def test_an_entry_is_taken_out_by_one_and_only_when_it_was_quiet(stores: list[StickyStore]) -> None:
    one, other, _ = stores
    stamp = await opened(one)
    early_s = await one.end(NAME, stamp, left_s=KEEP_S / 2)
    assert early_s is not None
    assert KEEP_S / 2 - 60 < early_s <= KEEP_S / 2
    assert await one.end(NAME, "another-stamp-of-22-ch", left_s=KEEP_S) is None
    assert await one.end(NAME, stamp, left_s=KEEP_S) == 0.0
    assert await other.end(NAME, stamp, left_s=KEEP_S) is None


async def test_what_was_sealed_with_other_keys_is_there_but_cannot_be_read(stores: list[StickyStore]) -> None:
    one, other, _ = stores
    await opened(one)
    other._sealer = Sealer(MultiFernet([Fernet(Fernet.generate_key())]))
    assert (await claim(other)).data == b""
