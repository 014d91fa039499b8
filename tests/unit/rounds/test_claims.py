"""Claims in a store: exactly one replica gets a round, whatever the store does."""

import asyncio
from typing import cast

import pytest

from gateway.core.claims import Claim, Stage
from gateway.rounds.claims import Claims, ClaimUnread
from gateway.store.connection import SharedStore
from gateway.store.down import StoreDown
from tests.support.store_in_memory import StoreInMemory


@pytest.fixture
def store() -> StoreInMemory:
    return StoreInMemory()


def claims(store: StoreInMemory, replica: str) -> Claims:
    return Claims(cast(SharedStore, store), replica, ttl_s=600)


async def test_of_many_one_gets_it(store: StoreInMemory) -> None:
    found = await asyncio.gather(*(claims(store, f"r{number}").take("h") for number in range(20)))
    assert found.count(None) == 1
    assert len({claim.replica for claim in found if claim is not None}) == 1


async def test_a_claim_outlives_the_token(store: StoreInMemory) -> None:
    await claims(store, "a").take("h")
    store.now_s = 601
    assert await claims(store, "b").take("h") == Claim("a")


async def test_a_claim_whose_answer_was_lost_is_found_again(store: StoreInMemory) -> None:
    ours = claims(store, "a")
    store.lose("SET", executed=True)
    with pytest.raises(StoreDown):
        await ours.take("h")
    assert await ours.take("h") == Claim("a")


async def test_a_claim_that_somebody_has_is_not_ours_only_because_we_cannot_read_whose_it_is(
    store: StoreInMemory,
) -> None:
    await claims(store, "a").take("h")
    store.lose("GET")
    with pytest.raises(ClaimUnread):
        await claims(store, "b").take("h")


async def test_a_claim_is_taken_from_the_dead_by_one(store: StoreInMemory) -> None:
    await claims(store, "dead").take("h")
    taken = await asyncio.gather(*(claims(store, name).take_from(Claim("dead"), "h") for name in "abc"))
    assert sum(claim is not None for claim in taken) == 1


async def test_who_takes_over_knows_how_far_it_had_come(store: StoreInMemory) -> None:
    dead = claims(store, "dead")
    await dead.take("h")
    await dead.note("h", Stage.POSTED)
    posted = Claim("dead", Stage.POSTED)
    assert await claims(store, "a").take("h") == posted
    assert await claims(store, "a").take_from(posted, "h") == Claim("a", Stage.POSTED)
    assert store.left_s("test:claim:h") == 660


async def test_nothing_is_noted_of_a_round_that_somebody_else_has(store: StoreInMemory) -> None:
    await claims(store, "a").take("h")
    await claims(store, "b").note("h", Stage.LOST)
    assert await claims(store, "a").of("h") == Claim("a")


async def test_a_claim_is_given_back_to_nobody_or_to_whom_it_was_taken_from(store: StoreInMemory) -> None:
    ours = claims(store, "a")
    await ours.take("h")
    await ours.give_back(Claim("a"), "h", to=None)
    assert await ours.of("h") is None
    await claims(store, "b").take("h")
    await ours.take_from(Claim("b"), "h")
    await ours.give_back(Claim("a"), "h", to=Claim("b"))
    assert await ours.of("h") == Claim("b")


async def test_what_somebody_else_has_is_not_given_back(store: StoreInMemory) -> None:
    await claims(store, "b").take("h")
    await claims(store, "a").give_back(Claim("a"), "h", to=None)
    assert await claims(store, "b").of("h") == Claim("b")


@pytest.mark.parametrize("stage", list(Stage))
def test_a_claim_is_read_as_it_was_written(stage: Stage) -> None:
    assert Claim.from_text(Claim("a" * 16, stage).to_text().encode()) == Claim("a" * 16, stage)


@pytest.mark.parametrize("text", [b"a", b"a ", b"a rubbish", b"a claimed more"])
def test_a_stage_that_is_not_known_counts_as_the_first(text: bytes) -> None:
    assert Claim.from_text(text) == Claim("a")


def test_any_bytes_are_some_claim() -> None:
    assert Claim.from_text(b"\xff\xfe").stage is Stage.CLAIMED
