"""Where a stream ended, and whether there is hope of going on."""

from typing import Any, cast

import pytest

from gateway.upstream import resumption
from gateway.upstream.resumption import Resumption
from gateway.wire.sse import SseEvent


class FakeAnswer:
    def __init__(self, status: int = 200, kind: str = "sse", last_event_id: str | None = None) -> None:
        self.status = status
        self.kind = kind
        self.last_event_id = last_event_id
        self.retry_ms: int | None = None
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


class FakeSession:
    """Answers every GET with what the test says."""

    def __init__(self, session_id: str | None = "s") -> None:
        self.id = session_id
        self.name = "u"
        self.headers = {"Mcp-Session-Id": "s"}
        self.answer = FakeAnswer()
        self.gets: list[dict[str, str]] = []

    @property
    def http(self) -> "FakeSession":
        return self

    async def get(self, headers: dict[str, str]) -> FakeAnswer:
        self.gets.append(headers)
        return self.answer


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resumption, "PAUSE_S", 0.0)


def resumption_of(session: FakeSession, last_event_id: str | None = "e-1") -> Resumption:
    made = Resumption(cast(Any, session))
    made.note(cast(Any, FakeAnswer(last_event_id=last_event_id)))
    return made


def event(event_id: str | None) -> SseEvent:
    return SseEvent("message", b"{}", event_id, None)


def test_without_an_id_or_a_session_there_is_no_hope() -> None:
    assert not resumption_of(FakeSession(), None).is_possible
    assert not resumption_of(FakeSession(None)).is_possible
    assert resumption_of(FakeSession()).is_possible


async def test_it_is_asked_for_after_the_last_id() -> None:
    session = FakeSession()
    made = resumption_of(session)
    assert await made.open() == cast(Any, session.answer)
    assert session.gets == [{"Mcp-Session-Id": "s", "Last-Event-ID": "e-1"}]


async def test_attempts_without_anything_new_are_bounded() -> None:
    session = FakeSession()
    session.answer = FakeAnswer(last_event_id="e-1")
    made = resumption_of(session)
    attempts = 0
    while made.is_possible:
        stream = await made.open()
        assert stream is not None
        made.note(stream)
        attempts += 1
    assert attempts == resumption.MAX_ATTEMPTS


async def test_something_new_begins_the_count_anew() -> None:
    session = FakeSession()
    made = resumption_of(session)
    for number in range(3 * resumption.MAX_ATTEMPTS):
        assert made.is_possible
        session.answer = FakeAnswer(last_event_id=f"n-{number}")
        stream = await made.open()
        assert stream is not None
        made.note(stream)
    assert session.gets[-1]["Last-Event-ID"] == f"n-{3 * resumption.MAX_ATTEMPTS - 2}"


@pytest.mark.parametrize(
    ("status", "is_final"), [(404, True), (405, True), (400, True), (401, True), (409, False), (502, False)]
)
async def test_a_refusal_is_final_and_an_obstacle_is_not(status: int, is_final: bool) -> None:
    session = FakeSession()
    session.answer = FakeAnswer(status, "other")
    made = resumption_of(session)
    assert await made.open() is None
    assert session.answer.is_closed
    assert made.is_possible is not is_final


def test_events_of_one_stream_are_never_repeated_ones() -> None:
    made = resumption_of(FakeSession())
    assert not any(made.has_seen(event(event_id)) for event_id in ("a", "a", None, "b"))


async def test_a_stream_that_was_picked_up_repeats_what_came_before_it() -> None:
    made = resumption_of(FakeSession())
    for event_id in ("a", "b"):
        made.has_seen(event(event_id))
    await made.open()
    assert made.has_begun
    assert [made.has_seen(event(event_id)) for event_id in ("a", "b", "c", "c", None)] == [
        True,
        True,
        False,
        False,
        False,
    ]


async def test_what_is_remembered_of_a_long_stream_is_bounded() -> None:
    made = resumption_of(FakeSession())
    for number in range(100_000):
        made.has_seen(event(str(number)))
    assert len(made._seen) <= 1000
    await made.open()
    assert made.has_seen(event("99999"))
