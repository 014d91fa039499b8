"""gateway.upstream.pool: what no test over a socket can time, who gets a session that has just been opened."""

import asyncio
from dataclasses import dataclass
from typing import cast

import pytest

from gateway.core.session import SessionKey
from gateway.errors import UpstreamError
from gateway.upstream.background import Background
from gateway.upstream.legacy_session import LegacySession
from gateway.upstream.pool import PoolLimits, SessionPool
from gateway.upstream.turns import Turns


@dataclass(eq=False)
class FakeSession:
    """As much of a session as a pool looks at."""

    key: SessionKey
    in_flight: int = 0
    idle_since_s: float = 0.0
    is_dead: bool = False
    is_suspect: bool = False
    is_suspended: bool = False
    is_spent: bool = False
    is_exclusive: bool = False
    has_listener: bool = True

    async def leave(self) -> None:
        self.has_listener = False

    async def close(self) -> None:
        self.is_dead = True


@dataclass
class Clock:
    """Says what the test says."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


def key_of(name: str) -> SessionKey:
    return SessionKey(name, "", "")


def session_of(name: str) -> LegacySession:
    return cast(LegacySession, FakeSession(key_of(name)))


def pool_of(max_sessions: int, wait_s: float = 5.0) -> SessionPool:
    clock = asyncio.get_running_loop().time
    limits = PoolLimits(max_sessions=max_sessions, wait_s=wait_s)
    return SessionPool("docs", limits, Background(), clock, lambda session: session.close())


@pytest.mark.parametrize("exclusive", [True, False])
async def test_a_session_that_was_just_opened_is_not_taken_from_the_call_it_is_for(exclusive: bool) -> None:
    pool = pool_of(1)
    rivals: list[asyncio.Task[LegacySession]] = []

    async def open_rival() -> LegacySession:
        return session_of("rival")

    async def open_first() -> LegacySession:
        rivals.append(asyncio.create_task(pool.lease(key_of("rival"), open_rival, exclusive=True)))
        return session_of("first")

    first = await pool.lease(key_of("first"), open_first, exclusive=exclusive)
    assert not first.is_dead
    pool.release(first, clean=True)
    assert (await rivals[0]).key == key_of("rival")


async def test_a_call_that_cannot_wait_any_longer_is_told_so() -> None:
    pool = pool_of(1, wait_s=0)

    async def opener() -> LegacySession:
        return session_of("a")

    await pool.lease(key_of("a"), opener, exclusive=True)
    with pytest.raises(UpstreamError, match="'docs' has no session free; all 1 are at work"):
        await pool.lease(key_of("b"), opener, exclusive=True)


async def test_a_turn_that_comes_to_somebody_who_leaves_is_the_next_ones() -> None:
    turns = Turns()
    leaving, staying = (asyncio.create_task(turns.wait(5, "a")) for _ in range(2))
    await asyncio.sleep(0)
    turns.give()
    leaving.cancel()
    outcomes = await asyncio.gather(leaving, staying, return_exceptions=True)
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert outcomes[1] is True


async def test_nobody_waits_for_a_turn_for_ever() -> None:
    turns = Turns()
    assert await turns.wait(0, "a") is False
    turns.give()  # and nobody is left to take one
    assert await turns.wait(0, "a") is False


async def test_users_take_turns_however_many_calls_one_of_them_has_waiting() -> None:
    turns, served = Turns(), list[str]()

    async def wait(name: str) -> None:
        assert await turns.wait(5, name[0])
        served.append(name)

    waiting = [asyncio.create_task(wait(name)) for name in ("a1", "a2", "a3", "b1", "b2", "c1")]
    await asyncio.sleep(0)
    for _ in waiting:
        turns.give()
    await asyncio.gather(*waiting)
    assert served == ["a1", "b1", "c1", "a2", "b2", "a3"]
    assert len(turns) == 0


async def test_a_session_that_a_token_tells_of_serves_no_other_call_and_ends_a_little_later() -> None:
    clock, background = Clock(), Background()
    pool = SessionPool("docs", PoolLimits(max_sessions=2), background, clock, lambda session: session.close())

    async def opener() -> LegacySession:
        return session_of("a")

    spent = await pool.lease(key_of("a"), opener, exclusive=True)
    spent.is_spent = True
    pool.release(spent, clean=True)
    assert await pool.lease(key_of("a"), opener, exclusive=True) is not spent
    for clock.now_s, count in ((29.0, 2), (30.0, 1)):
        pool.sweep()
        assert len(pool) == count
    await background.close(1.0)
    assert spent.is_dead
    assert not cast(FakeSession, spent).has_listener


async def test_a_session_that_a_token_tells_of_makes_room_when_there_is_none() -> None:
    pool = pool_of(1)

    async def opener() -> LegacySession:
        return session_of("a")

    spent = await pool.lease(key_of("a"), opener, exclusive=True)
    spent.is_spent = True
    pool.release(spent, clean=True)
    assert await pool.lease(key_of("a"), opener, exclusive=True) is not spent
    assert len(pool) == 1


async def test_a_session_that_a_token_tells_of_is_left_to_others_when_the_process_ends() -> None:
    pool = pool_of(1)

    async def opener() -> LegacySession:
        return session_of("a")

    spent = await pool.lease(key_of("a"), opener, exclusive=True)
    spent.is_spent = True
    pool.release(spent, clean=True)
    await pool.close()
    assert spent.is_forgotten
