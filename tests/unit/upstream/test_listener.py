"""The GET stream of a session: when a call may rely on it, and what its end means."""

import asyncio

import pytest

from gateway.errors import UpstreamError
from gateway.upstream import listener
from gateway.upstream.listener import Listener
from gateway.upstream.share import Share
from gateway.wire.jsonrpc import Json
from gateway.wire.sse import SseEvent
from tests.support.leftovers import until

BOUND_S = 5.0


class FakeStream:
    """An open GET stream, to which a test adds events until it ends it."""

    status = 200
    kind = "sse"

    def __init__(self) -> None:
        self.retry_ms: int | None = None
        self._events: asyncio.Queue[SseEvent | None] = asyncio.Queue()

    def say(self, data: bytes) -> None:
        self._events.put_nowait(SseEvent("message", data, None, None))

    def end(self) -> None:
        self._events.put_nowait(None)

    def events(self) -> "FakeStream":
        return self

    def __aiter__(self) -> "FakeStream":
        return self

    async def __anext__(self) -> SseEvent:
        event = await self._events.get()
        if event is None:
            raise StopAsyncIteration
        return event

    def close(self) -> None:
        self.end()


class FakeRefusal:
    kind = "other"
    retry_ms = None

    def __init__(self, status: int) -> None:
        self.status = status

    def close(self) -> None:
        pass


class FakeSession:
    """Answers GETs one after the other; the last answer is repeated by waiting for ever."""

    def __init__(self, *answers: object) -> None:
        self.headers: dict[str, str] = {}
        self.is_dead = self.is_forgotten = False
        self.hears_notifications = False
        self.share: Share | None = None
        self.heard: list[Json] = []
        self.gets = 0
        self._answers = list(answers)

    @property
    def http(self) -> "FakeSession":
        return self

    @property
    def hearing(self) -> "FakeSession":
        return self

    async def get(self, _headers: object) -> object:
        self.gets += 1
        if not self._answers:
            await asyncio.Event().wait()
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def hear(self, message: Json) -> None:
        self.heard.append(message)


def listening_to(session: FakeSession, on_reopened: list[int] | None = None) -> Listener:
    heard = Listener(session)  # type: ignore[arg-type]
    if on_reopened is not None:
        heard.on_reopened.add(lambda: on_reopened.append(session.gets))
    return heard


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "PAUSES_S", (0.001,))
    monkeypatch.setattr(listener, "OPEN_TIMEOUT_S", 0.05)


async def opened(heard: Listener) -> None:
    async with asyncio.timeout(BOUND_S):
        await heard.opened()


async def ended(heard: Listener) -> None:
    async with asyncio.timeout(BOUND_S):
        await heard.ended.wait()


async def test_an_open_stream_can_be_relied_on() -> None:
    heard = listening_to(FakeSession(FakeStream()))
    await opened(heard)
    assert (heard.is_open, heard.is_offered) == (True, True)
    await heard.close()
    assert heard.ended.is_set()


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 406, 410, 501])
async def test_a_refusal_is_the_end_and_says_nothing_of_the_session(status: int) -> None:
    session = FakeSession(FakeRefusal(status))
    heard = listening_to(session)
    await opened(heard)
    await ended(heard)
    assert not heard.is_offered
    assert not session.is_dead
    assert session.gets == 1


async def test_a_page_is_no_stream() -> None:
    heard = listening_to(FakeSession(FakeRefusal(200)))
    await ended(heard)
    assert not heard.is_offered


@pytest.mark.parametrize("obstacle", [FakeRefusal(409), FakeRefusal(502), UpstreamError("u", "unreachable", "down")])
async def test_an_obstacle_is_tried_again(obstacle: object) -> None:
    session = FakeSession(obstacle, obstacle, FakeStream())
    heard = listening_to(session)
    await opened(heard)
    assert heard.is_open
    assert session.gets == 3
    await heard.close()


async def test_a_stream_that_another_replica_has_holds_nobody_up_and_is_tried_again() -> None:
    session = FakeSession(FakeRefusal(409), FakeStream())
    session.share = Share("name", "stamp", 0.0, is_sole=False, asked_s=0.0)
    heard = listening_to(session)
    await opened(heard)
    assert (heard.is_open, heard.is_taken, session.gets) == (False, True, 1)
    heard._settled.clear()
    await opened(heard)
    assert (heard.is_open, heard.is_taken, session.gets) == (True, False, 2)
    await heard.close()


async def test_a_server_without_a_word_holds_a_call_up_once_and_not_for_long() -> None:
    heard = listening_to(FakeSession())
    await opened(heard)
    assert not heard.is_open
    await opened(heard)
    await heard.close()


@pytest.mark.parametrize(
    ("status", "is_forgotten"), [(404, True), (410, True), (400, True), (401, False), (405, False)]
)
async def test_a_stream_that_is_refused_after_it_was_open_takes_the_session_with_it(
    status: int, is_forgotten: bool
) -> None:
    stream = FakeStream()
    session = FakeSession(stream, FakeRefusal(status))
    heard = listening_to(session)
    await opened(heard)
    stream.end()
    await ended(heard)
    assert (session.is_dead, session.is_forgotten) == (True, is_forgotten)


async def test_reopening_is_told_and_the_first_opening_is_not() -> None:
    first, second = FakeStream(), FakeStream()
    told: list[int] = []
    heard = listening_to(FakeSession(first, FakeRefusal(409), second), told)
    await opened(heard)
    assert told == []
    first.end()
    await until(lambda: told)
    assert told == [3]
    await heard.close()


async def test_a_call_waits_for_a_stream_that_is_about_to_be_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "PAUSES_S", (3600.0,))
    monkeypatch.setattr(listener, "OPEN_TIMEOUT_S", BOUND_S)
    first = FakeStream()
    session = FakeSession(first, FakeStream())
    heard = listening_to(session)
    await opened(heard)
    first.end()
    await until(lambda: not heard.is_open)
    await opened(heard)  # and it is opened at once, not after an hour
    assert heard.is_open
    await heard.close()


async def test_the_pause_that_a_server_asks_for_is_kept_whoever_is_in_a_hurry() -> None:
    first = FakeStream()
    first.retry_ms = 3_600_000
    session = FakeSession(first, FakeStream())
    heard = listening_to(session)
    await opened(heard)
    first.end()
    await until(lambda: not heard.is_open)
    await opened(heard)
    assert not heard.is_open
    assert session.gets == 1
    await heard.close()


async def test_messages_batches_and_nonsense_are_heard_for_what_they_are() -> None:
    stream = FakeStream()
    session = FakeSession(stream)
    heard = listening_to(session)
    await opened(heard)
    for data in (b'{"a": 1}', b'[{"b": 2}, {"c": 3}]', b"nonsense", b'{"d": 4}'):
        stream.say(data)
    await until(lambda: len(session.heard) == 4)
    assert session.heard == [{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}]
    assert session.hears_notifications
    await heard.close()
