"""Taking over from a dead replica: once, by one, and not from somebody who lives."""

import asyncio
from typing import cast

import pytest

from gateway.core.claims import Claim, OwnerLost, Stage
from gateway.errors import ProtocolError
from gateway.rounds.claims import Claims
from gateway.rounds.heartbeat import SETTLED_S, Heartbeat
from gateway.rounds.succession import Succession
from gateway.store.connection import SharedStore
from gateway.store.down import StoreDown
from tests.support.store_in_memory import StoreInMemory


async def nothing() -> None:
    pass


class Replica:
    def __init__(self, store: StoreInMemory, name: str) -> None:
        shared = cast(SharedStore, store)
        self.claims = Claims(shared, name, 600)
        self.heartbeat = Heartbeat(shared, name, nothing, lambda: store.now_s)
        self.succession = Succession(self.claims, self.heartbeat, name, 600, lambda: store.now_s)


@pytest.fixture
async def store() -> StoreInMemory:
    return StoreInMemory()


async def replica(store: StoreInMemory, name: str) -> Replica:
    """One that has been there for a while."""
    made = Replica(store, name)
    await made.heartbeat.beat()
    store.now_s += SETTLED_S
    await made.heartbeat.beat()
    return made


async def lost_owner(made: Replica, owner: str = "dead") -> OwnerLost:
    with pytest.raises(OwnerLost) as event:
        await made.succession.seize("h", owner)
    return event.value


async def test_a_round_that_nobody_claimed_has_had_no_answers(store: StoreInMemory) -> None:
    ours = await replica(store, "a")
    assert (await lost_owner(ours)).is_posted is False
    assert await ours.claims.of("h") == Claim("a")


async def test_of_two_copies_at_once_one_takes_it_over(store: StoreInMemory) -> None:
    ours = await replica(store, "a")
    copies = await asyncio.gather(*(ours.succession.seize("h", "dead") for _ in range(5)), return_exceptions=True)
    assert sum(isinstance(end, OwnerLost) for end in copies) == 1
    assert sum(isinstance(end, ProtocolError) and end.reason == "used or expired" for end in copies) == 4


@pytest.mark.parametrize(("stage", "is_posted"), [(Stage.CLAIMED, None), (Stage.POSTED, True)])
async def test_what_the_dead_one_noted_is_known(store: StoreInMemory, stage: Stage, is_posted: bool | None) -> None:
    dead = Claims(cast(SharedStore, store), "dead", 600)
    await dead.take("h")
    await dead.note("h", stage)
    assert (await lost_owner(await replica(store, "a"))).is_posted is is_posted


async def test_a_takeover_that_did_not_hear_of_itself_goes_on_and_forgets_nothing(store: StoreInMemory) -> None:
    dead = Claims(cast(SharedStore, store), "dead", 600)
    await dead.take("h")
    await dead.note("h", Stage.POSTED)
    ours = await replica(store, "a")
    store.lose("EVAL", executed=True)
    with pytest.raises(StoreDown):
        await ours.succession.seize("h", "dead")
    assert (await lost_owner(ours)).is_posted is True


@pytest.mark.parametrize("executed", [False, True])
async def test_a_claim_without_an_answer_can_be_tried_again(store: StoreInMemory, executed: bool) -> None:
    ours = await replica(store, "a")
    store.lose("SET", executed=executed)
    with pytest.raises(StoreDown):
        await ours.succession.seize("h", "dead")
    await lost_owner(ours)


async def test_an_owner_that_comes_back_keeps_its_round(store: StoreInMemory) -> None:
    ours, owner = await replica(store, "a"), await replica(store, "owner")
    assert await ours.succession.seize("h", "owner") == "owner"
    assert await owner.claims.take("h") is None


async def test_another_copy_disturbs_nobody_who_gives_back(store: StoreInMemory) -> None:
    ours, owner = await replica(store, "a"), await replica(store, "owner")
    await asyncio.gather(*(ours.succession.seize("h", "owner") for _ in range(3)), return_exceptions=True)
    assert await owner.claims.take("h") is None


async def test_whoever_lives_and_has_it_is_turned_to(store: StoreInMemory) -> None:
    await lost_owner(await replica(store, "a"))
    assert await (await replica(store, "b")).succession.seize("h", "dead") == "a"


async def test_a_chain_of_dead_replicas_is_followed(store: StoreInMemory) -> None:
    await lost_owner(await replica(store, "a"))
    store.now_s += 6
    assert (await lost_owner(await replica(store, "b"))).is_posted is None
    assert await Claims(cast(SharedStore, store), "b", 600).of("h") == Claim("b")


async def test_every_copy_of_a_lost_call_is_told_that_it_is_lost(store: StoreInMemory) -> None:
    ours = await replica(store, "a")
    await lost_owner(ours)
    await ours.claims.note("h", Stage.LOST)
    for other in (ours, await replica(store, "b")):
        with pytest.raises(ProtocolError) as end:
            await other.succession.seize("h", "dead")
        assert end.value.data == {"reason": "lost"}


async def test_what_was_taken_over_is_forgotten_when_its_token_has_expired(store: StoreInMemory) -> None:
    ours = await replica(store, "a")
    await lost_owner(ours)
    store.now_s += 601
    ours.succession.sweep()
    assert ours.succession._seized == {}
