"""What a call says to its server on the side: in order, and fatal only where the call depends on it."""

from typing import Any

import pytest

from gateway.core.exchange_events import Post
from gateway.errors import UpstreamError
from gateway.upstream.background import Background
from gateway.upstream.legacy_session import SessionExpired
from gateway.upstream.outbox import Outbox


class FakeSession:
    name = "docs"

    def __init__(self, *failures: Exception | None) -> None:
        self.sent: list[dict[str, Any]] = []
        self._failures = list(failures)

    async def post(self, message: dict[str, Any]) -> None:
        self.sent.append(message)
        if self._failures and (failure := self._failures.pop(0)) is not None:
            raise failure


async def sent(session: FakeSession, *messages: Post) -> list[str]:
    failures: list[str] = []

    async def on_failure(error: UpstreamError) -> None:
        failures.append(error.reason)

    outbox = Outbox(session, 5, Background(), on_failure)  # type: ignore[arg-type]
    assert outbox.is_empty
    outbox.send(list(messages))
    assert not outbox.is_empty
    await outbox.emptied()
    return failures


async def test_messages_go_out_in_order() -> None:
    session = FakeSession()
    assert await sent(session, Post({"n": 1}), Post({"n": 2})) == []
    assert session.sent == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (SessionExpired(), "session_lost"),
        (UpstreamError("docs", "unreachable", "gone"), "unreachable"),
        (TimeoutError(), "timeout"),
    ],
)
async def test_an_answer_that_cannot_be_delivered_is_told_and_nothing_follows_it(
    failure: Exception, reason: str
) -> None:
    session = FakeSession(failure)
    assert await sent(session, Post({"n": 1}), Post({"n": 2})) == [reason]
    assert session.sent == [{"n": 1}]


async def test_a_refusal_that_cannot_be_delivered_is_of_no_consequence() -> None:
    session = FakeSession(UpstreamError("docs", "nonsense", "HTTP 400"))
    assert await sent(session, Post({"n": 1}, is_vital=False), Post({"n": 2})) == []
    assert session.sent == [{"n": 1}, {"n": 2}]
