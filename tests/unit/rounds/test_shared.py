"""The rounds of replicas that share a store, each in full, on a store in memory."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, cast

import pytest
from cryptography.fernet import Fernet, MultiFernet

from gateway.core.claims import OwnerLost, Stage
from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import ANONYMOUS, Caller
from gateway.core.request_state import RequestState, refused
from gateway.core.tokens import Sealer
from gateway.errors import GatewayError, ProtocolError
from gateway.rounds import shared as module
from gateway.rounds.heartbeat import SETTLED_S, TTL_S
from gateway.rounds.memory import RoundLimits
from gateway.rounds.relayer import ClientStream
from gateway.rounds.shared import SharedRounds
from gateway.store.connection import SharedStore
from gateway.store.down import StoreDown
from gateway.wire.jsonrpc import JsonObject
from tests.support.leftovers import until
from tests.support.store_in_memory import StoreInMemory

SEALER = Sealer(MultiFernet([Fernet(Fernet.generate_key())]))
REQUEST = InboundRequest("1", "tools/call", {"name": "t"}, {}, {})
CALLER = Caller(ANONYMOUS)


class Waiting:
    """A round, and what became of it."""

    def __init__(self, *, is_resumable: bool = True) -> None:
        self.is_resumable = is_resumable
        self.became: list[str] = []

    async def expire(self) -> None:
        self.became.append("expired")

    async def drop(self, _error: GatewayError) -> None:
        self.became.append("dropped")


class Client:
    async def notify(self, notification: JsonObject) -> None:
        raise AssertionError(notification)


class Replica:
    def __init__(self, store: StoreInMemory) -> None:
        self.store = store
        self.tasks: list[asyncio.Task[None]] = []
        self.served: list[str] = []
        self.rounds = SharedRounds(
            RoundLimits(ttl_s=600), cast(SharedStore, store), SEALER, self._serve, self._run, self._now_s
        )
        self.owner = self.rounds.owner

    def _now_s(self) -> float:
        return self.store.now_s

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self.tasks.append(asyncio.create_task(work))
        return self.tasks[-1]

    async def _serve(self, upstream: str, _request: InboundRequest, _caller: Caller, client: ClientStream) -> Outcome:
        handle = cast(Any, client).handle
        if self.rounds.find(handle) is None or await self.rounds.acquire(handle, client) is None:
            raise refused("used or expired")
        self.served.append(handle)
        return Outcome({"result": {"by": self.owner}})

    def keep(self, round_: Waiting | None = None) -> tuple[str, Waiting]:
        kept = Waiting() if round_ is None else round_
        return self.rounds.keep(kept, ANONYMOUS, "docs"), kept

    async def beat(self) -> None:
        await self.rounds._heartbeat.beat()

    async def retry(self, owner: str, handle: str) -> Outcome:
        state = RequestState("suspended", "docs", "", "", 0.0, handle=handle, owner=owner)
        return await self.rounds.forward("docs", state, REQUEST, CALLER, Client(), lambda: None)


@pytest.fixture
async def store(monkeypatch: pytest.MonkeyPatch) -> StoreInMemory:
    made = StoreInMemory()
    monkeypatch.setattr(module, "_UNSEEN_PAUSE_S", 0.001)
    return made


@pytest.fixture
async def replicas(store: StoreInMemory) -> AsyncIterator[tuple[Replica, Replica]]:
    pair = Replica(store), Replica(store)
    for replica in pair:
        await replica.beat()
    store.now_s += SETTLED_S
    for replica in pair:
        await replica.beat()
    reading = [asyncio.create_task(replica.rounds._inbox.read()) for replica in pair]
    yield pair
    for task in (*reading, *(task for replica in pair for task in replica.tasks)):
        task.cancel()
        await asyncio.wait([task])
    for replica in pair:
        for handle in list(replica.rounds._here._entries):
            replica.rounds._here.claim(handle)


async def test_a_retry_elsewhere_is_served_by_who_keeps_the_round_and_once(replicas: tuple[Replica, Replica]) -> None:
    one, other = replicas
    handle, _round = one.keep()
    assert (await other.retry(one.owner, handle)).body == {"result": {"by": one.owner}}
    await other.rounds._relayer.tend()
    await until(lambda: not one.rounds.is_relayed(handle))
    with pytest.raises(ProtocolError) as refusal:
        await other.retry(one.owner, handle)
    assert refusal.value.reason == "used or expired"
    assert one.served == [handle]


async def test_a_retry_whose_sending_is_in_doubt_can_be_sent_again_and_is_served_once(
    replicas: tuple[Replica, Replica],
) -> None:
    one, other = replicas
    handle, _round = one.keep()
    other.store.lose("XADD", executed=True)
    with pytest.raises(StoreDown):
        await other.retry(one.owner, handle)
    await until(lambda: one.served)
    one.store.now_s += 5.5
    for replica in replicas:
        await replica.beat()
    one.store.now_s += 1
    for replica in replicas:
        await replica.beat()
    one.store.turn(is_up=True)
    one.store.now_s += SETTLED_S
    for replica in replicas:
        await replica.beat()
    assert (await other.retry(one.owner, handle)).body == {"result": {"by": one.owner}}
    assert one.served == [handle]


async def test_a_round_of_a_dead_replica_is_seized(store: StoreInMemory, replicas: tuple[Replica, Replica]) -> None:
    one, other = replicas
    handle, _round = one.keep()
    store.now_s += TTL_S + 1
    await other.beat()
    store.now_s += SETTLED_S
    await other.beat()
    with pytest.raises(OwnerLost) as event:
        await other.retry(one.owner, handle)
    assert event.value.is_posted is False
    assert other.rounds.counts.taken_over == 1


async def test_an_owner_that_seems_dead_and_alive_by_turns_is_not_tried_for_ever(
    replicas: tuple[Replica, Replica], monkeypatch: pytest.MonkeyPatch
) -> None:
    _one, other = replicas
    looks = 0

    async def is_dead(_replica: str) -> bool:
        nonlocal looks
        looks += 1
        return True

    async def is_alive(_replica: str) -> bool:
        return True

    monkeypatch.setattr(other.rounds._heartbeat, "is_dead", is_dead)
    monkeypatch.setattr(other.rounds._heartbeat, "is_alive", is_alive)
    with pytest.raises(ProtocolError) as error:
        await other.retry("flaps", "h")
    assert (error.value.status, error.value.data) == (503, {"reason": "replica", "retryable": True})
    assert looks < 20


async def test_a_retry_that_does_not_fit_claims_nothing(
    store: StoreInMemory, replicas: tuple[Replica, Replica]
) -> None:
    def check() -> None:
        raise ProtocolError(-32602, "does not fit")

    state = RequestState("suspended", "docs", "", "", 0.0, handle="h", owner="dead")
    with pytest.raises(ProtocolError, match="does not fit"):
        await replicas[0].rounds.forward("docs", state, REQUEST, CALLER, Client(), check)
    assert not [key for key in store.keys() if "claim" in key]  # noqa: SIM118 -- no mapping


# --- a round that is here ---


@pytest.mark.parametrize("executed", [False, True])
async def test_without_the_store_a_replica_goes_on_with_its_own_round(
    replicas: tuple[Replica, Replica], executed: bool
) -> None:
    one, _other = replicas
    handle, round_ = one.keep()
    one.store.lose("SET", executed=executed)
    assert await one.rounds.acquire(handle) is round_


async def test_a_round_that_somebody_has_is_let_go_of_although_the_store_does_not_say_who(
    replicas: tuple[Replica, Replica],
) -> None:
    one, other = replicas
    handle, round_ = one.keep()
    await other.rounds._claims.take(handle)
    one.store.lose("GET")
    assert await one.rounds.acquire(handle) is None
    assert round_.became == ["dropped"]


async def test_who_was_taken_for_dead_lets_go_of_what_has_been_claimed_and_of_nothing_else(
    store: StoreInMemory, replicas: tuple[Replica, Replica]
) -> None:
    one, other = replicas
    (claimed, first), (_kept, second) = one.keep(), one.keep()
    at_work = Waiting()
    with one.rounds.running("w", at_work):
        await other.rounds._claims.take(claimed)
        await other.rounds._claims.take("w")
        store.now_s += TTL_S + 1
        await one.beat()
    assert (first.became, second.became, at_work.became) == (["dropped"], [], ["dropped"])
    assert len(one.rounds) == 1


async def test_a_round_that_nobody_came_back_for_is_ended_by_who_keeps_it(replicas: tuple[Replica, Replica]) -> None:
    one, _other = replicas
    handle, round_ = one.keep()
    await one.rounds._expire(handle)
    assert round_.became == ["expired"]


async def test_who_is_out_of_sight_ends_nothing_that_another_one_may_have_gone_on_with(
    store: StoreInMemory, replicas: tuple[Replica, Replica]
) -> None:
    one, other = replicas
    handle, round_ = one.keep()
    await other.rounds._claims.take(handle)
    store.turn(is_up=False)
    store.now_s += TTL_S
    expiring = asyncio.create_task(one.rounds._expire(handle))
    await asyncio.sleep(0.01)
    assert round_.became == []
    store.turn(is_up=True)
    await one.beat()
    await expiring
    assert round_.became == ["dropped"]


async def test_who_stays_out_of_sight_lets_go_without_a_word(
    store: StoreInMemory, replicas: tuple[Replica, Replica]
) -> None:
    one, _other = replicas
    handle, round_ = one.keep()
    store.turn(is_up=False)
    store.now_s += TTL_S
    expiring = asyncio.create_task(one.rounds._expire(handle))
    await asyncio.sleep(0.01)
    store.now_s += 601
    await expiring
    assert round_.became == ["dropped"]


async def test_what_nobody_else_could_go_on_with_is_ended_without_the_store(
    store: StoreInMemory, replicas: tuple[Replica, Replica]
) -> None:
    one, _other = replicas
    handle, round_ = one.keep(Waiting(is_resumable=False))
    store.turn(is_up=False)
    store.now_s += TTL_S
    await one.rounds._expire(handle)
    assert round_.became == ["expired"]


async def test_who_hands_over_keeps_what_nobody_else_can_go_on_with(replicas: tuple[Replica, Replica]) -> None:
    one, other = replicas
    (_a, resumable), (_b, tied) = one.keep(), one.keep(Waiting(is_resumable=False))
    await one.rounds.hand_over(refused("draining"))
    assert (resumable.became, tied.became) == (["dropped"], [])
    assert await other.rounds._heartbeat.is_dead(one.owner)


async def test_a_retry_that_came_too_late_for_a_round_that_was_handed_over_is_sent_elsewhere(
    replicas: tuple[Replica, Replica],
) -> None:
    """It is past the gate when the round goes: to be told that it was used would end a call that goes on elsewhere."""
    one, _other = replicas
    (resumable, _a), (tied, round_) = one.keep(), one.keep(Waiting(is_resumable=False))
    assert one.rounds.find("unknown") is None
    parting = refused("draining")
    await one.rounds.hand_over(parting)
    with pytest.raises(ProtocolError) as raised:
        one.rounds.find(resumable)
    assert raised.value is parting
    assert one.rounds.find(tied) is round_


async def test_how_far_a_round_came_is_noted_when_the_store_is_there(replicas: tuple[Replica, Replica]) -> None:
    one, other = replicas
    handle, _round = one.keep()
    await one.rounds.acquire(handle)
    await one.rounds.note(handle, Stage.POSTED)
    claim = await other.rounds._claims.of(handle)
    assert claim is not None
    assert claim.stage is Stage.POSTED
    one.store.turn(is_up=False)
    await one.rounds.note(handle, Stage.LOST)
