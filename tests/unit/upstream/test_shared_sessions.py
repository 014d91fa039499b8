"""gateway.upstream.shared_sessions: replicas agree on one session, and end none that anybody uses."""

import asyncio
import random
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from gateway.core.session import SessionKey
from gateway.core.sticky import SharingTimes, encode_session, name_of
from gateway.errors import UpstreamError
from gateway.upstream import left_sessions
from gateway.upstream.background import Background
from gateway.upstream.legacy_session import LegacySession
from gateway.upstream.pool import SessionPool
from gateway.upstream.pool_limits import PoolLimits
from gateway.upstream.shared_sessions import StickySharing
from tests.support.sticky_model import NEGOTIATED, Clock, ModelServer, ModelStore, ReplicaStore

IDLE_S = 100.0
KEY = SessionKey("alice", "", "{}")
SERVER = "https://u.example/mcp"
NAME = name_of(SERVER, KEY)
TIMES = SharingTimes(IDLE_S, 10.0)


@dataclass
class World:
    """A server, a store, and replicas, with one clock."""

    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.store = ModelStore(self.clock)
        self.server = ModelServer(self.clock)

    def replica(self, max_sessions: int = 8) -> "Replica":
        """One more."""
        return Replica(self, max_sessions)


class Replica:
    """A pool of sticky sessions, as `LegacySessions` puts it together."""

    def __init__(self, world: World, max_sessions: int) -> None:
        self.world = world
        self.background = Background()
        self.store = world.store.for_replica()
        self.sharing = StickySharing(
            "docs", SERVER, self.store, TIMES, lambda session_id: session_id == "tied", self.background, world.clock
        )
        limits = PoolLimits("sticky", max_sessions, IDLE_S)
        self.pool = SessionPool("docs", limits, self.background, world.clock, self.sharing.end)

    async def lease(self, key: SessionKey = KEY, *, fresh: bool = False) -> LegacySession:
        """A session to make a call on."""

        async def open_one() -> LegacySession:
            return self.world.server.open(key)

        async def obtain() -> LegacySession:
            return await self.sharing.obtain(key, open_one, lambda *known: self.world.server.session(key, *known))

        session = await self.pool.lease(key, obtain, exclusive=False, fresh=fresh)
        self.sharing.note_use(session)
        return session

    async def call(self, key: SessionKey = KEY) -> str:
        """Make a call, on the next session if the first is expired; says in which."""
        for fresh in (False, True, True):
            session = await self.lease(key, fresh=fresh)
            is_known = self.world.server.use(str(session.id))
            if not is_known:
                session.is_dead = session.is_forgotten = True
            self.pool.release(session, clean=True)
            await self.settle()
            if is_known:
                return str(session.id)
        raise AssertionError("expired three times")

    async def sweep(self) -> None:
        """What is done every few seconds."""
        self.pool.sweep()
        self.sharing.sweep()
        await self.settle()

    async def settle(self) -> None:
        """Wait for the background."""
        await self.background.close(10.0)


async def test_the_store_is_told_of_use_every_quarter_of_idle_and_not_in_between() -> None:
    world = World()
    one, other = world.replica(), world.replica()
    assert await one.call() == await other.call() == "sess-1"
    assert world.store.commands == 3  # a claim and what was opened; a claim
    for passed_s in (0.0, TIMES.touch_s - 1, 2.0, 1.0, TIMES.touch_s - 2):
        world.clock.now_s += passed_s
        await one.call()
    assert world.store.commands == 4
    world.clock.now_s += 2
    await one.call()
    assert world.store.commands == 5


async def test_a_replica_that_lost_its_lock_takes_the_session_that_was_opened_meanwhile() -> None:
    world = World()
    one, other = world.replica(), world.replica()

    async def open_slowly() -> LegacySession:
        world.clock.now_s += TIMES.lock_s + 1
        await other.call()
        return world.server.open(KEY)

    session = await one.sharing.obtain(KEY, open_slowly, lambda *known: world.server.session(KEY, *known))
    await one.settle()
    assert session.id == "sess-1"
    assert [ended for ended, _ in world.server.ended] == ["sess-2"]


async def test_a_session_that_could_not_be_told_of_is_told_of_later(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    one, other = world.replica(), world.replica()

    async def open_then_lose_the_store() -> LegacySession:
        world.store.is_down = True
        return world.server.open(KEY)

    session = await one.sharing.obtain(KEY, open_then_lose_the_store, lambda *_: pytest.fail("no other"))
    world.store.is_down = False
    world.clock.now_s += TIMES.lock_s + 1  # its own lock is in the way for so long
    one.sharing.note_use(session)
    await one.settle()
    assert await other.call() == session.id == "sess-1"


async def test_a_replica_that_takes_too_long_is_not_waited_for_for_ever() -> None:
    world = World()
    one = world.replica()

    async def wait_in_vain() -> None:
        await world.store.for_replica().claim(NAME, dead="", lock_s=10_000, keep_s=1)
        with pytest.raises(UpstreamError, match="by another replica") as caught:
            await one.sharing.obtain(KEY, cast(Any, pytest.fail), cast(Any, pytest.fail))
        assert (caught.value.reason, caught.value.retryable) == ("timeout", True)

    waiting = asyncio.create_task(wait_in_vain())
    await asyncio.sleep(0)
    world.clock.now_s += 2 * TIMES.lock_s
    await waiting


async def test_a_pool_that_closes_waits_for_no_other_replica() -> None:
    world = World()
    one = world.replica()
    await world.store.for_replica().claim(NAME, dead="", lock_s=10_000, keep_s=1)
    waiting = asyncio.create_task(one.call())
    await asyncio.sleep(0)
    one.sharing.close()
    with pytest.raises(UpstreamError):
        await waiting


@pytest.mark.parametrize("session_id", [None, "tied"])
async def test_a_session_that_others_could_not_use_is_not_told_of(session_id: str | None) -> None:
    world = World()
    one = world.replica()

    async def open_one() -> LegacySession:
        return world.server.session(KEY, cast(str, session_id), NEGOTIATED)

    session = await one.sharing.obtain(KEY, open_one, cast(Any, pytest.fail))
    await one.settle()
    assert session.share is None
    assert world.store.rows == {}


async def test_sessions_that_were_left_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(left_sessions, "_MOST", 3)
    world = World()
    one = world.replica(max_sessions=1)
    for number in range(6):
        await one.call(KEY._replace(affinity=str(number)))
    assert len(one.sharing._left) == 3
    assert len(one.pool) == 1
    assert len(one.sharing._latest) == 1
    assert world.server.ended == []


async def test_dead_sessions_are_not_remembered_for_ever() -> None:
    world = World()
    one = world.replica()
    for number in range(5):
        session = await one.lease(KEY._replace(affinity=str(number)))
        session.is_dead = session.is_forgotten = True
        one.pool.release(session, clean=True)
    await one.settle()
    assert len(one.sharing._latest) == 5
    world.clock.now_s += 2 * TIMES.keep_s
    await one.sweep()
    assert len(one.sharing._latest) == 0


async def test_a_replica_that_finds_its_session_told_of_anew_says_that_it_uses_it_too() -> None:
    world = World()
    one, other = world.replica(), world.replica()
    assert await one.call() == await other.call() == "sess-1"
    world.store.rows.clear()
    world.clock.now_s += TIMES.touch_s
    held = await one.lease()
    await one.settle()
    assert not await one.sharing.is_alone(held, is_question=True)
    world.clock.now_s += TIMES.touch_s
    await other.call()
    (row,) = world.store.rows.values()
    assert row.until_s == world.clock() + TIMES.keep_s


async def test_a_replica_is_alone_with_a_session_until_another_one_has_come_by_it() -> None:
    world = World()
    one, other = world.replica(), world.replica()
    held = await one.lease()
    commands = world.store.commands
    assert await one.sharing.is_alone(held, is_question=False)
    assert world.store.commands == commands  # a log message is not worth a command each
    await other.call()
    assert not await one.sharing.is_alone(held, is_question=True)
    assert not await one.sharing.is_alone(held, is_question=False)
    world.store.is_down = True
    assert not await one.sharing.is_alone(held, is_question=True)
    alone = await one.lease(KEY._replace(affinity="opened without the store"))
    assert await one.sharing.is_alone(alone, is_question=True)


async def test_an_entry_that_was_put_under_another_name_is_not_taken() -> None:
    world = World()
    one = world.replica()
    store: ReplicaStore = world.store.for_replica()
    entry = await store.claim(NAME, dead="", lock_s=1, keep_s=1)
    await store.publish(NAME, entry.stamp, encode_session("other", "sess-of-bob", NEGOTIATED), keep_s=100)
    assert await one.call() == "sess-1"


@pytest.mark.parametrize("seed", range(16))
async def test_whatever_happens_no_session_is_ended_that_was_used_and_replicas_agree(seed: int) -> None:
    """Calls, pauses, restarts, a server that forgets, a store that comes and goes and loses everything: at random."""
    chance, world = random.Random(seed), World()  # noqa: S311 -- repeatable, guards nothing
    replicas = [world.replica(max_sessions=2) for _ in range(3)]
    keys = [KEY._replace(affinity=name) for name in "abc"]
    has_been_down = False
    for _ in range(200):
        replica = chance.choice(replicas)
        match chance.choices(
            ["call", "pass", "sweep", "forget", "restart", "store"], [40, 25, 25, 2, 2, 3 if seed % 2 else 0]
        )[0]:
            case "call":
                await replica.call(chance.choice(keys))
            case "pass":
                world.clock.now_s += chance.choice([1.0, 5.0, 20.0, IDLE_S, 3 * IDLE_S])
            case "sweep":
                for each in replicas:
                    await each.sweep()
            case "forget":
                world.server.sessions.clear()
            case "restart":
                await replica.pool.close()
                await replica.settle()
                replicas[replicas.index(replica)] = world.replica(max_sessions=2)
            case "store":
                has_been_down = True
                world.store.is_down = not world.store.is_down
                if chance.random() < 0.5:
                    world.store.rows.clear()
    if not has_been_down:
        assert [idle_s for _, idle_s in world.server.ended if idle_s < IDLE_S] == []
    world.store.is_down = False
    for _ in range(3):
        world.clock.now_s += TIMES.touch_s + TIMES.lock_s
        for replica in replicas:
            await replica.call(keys[0])
    assert len({await replica.call(keys[0]) for replica in replicas}) == 1
