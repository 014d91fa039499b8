"""The side of a relay that has the client."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from gateway.core.outcome import Outcome
from gateway.core.relay import (
    Cancel,
    Done,
    Ended,
    Message,
    Notice,
    Serve,
    Still,
    Unknown,
    Working,
    end_of_error,
    end_of_outcome,
)
from gateway.core.request_state import refused
from gateway.errors import ProtocolError
from gateway.rounds import relayer as module
from gateway.rounds.relayer import ACKNOWLEDGE_EVERY, STILL_S, OwnerDied, Relayer
from gateway.server.gate import draining
from gateway.store.down import StoreDown
from gateway.wire.jsonrpc import JsonObject
from tests.support.leftovers import until

SERVE = Serve("r", "here", "docs", "h", {}, {})
OUTCOME = Outcome({"result": {"x": 1}}, 200, (("x-a", "b"),))


class Client:
    def __init__(self) -> None:
        self.told: list[JsonObject] = []
        self.takes = asyncio.Event()
        self.takes.set()

    async def notify(self, notification: JsonObject) -> None:
        await self.takes.wait()
        self.told.append(notification)


class Side:
    """A relayer, whose owner and store are played by the test."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.now_s = 0.0
        self.is_down = False
        self.is_owner_dead = False
        self.tasks: list[asyncio.Task[None]] = []
        self.client = Client()
        self.relayer = Relayer(self._send, self._is_dead, self._run, lambda: self.now_s)

    async def _send(self, message: Message, _recipient: str) -> None:
        if self.is_down:
            raise StoreDown
        self.sent.append(message)

    async def _is_dead(self, _replica: str) -> bool:
        return self.is_owner_dead

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.create_task(work))

    def begin(self) -> asyncio.Task[Outcome]:
        return asyncio.create_task(self.relayer.relay(SERVE, "there", self.client))

    def of(self, kind: type) -> list[Any]:
        return [message for message in self.sent if isinstance(message, kind)]


@pytest.fixture
async def side() -> AsyncIterator[Side]:
    yield Side()


async def test_what_the_owner_comes_to_is_what_the_client_gets_and_the_owner_hears_that_it_was(side: Side) -> None:
    relay = side.begin()
    await until(lambda: side.sent)
    side.relayer.receive(Ended("r", end_of_outcome(OUTCOME)))
    assert await relay == OUTCOME
    await side.relayer.tend()
    assert side.sent == [SERVE, Done(["r"])]
    assert len(side.relayer) == 0


async def test_what_the_owner_refuses_is_refused_here(side: Side) -> None:
    relay = side.begin()
    await until(lambda: side.sent)
    side.relayer.receive(Ended("r", end_of_error(refused("used"))))
    with pytest.raises(ProtocolError) as refusal:
        await relay
    assert (refusal.value.code, refusal.value.reason) == (-32602, "used")


async def test_a_notification_that_comes_twice_is_told_once(side: Side) -> None:
    relay = side.begin()
    await until(lambda: side.sent)
    for number in (0, 1, 1, 0, 2):
        side.relayer.receive(Notice("r", number, {"n": number}))
    side.relayer.receive(Ended("r", end_of_outcome(OUTCOME)))
    await relay
    assert side.client.told == [{"n": 0}, {"n": 1}, {"n": 2}]


async def test_taken_notifications_are_acknowledged(side: Side) -> None:
    relay = side.begin()
    await until(lambda: side.sent)
    for number in range(ACKNOWLEDGE_EVERY):
        side.relayer.receive(Notice("r", number, {}))
    await until(lambda: side.of(Still))
    assert side.of(Still) == [Still("r", "here", ACKNOWLEDGE_EVERY, False)]
    relay.cancel()


async def test_the_owner_hears_of_a_relay_whose_server_talks_all_the_time(side: Side) -> None:
    relay = side.begin()
    await until(lambda: side.sent)
    for number in range(3):
        side.relayer.receive(Notice("r", number, {}))
        await until(lambda: len(side.client.told) == number + 1)  # noqa: B023 -- asked at once
        side.now_s += STILL_S
        await side.relayer.tend()
    assert [still.taken for still in side.of(Still)] == [1, 2, 3]
    relay.cancel()


async def test_the_owner_hears_of_a_relay_whose_client_takes_nothing(side: Side) -> None:
    relay = side.begin()
    await until(lambda: side.sent)
    side.client.takes.clear()
    side.relayer.receive(Notice("r", 0, {}))
    await asyncio.sleep(0)
    side.now_s += STILL_S
    await side.relayer.tend()
    assert side.of(Still) == [Still("r", "here", 0, False)]
    relay.cancel()


async def test_a_relay_to_which_nothing_comes_says_so(side: Side) -> None:
    relay = side.begin()
    await until(lambda: side.sent)
    side.now_s += STILL_S
    await side.relayer.tend()
    assert side.of(Still) == [Still("r", "here", 0, True)]
    relay.cancel()


async def test_what_is_waiting_is_not_told_again_and_again_that_the_owner_works(side: Side) -> None:
    relay = side.begin()
    await until(lambda: side.sent)
    for _ in range(1000):
        side.relayer.receive(Working("r"))
    assert side.relayer._open["r"].answers.qsize() == 1
    relay.cancel()


async def test_a_client_that_leaves_cancels_the_call(side: Side) -> None:
    relay = side.begin()
    await until(lambda: side.sent)
    relay.cancel()
    await asyncio.wait([relay])
    await asyncio.wait(side.tasks)
    assert side.of(Cancel) == [Cancel("r")]


async def test_a_retry_that_never_arrived_is_sent_again_but_not_for_ever(side: Side) -> None:
    relay = side.begin()
    for sent in range(1, 5):
        await until(lambda: len(side.of(Serve)) == sent)  # noqa: B023 -- asked at once
        side.relayer.receive(Unknown("r"))
    with pytest.raises(ProtocolError) as error:
        await relay
    assert (error.value.status, error.value.data) == (503, {"reason": "replica", "retryable": True})
    assert len(side.of(Serve)) == 4


async def test_an_owner_that_lives_and_says_nothing_is_not_waited_for_without_end(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STILL_S", 0.001)
    monkeypatch.setattr(module, "_PATIENCE_S", 0.01)
    with pytest.raises(ProtocolError) as error:
        await side.begin()
    assert (error.value.status, error.value.data) == (503, {"reason": "replica", "retryable": True})
    assert error.value.headers == (("retry-after", "2"),)


async def test_an_owner_that_dies_over_it_is_noticed(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STILL_S", 0.001)
    side.is_owner_dead = True
    with pytest.raises(OwnerDied):
        await side.begin()


async def test_a_store_that_is_down_for_a_moment_ends_no_relay(side: Side) -> None:
    relay = side.begin()
    await until(lambda: side.sent)
    side.is_down = True
    for number in range(ACKNOWLEDGE_EVERY):
        side.relayer.receive(Notice("r", number, {}))
    await until(lambda: len(side.client.told) == ACKNOWLEDGE_EVERY)
    side.relayer.receive(Ended("r", end_of_outcome(OUTCOME)))
    assert await relay == OUTCOME
    with pytest.raises(StoreDown):
        await side.relayer.tend()
    side.is_down = False
    await side.relayer.tend()
    await side.relayer.tend()
    assert side.of(Done) == [Done(["r"])]


async def test_a_replica_that_leaves_begins_no_relay_whose_end_it_would_not_hear(side: Side) -> None:
    error = draining()
    relay = side.begin()
    await until(lambda: side.sent)
    side.relayer.leave(error)
    for _ in range(2):
        with pytest.raises(type(error)) as refusal:
            await relay
        assert (refusal.value.status, refusal.value.data) == (error.status, error.data)
        relay = side.begin()
    relay.cancel()
    assert side.sent == [SERVE]
