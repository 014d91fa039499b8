"""The heartbeat: who lives, who is dead, and when that cannot be told."""

import asyncio
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from gateway.rounds import heartbeat as module
from gateway.rounds.heartbeat import SETTLED_S, TTL_S, Heartbeat
from gateway.store.connection import Argument, SharedStore
from gateway.store.down import StoreDown
from tests.support.leftovers import until
from tests.support.store_in_memory import StoreInMemory


class Replica:
    def __init__(self, store: StoreInMemory, name: str) -> None:
        self.lapses = 0
        self.heartbeat = Heartbeat(cast(SharedStore, store), name, self._lapse, lambda: store.now_s)

    async def _lapse(self) -> None:
        self.lapses += 1


@pytest.fixture
def store() -> StoreInMemory:
    return StoreInMemory()


async def settled(store: StoreInMemory, name: str = "a") -> Replica:
    replica = Replica(store, name)
    await replica.heartbeat.beat()
    store.now_s += SETTLED_S
    await replica.heartbeat.beat()
    return replica


async def test_who_beats_lives_until_it_has_been_silent_for_long_enough(store: StoreInMemory) -> None:
    one, other = await settled(store, "a"), await settled(store, "b")
    await one.heartbeat.beat()
    store.now_s += TTL_S - 0.1
    await other.heartbeat.beat()
    assert not await other.heartbeat.is_dead("a")
    store.now_s += 0.2
    assert await other.heartbeat.is_dead("a")


async def test_the_first_beat_is_no_lapse(store: StoreInMemory) -> None:
    assert (await settled(store)).lapses == 0


async def test_who_was_taken_for_dead_asks_before_it_shows_itself(store: StoreInMemory) -> None:
    replica = await settled(store)
    store.now_s += TTL_S + 1
    await replica.heartbeat.beat()
    assert replica.lapses == 1


async def test_who_cannot_ask_does_not_show_itself_and_asks_again(store: StoreInMemory) -> None:
    replica = await settled(store)
    store.now_s += TTL_S + 1

    async def cannot() -> None:
        replica.lapses += 1
        raise StoreDown

    replica.heartbeat._on_lapse = cannot
    with capture_logs() as logs:
        for lapses in (1, 2):
            with pytest.raises(StoreDown):
                await replica.heartbeat.beat()
            assert replica.lapses == lapses
            assert store.keys() == []
    assert len(logs) == 1


async def test_who_is_out_of_sight_knows_it(store: StoreInMemory) -> None:
    replica = await settled(store)
    assert replica.heartbeat.is_seen
    store.turn(is_up=False)
    store.now_s += TTL_S
    assert not replica.heartbeat.is_seen
    store.turn(is_up=True)
    await replica.heartbeat.beat()
    assert replica.heartbeat.is_seen


async def test_nobody_is_dead_because_the_store_was_emptied(store: StoreInMemory) -> None:
    replica = await settled(store)
    store.clear()
    with pytest.raises(StoreDown):
        await replica.heartbeat.is_dead("b")
    await replica.heartbeat.beat()
    with pytest.raises(StoreDown):
        await replica.heartbeat.is_dead("b")
    store.now_s += SETTLED_S
    assert await replica.heartbeat.is_dead("b")


async def test_nobody_is_dead_because_the_store_was_away(store: StoreInMemory) -> None:
    replica = await settled(store)
    store.turn(is_up=False)
    store.turn(is_up=True)
    with pytest.raises(StoreDown):
        await replica.heartbeat.is_dead("b")


async def test_who_stops_is_dead_at_once_and_a_store_that_is_away_does_not_matter(store: StoreInMemory) -> None:
    one, other = await settled(store, "a"), await settled(store, "b")
    await other.heartbeat.stop()
    assert await one.heartbeat.is_dead("b")
    store.turn(is_up=False)
    await one.heartbeat.stop()


async def test_a_heartbeat_that_fails_goes_on_and_is_logged_once(
    store: StoreInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_command: Argument) -> Any:
        tried.append(1)
        raise RuntimeError

    tried: list[int] = []
    monkeypatch.setattr(module, "BEAT_S", 0.001)
    replica = await settled(store)
    monkeypatch.setattr(store, "probe", fail)
    with capture_logs() as logs:
        beating = asyncio.create_task(replica.heartbeat.run())
        await until(lambda: len(tried) > 5)
        beating.cancel()
        await asyncio.wait([beating])
    assert [log["event"] for log in logs] == ["heartbeat failed"]
