"""Orders of events that sockets hardly ever show: a call with its background, on a session made of events."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, cast

import pytest
import structlog.testing

from gateway.core.exchange import Exchange
from gateway.core.exchange_events import Complete, Fail, Leg, RequireInput, Responded
from gateway.core.request_state import lost
from gateway.core.session import SessionKey, negotiate
from gateway.core.transitions import State
from gateway.upstream.background import Background
from gateway.upstream.call_clock import CallLimits
from gateway.upstream.legacy_call import LegacyCall
from gateway.upstream.legacy_session import LegacySession
from gateway.upstream.transport import Transport
from gateway.wire.jsonrpc import JsonObject, decode, encode, notification, request
from gateway.wire.sse import SseEvent
from tests.support.asking_tools import ELICIT, FORM, filled
from tests.support.round_client import EVERYTHING

CALL_ID = "call-1"
RESULT: JsonObject = {"jsonrpc": "2.0", "id": CALL_ID, "result": {"content": []}}
BOUND_S = 5.0


async def nobody() -> None:
    """Is told when the server has taken the answers."""


class Answer:
    """An answer to a POST: for a call the events that a test puts into it, an exception included."""

    kind = "sse"
    last_event_id = None
    retry_ms = None

    def __init__(self, status: int) -> None:
        self.status = status
        self.headers: dict[str, str] = {}
        self.queue: asyncio.Queue[JsonObject | Exception] = asyncio.Queue()
        self.closed = asyncio.Event()

    async def events(self) -> AsyncIterator[SseEvent]:
        while True:
            message = await self.queue.get()
            if isinstance(message, Exception):
                raise message
            yield SseEvent("message", encode(message), None, None)
            self.queue.task_done()

    def close(self) -> None:
        self.closed.set()

    finish = close


class Wire:
    """The connections to a server that is the test."""

    name = "docs"

    def __init__(self) -> None:
        self.stream = Answer(200)
        self.posted: list[JsonObject] = []
        self.slow: asyncio.Event | None = None

    async def post(self, body: bytes, _headers: Any) -> Answer:
        message = decode(body)
        if message.get("method") == "tools/call":
            return self.stream
        if self.slow is not None:
            await self.slow.wait()
        self.posted.append(message)
        return Answer(202)


class Client:
    """A client that wants to know nothing."""

    async def notify(self, notification: JsonObject) -> None:
        raise AssertionError(notification)


class Reader:
    """A client that stops reading at the first notification."""

    def __init__(self) -> None:
        self.is_told = asyncio.Event()

    async def notify(self, _notification: JsonObject) -> None:
        self.is_told.set()
        await asyncio.Event().wait()


class Message(dict[str, Any]):
    """A message that can be watched."""


class Stage:
    """One call, its session and what was done with them."""

    def __init__(self) -> None:
        self.wire = Wire()
        self.background = Background()
        transport, negotiated = cast(Transport, self.wire), negotiate({"protocolVersion": "2025-11-25"})
        self.session = LegacySession(
            transport, SessionKey("p", "", "{}"), {}, "session-1", negotiated, self.background, _ignore, BOUND_S
        )
        self.session.is_exclusive = True
        self.released: list[bool] = []
        self.is_released = asyncio.Event()
        message = Message(request(CALL_ID, "tools/call", {"name": "book"}))
        self.message = weakref.ref(message)
        self.call = LegacyCall(
            self.session,
            Exchange("tools/call", CALL_ID, Leg(EVERYTHING)),
            message,
            CallLimits(timeout_s=BOUND_S, max_duration_s=BOUND_S, gather_s=0.0, gather_max_s=0.0),
            self.background,
            self._release,
        )

    def _release(self, _call: LegacyCall, clean: bool) -> None:
        self.released.append(clean)
        self.is_released.set()

    def ask(self) -> None:
        """The server asks."""
        self.wire.stream.queue.put_nowait(request(0, ELICIT, FORM))

    async def suspended(self) -> None:
        """Bring the call to its first round."""
        self.ask()
        assert isinstance(await self.call.begin(Leg(EVERYTHING), Client()), RequireInput)

    async def answered(self) -> Any:
        """Come back with the answer."""
        async with asyncio.timeout(BOUND_S):
            return await self.call.answer(Leg(EVERYTHING, answers={"elicitation_1": filled("Ada")}), Client(), nobody)

    async def at_rest(self) -> None:
        """Wait for all work in the background."""
        async with asyncio.timeout(BOUND_S):
            while self.background._tasks:
                await asyncio.wait(self.background._tasks)


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    yield stage
    await stage.background.close(0)


async def test_a_client_that_leaves_just_as_its_questions_are_ready_leaves_nothing_behind(stage: Stage) -> None:
    """It never got the token, and the round is in no directory: nobody else would ever end it."""
    leg: list[asyncio.Task[Any]] = []
    _on_leg_end(stage, lambda: leg[0].cancel())
    stage.ask()
    leg.append(asyncio.create_task(stage.call.begin(Leg(EVERYTHING), Client())))
    with pytest.raises(asyncio.CancelledError):
        await leg[0]
    await stage.at_rest()
    assert stage.call.exchange.state is State.CLOSED
    assert stage.released == [False]
    assert stage.wire.stream.closed.is_set()
    assert [message.get("result", message.get("method")) for message in stage.wire.posted] == [
        {"action": "cancel"},
        "notifications/cancelled",
    ]


@pytest.mark.parametrize("answers", [{}, {"elicitation_1": filled("Ada")}], ids=["in part", "in full"])
async def test_a_client_that_leaves_while_it_is_told_what_it_missed_leaves_nothing_behind(
    stage: Stage, answers: JsonObject
) -> None:
    await stage.suspended()
    progressed = {"progressToken": CALL_ID, "progress": 1}
    stage.wire.stream.queue.put_nowait(notification("notifications/progress", progressed))
    async with asyncio.timeout(BOUND_S):
        await stage.wire.stream.queue.join()
    client = Reader()
    leg = asyncio.create_task(stage.call.answer(Leg(EVERYTHING, progress_token=1, answers=answers), client, nobody))
    await asyncio.wait_for(client.is_told.wait(), BOUND_S)
    leg.cancel()
    await asyncio.wait([leg])
    await stage.at_rest()
    assert stage.call.exchange.state is State.CLOSED
    assert stage.released == [False]
    assert stage.wire.posted[-1]["method"] == "notifications/cancelled"


async def test_a_failure_that_nobody_foresaw_while_the_client_is_away_has_lost_the_call(stage: Stage) -> None:
    with structlog.testing.capture_logs() as log:
        await stage.suspended()
        stage.wire.stream.queue.put_nowait(RuntimeError("a fault of the gateway"))
        await stage.at_rest()
    assert [entry["error"] for entry in log] == ["RuntimeError"]
    ending = await stage.answered()
    assert isinstance(ending, Fail)
    assert str(ending.error) == str(lost())
    assert stage.released == [False]


async def test_a_suspended_call_does_not_hold_on_to_its_arguments(stage: Stage) -> None:
    await stage.suspended()
    gc.collect()
    assert stage.message() is None


async def test_a_result_that_came_on_another_stream_ends_the_reading_of_the_calls_own(stage: Stage) -> None:
    await stage.suspended()
    await stage.call.hear_aside(Responded(RESULT))
    await stage.at_rest()
    assert stage.released == [True]
    assert stage.wire.stream.closed.is_set()
    assert await stage.answered() == Complete(RESULT)


async def test_a_session_is_given_back_after_the_server_has_heard_why(stage: Stage) -> None:
    await stage.suspended()
    stage.wire.slow = asyncio.Event()
    expiry = asyncio.create_task(stage.call.expire())
    await asyncio.wait_for(stage.wire.stream.closed.wait(), BOUND_S)
    assert stage.released == []
    stage.wire.slow.set()
    await expiry
    assert len(stage.wire.posted) == 2
    await stage.at_rest()
    assert stage.released == [False]


async def test_a_call_that_ended_well_gives_its_session_back_at_once(stage: Stage) -> None:
    """The server may answer the call before it has acknowledged the answer to its question."""
    await stage.suspended()
    stage.wire.slow = asyncio.Event()
    stage.wire.stream.queue.put_nowait(RESULT)
    assert await stage.answered() == Complete(RESULT)
    await asyncio.wait_for(stage.is_released.wait(), BOUND_S)
    assert stage.released == [True]
    stage.wire.slow.set()
    await stage.at_rest()


def _ignore(*_args: Any, **_more: Any) -> None:
    """Nothing of interest."""


def _on_leg_end(stage: Stage, act: Callable[[], object]) -> None:
    """Act in the moment between the end of a leg and the notice that the waiting request takes of it."""
    run = stage.background.run

    def watched(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        leg_ended = stage.call._leg._ended
        if leg_ended is not None and not leg_ended.done():
            leg_ended.add_done_callback(lambda _done: act())
            stage.background.run = run  # type: ignore[method-assign]
        return run(work)

    stage.background.run = watched  # type: ignore[method-assign]
