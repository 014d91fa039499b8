"""Orders of events that sockets hardly ever show: a call with its background, on a session made of events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, cast

import pytest
import structlog.testing

from gateway.core.exchange import Exchange, lost
from gateway.core.exchange_events import Complete, Fail, Leg, RequireInput, Responded
from gateway.core.incoming import Incoming, sort
from gateway.core.transitions import State
from gateway.upstream.background import Background
from gateway.upstream.legacy_call import CallLimits, LegacyCall
from gateway.upstream.legacy_session import LegacySession
from gateway.wire.jsonrpc import Json, JsonObject, decode, encode, request
from gateway.wire.sse import SseEvent
from tests.support.asking_tools import ELICIT, FORM, filled
from tests.support.round_client import EVERYTHING

CALL_ID = "call-1"
RESULT: JsonObject = {"jsonrpc": "2.0", "id": CALL_ID, "result": {"content": []}}
BOUND_S = 5.0


class FakeStream:
    """The reply to the call: what a test puts into it, an exception included."""

    last_event_id = None
    retry_ms = None

    def __init__(self) -> None:
        self.queue: asyncio.Queue[JsonObject | Exception] = asyncio.Queue()
        self.closed = asyncio.Event()

    async def events(self) -> AsyncIterator[SseEvent]:
        while True:
            message = await self.queue.get()
            if isinstance(message, Exception):
                raise message
            yield SseEvent("message", encode(message), None, None)

    def close(self) -> None:
        self.closed.set()

    finish = close


class FakeSession:
    """A session whose server is the test."""

    name = "docs"
    id = "session-1"
    is_exclusive = True
    listener = None
    hears_notifications = False

    def __init__(self) -> None:
        self.stream = FakeStream()
        self.posted: list[JsonObject] = []
        self.slow: asyncio.Event | None = None

    async def request(self, _message: JsonObject) -> FakeStream:
        return self.stream

    async def post(self, message: JsonObject) -> None:
        if self.slow is not None:
            await self.slow.wait()
        self.posted.append(message)

    def sort(self, message: Json, request_id: str | None, *, is_own_stream: bool) -> Incoming | None:
        return cast("Incoming | None", sort(message, request_id, is_own_stream=is_own_stream))

    def decode(self, data: bytes) -> Json:
        return decode(data)


class Client:
    """A client that wants to know nothing."""

    async def notify(self, notification: JsonObject) -> None:
        raise AssertionError(notification)


class Stage:
    """One call, its session and what was done with them."""

    def __init__(self) -> None:
        self.session = FakeSession()
        self.background = Background()
        self.released: list[bool] = []
        self.is_released = asyncio.Event()
        self.call = LegacyCall(
            cast(LegacySession, self.session),
            Exchange("tools/call", CALL_ID, Leg(EVERYTHING)),
            request(CALL_ID, "tools/call", {"name": "book"}),
            CallLimits(timeout_s=BOUND_S, max_duration_s=BOUND_S, gather_s=0.0, gather_max_s=0.0),
            self.background,
            self._release,
        )

    def _release(self, _call: LegacyCall, clean: bool) -> None:
        self.released.append(clean)
        self.is_released.set()

    def ask(self) -> None:
        """The server asks."""
        self.session.stream.queue.put_nowait(request(0, ELICIT, FORM))

    async def suspended(self) -> None:
        """Bring the call to its first round."""
        self.ask()
        assert isinstance(await self.call.begin(Leg(EVERYTHING), Client()), RequireInput)

    async def answered(self) -> Any:
        """Come back with the answer."""
        async with asyncio.timeout(BOUND_S):
            return await self.call.answer(Leg(EVERYTHING, answers={"elicitation_1": filled("Ada")}), Client())

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
    assert stage.session.stream.closed.is_set()
    assert [message.get("result", message.get("method")) for message in stage.session.posted] == [
        {"action": "cancel"},
        "notifications/cancelled",
    ]


async def test_a_failure_that_nobody_foresaw_while_the_client_is_away_has_lost_the_call(stage: Stage) -> None:
    with structlog.testing.capture_logs() as log:
        await stage.suspended()
        stage.session.stream.queue.put_nowait(RuntimeError("a fault of the gateway"))
        await stage.at_rest()
    assert [entry["error"] for entry in log] == ["RuntimeError"]
    ending = await stage.answered()
    assert isinstance(ending, Fail)
    assert str(ending.error) == str(lost())
    assert stage.released == [False]


async def test_a_result_that_came_on_another_stream_ends_the_reading_of_the_calls_own(stage: Stage) -> None:
    await stage.suspended()
    await stage.call.hear_aside(Responded(RESULT))
    await stage.at_rest()
    assert stage.released == [True]
    assert stage.session.stream.closed.is_set()
    assert await stage.answered() == Complete(RESULT)


async def test_a_session_is_given_back_after_the_server_has_heard_why(stage: Stage) -> None:
    await stage.suspended()
    stage.session.slow = asyncio.Event()
    expiry = asyncio.create_task(stage.call.expire())
    await asyncio.wait_for(stage.session.stream.closed.wait(), BOUND_S)
    assert stage.released == []
    stage.session.slow.set()
    await expiry
    assert len(stage.session.posted) == 2
    await stage.at_rest()
    assert stage.released == [False]


async def test_a_call_that_ended_well_gives_its_session_back_at_once(stage: Stage) -> None:
    """The server may answer the call before it has acknowledged the answer to its question."""
    await stage.suspended()
    stage.session.slow = asyncio.Event()
    stage.session.stream.queue.put_nowait(RESULT)
    assert await stage.answered() == Complete(RESULT)
    await asyncio.wait_for(stage.is_released.wait(), BOUND_S)
    assert stage.released == [True]
    stage.session.slow.set()
    await stage.at_rest()


def _on_leg_end(stage: Stage, act: Callable[[], object]) -> None:
    """Act in the moment between the end of a leg and the notice that the waiting request takes of it."""
    run = stage.background.run

    def watched(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        leg_ended = stage.call._leg_ended
        if leg_ended is not None and not leg_ended.done():
            leg_ended.add_done_callback(lambda _done: act())
            stage.background.run = run  # type: ignore[method-assign]
        return run(work)

    stage.background.run = watched  # type: ignore[method-assign]
