"""The side of a relay that has the suspended call."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from gateway.core.claims import OwnerLost
from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller, Principal
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
    caller_members,
    request_members,
    to_outcome,
)
from gateway.core.request_state import refused
from gateway.errors import GatewayError, ProtocolError
from gateway.rounds import owner as owner_module
from gateway.rounds import relayed as relayed_module
from gateway.rounds.owner import Owner
from gateway.rounds.relayed import SILENT_S, WINDOW, RelayedCall
from gateway.rounds.relayer import ClientStream
from gateway.store.down import StoreDown
from tests.support.leftovers import until

REQUEST = InboundRequest("1", "tools/call", {"name": "t"}, {}, {})
CALLER = Caller(Principal("ada", "Ada"))


def serve(relay: str, relayer: str = "b", handle: str = "h") -> Serve:
    return Serve(relay, relayer, "docs", handle, request_members(REQUEST), caller_members(CALLER))


class Side:
    """An owner, whose relayers, upstream and store are played by the test."""

    def __init__(self) -> None:
        self.sent: list[tuple[Message, str]] = []
        self.now_s = 0.0
        self.is_down = False
        self.goes_on = asyncio.Event()
        self.served: list[RelayedCall] = []
        self.outcome: Outcome | GatewayError | Exception = Outcome({"result": {"x": 1}})
        self.tasks: list[asyncio.Task[None]] = []
        self.owner = Owner(self._send, self._serve, self._run, lambda: self.now_s)

    async def _send(self, message: Message, recipient: str) -> None:
        if self.is_down:
            raise StoreDown
        self.sent.append((message, recipient))

    async def _serve(self, _upstream: str, _request: InboundRequest, _caller: Caller, client: ClientStream) -> Outcome:
        assert isinstance(client, RelayedCall)
        if self.owner.knows(client.handle):
            raise refused("used or expired")
        self.served.append(client)
        self.owner.note_claimed(client)
        await self.goes_on.wait()
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self.tasks.append(asyncio.create_task(work))
        return self.tasks[-1]

    def to(self, recipient: str, kind: type = Ended) -> list[Any]:
        return [message for message, name in self.sent if name == recipient and isinstance(message, kind)]

    async def begin(self, relay: str = "r") -> RelayedCall:
        self.owner.receive(serve(relay))
        await until(lambda: self.served)
        return self.served[-1]


@pytest.fixture
async def side(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Side]:
    monkeypatch.setattr(owner_module, "_PAUSE_S", 0.001)
    monkeypatch.setattr(relayed_module, "_LOOK_S", 0.001)
    made = Side()
    yield made
    for task in made.tasks:
        task.cancel()
    await asyncio.gather(*made.tasks, return_exceptions=True)


async def test_a_retry_is_served_and_its_end_is_told(side: Side) -> None:
    call = await side.begin()
    assert (call.request, call.caller) == (REQUEST, CALLER)
    side.goes_on.set()
    await until(lambda: side.to("b"))
    assert to_outcome(side.to("b")[0].end) == side.outcome


@pytest.mark.parametrize("times", [2, 5])
async def test_a_retry_that_comes_again_is_served_once(side: Side, times: int) -> None:
    await side.begin()
    for _ in range(times):
        side.owner.receive(serve("r"))
    await until(lambda: len(side.to("b", Working)) == times)
    assert len(side.served) == 1


async def test_an_end_that_got_lost_is_told_again_to_whoever_still_waits(side: Side) -> None:
    side.goes_on.set()
    await side.begin()
    await until(lambda: side.to("b"))
    side.owner.receive(Still("r", "b", 0, True))
    await until(lambda: len(side.to("b")) == 2)
    assert side.to("b")[0] == side.to("b")[1]


async def test_the_end_waits_for_a_store_that_is_down(side: Side) -> None:
    await side.begin()
    side.is_down = True
    side.goes_on.set()
    await until(lambda: side.served[0].is_ended)
    side.is_down = False
    await until(lambda: side.to("b"))


async def test_a_relay_that_is_not_known_is_said_to_be_unknown(side: Side) -> None:
    side.owner.receive(Still("other", "b", 0, True))
    await until(lambda: side.sent)
    assert side.sent == [(Unknown("other"), "b")]


async def test_a_client_that_left_cancels_the_call(side: Side) -> None:
    call = await side.begin()
    side.owner.receive(Cancel("r"))
    assert call.task is not None
    await asyncio.wait([call.task])
    assert call.task.cancelled()
    assert len(side.owner) == 0


async def test_a_retry_that_comes_after_its_cancellation_is_not_served(side: Side) -> None:
    side.owner.receive(Cancel("r"))
    side.owner.receive(serve("r"))
    assert side.tasks == []
    side.now_s += 31
    side.owner.sweep()
    assert side.owner._left == {}


@pytest.mark.parametrize("error", [ValueError("seen"), OwnerLost(is_posted=None), GatewayError("of no known kind")])
async def test_a_failure_that_nobody_foresaw_ends_the_relay_and_tells_nothing(side: Side, error: Exception) -> None:
    side.outcome = error
    side.goes_on.set()
    await side.begin()
    await until(lambda: side.to("b"))
    with pytest.raises(ProtocolError) as end:
        to_outcome(side.to("b")[0].end)
    assert (end.value.status, end.value.message, list(end.value.data)) == (500, "Internal error", ["errorId"])


async def test_an_outcome_that_cannot_be_written_ends_the_relay(side: Side) -> None:
    side.outcome = Outcome({"result": {"x": float("nan"), "y": 1 << 70}})
    side.goes_on.set()
    await side.begin()
    await until(lambda: side.to("b"))
    with pytest.raises(ProtocolError):
        to_outcome(side.to("b")[0].end)


async def test_a_retry_of_another_version_is_refused_so_that_it_is_tried_again(side: Side) -> None:
    side.owner.receive(Serve("r", "b", "docs", "h", {"later": 1}, caller_members(CALLER)))
    side.owner.receive(Serve("s", "b", "docs", "h", request_members(REQUEST), {"principal": None}))
    await until(lambda: len(side.to("b")) == 2)
    for ended in side.to("b"):
        with pytest.raises(ProtocolError) as end:
            to_outcome(ended.end)
        assert (end.value.status, end.value.data) == (503, {"reason": "replica", "retryable": True})


# --- a second copy ---


async def test_a_second_copy_is_refused_while_the_first_relayer_shows_itself(side: Side) -> None:
    await side.begin()
    side.owner.receive(serve("second", "c"))
    await asyncio.sleep(0)
    side.now_s += 1
    side.owner.receive(Still("r", "b", 0, True))
    await until(lambda: side.to("c"))
    with pytest.raises(ProtocolError) as end:
        to_outcome(side.to("c")[0].end)
    assert end.value.reason == "used or expired"
    side.goes_on.set()
    await until(lambda: side.to("b"))


async def test_a_second_copy_gets_the_call_when_the_first_relayer_is_silent_however_often_it_asks(side: Side) -> None:
    await side.begin()
    side.owner.receive(serve("second", "c"))
    for _ in range(3):
        side.owner.receive(Still("second", "c", 0, True))
        side.owner.receive(serve("second", "c"))
    await until(lambda: len(side.to("c", Working)) == 3)
    side.now_s += SILENT_S
    await until(lambda: len(side.to("c", Working)) == 4)
    assert side.to("c") == []
    side.goes_on.set()
    await until(lambda: side.to("c"))
    assert side.to("b") == []
    assert to_outcome(side.to("c")[0].end) == side.outcome


async def test_of_two_that_come_back_one_gets_the_call(side: Side) -> None:
    await side.begin()
    side.owner.receive(serve("second", "c"))
    side.owner.receive(serve("third", "d"))
    side.now_s += SILENT_S
    await until(lambda: side.to("c", Working))
    side.now_s += 1
    side.owner.receive(Still("second", "c", 0, True))
    await until(lambda: side.to("d"))
    side.goes_on.set()
    await until(lambda: side.to("c") and side.to("d"))
    ends = []
    for name in "cd":
        try:
            ends.append(to_outcome(side.to(name)[0].end))
        except ProtocolError:
            continue
    assert ends == [side.outcome]


async def test_who_comes_back_after_two_relayers_died_gets_the_call(side: Side) -> None:
    """The second one died while it waited for the first to be given up, and nobody knows that yet."""
    call = await side.begin()
    for relay, relayer in (("second", "c"), ("third", "d")):
        side.owner.receive(serve(relay, relayer))
        side.owner.receive(Still(relay, relayer, 0, True))
    await until(lambda: side.to("c", Working) and side.to("d", Working))
    side.now_s += SILENT_S
    await until(lambda: call.relay == "second")
    side.now_s += SILENT_S
    await until(lambda: call.relay == "third")
    side.goes_on.set()
    await until(lambda: side.to("d"))
    assert to_outcome(side.to("d")[0].end) == side.outcome
    assert len(side.served) == 1


async def test_who_left_while_it_waited_for_the_call_is_not_given_it(side: Side) -> None:
    call = await side.begin()
    side.owner.receive(serve("second", "c"))
    side.owner.receive(Cancel("second"))
    side.now_s += SILENT_S
    await until(lambda: not side.owner._attaching)
    assert call.relay == "r"


# --- what is kept ---


async def test_an_end_is_kept_from_when_it_came_about(side: Side) -> None:
    call = await side.begin()
    side.now_s += 100
    side.goes_on.set()
    await until(lambda: call.is_ended)
    side.now_s += 29
    side.owner.sweep()
    side.owner.receive(serve("second", "c"))
    await until(lambda: side.to("c"))
    assert len(side.served) == 1
    side.now_s += 31
    side.owner.sweep()
    assert not side.owner.knows("h")
    assert side.owner._calls == {}


async def test_what_is_at_work_is_not_forgotten(side: Side) -> None:
    await side.begin()
    side.now_s += 1000
    side.owner.sweep()
    assert side.owner.knows("h")
    assert len(side.owner) == 1


async def test_an_end_that_was_told_is_forgotten_at_once(side: Side) -> None:
    side.goes_on.set()
    await side.begin()
    await until(lambda: side.to("b"))
    side.owner.receive(Done(["r", "unknown"]))
    assert not side.owner.knows("h")


async def test_no_more_bytes_are_kept_than_there_is_room_for(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner_module, "_MOST_KEPT_BYTES", 5000)
    side.outcome = Outcome({"result": {"text": "x" * 1000}})
    side.goes_on.set()
    for number in range(10):
        side.owner.receive(serve(f"r{number}", handle=f"h{number}"))
    await until(lambda: len(side.to("b")) == 10)
    side.owner.sweep()
    assert [number for number in range(10) if side.owner.knows(f"h{number}")] == [6, 7, 8, 9]


async def test_who_drains_waits_for_no_end_that_nobody_fetches(side: Side) -> None:
    call = await side.begin()
    side.now_s += SILENT_S
    assert len(side.owner) == 1
    side.goes_on.set()
    await until(lambda: call.is_ended)
    assert len(side.owner) == 0


# --- notifications ---


async def told(call: RelayedCall, count: int) -> None:
    for number in range(count):
        await call.notify({"n": number})


async def test_no_more_notifications_are_on_the_way_than_the_window(side: Side) -> None:
    call = await side.begin()
    telling = asyncio.create_task(told(call, WINDOW + 10))
    await until(lambda: len(side.to("b", Notice)) == WINDOW)
    side.owner.receive(Still("r", "b", 10, False))
    await telling
    assert [notice.number for notice in side.to("b", Notice)] == list(range(WINDOW + 10))


async def test_a_relayer_that_died_with_the_window_full_does_not_hold_up_the_call(side: Side) -> None:
    call = await side.begin()
    telling = asyncio.create_task(told(call, 10 * WINDOW))
    await until(lambda: len(side.to("b", Notice)) == WINDOW)
    side.now_s += SILENT_S
    await telling
    assert len(side.to("b", Notice)) == WINDOW


async def test_notifications_that_the_store_lost_do_not_hold_up_the_call(side: Side) -> None:
    call = await side.begin()
    side.is_down = True
    await told(call, 2 * WINDOW)
    side.is_down = False
    telling = asyncio.create_task(told(call, WINDOW + 1))
    await until(lambda: len(side.to("b", Notice)) == WINDOW)
    side.owner.receive(Still("r", "b", 0, True))  # the store was emptied: none of them arrived
    await telling


async def test_who_comes_back_is_told_what_follows_from_the_first_number(side: Side) -> None:
    call = await side.begin()
    await told(call, WINDOW)
    side.owner.receive(serve("second", "c"))
    side.now_s += SILENT_S
    await until(lambda: side.to("c", Working))
    await told(call, 1)
    assert side.to("c", Notice) == [Notice("second", 0, {"n": 0})]
