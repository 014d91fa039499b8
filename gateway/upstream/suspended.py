"""What waits for its client: a call that a server keeps open, or one that ended with a page to visit."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gateway.core.questions import Question
from gateway.core.recovery import RecoveryPoint
from gateway.errors import GatewayError
from gateway.upstream.legacy_call import LegacyCall


def point_of(call: LegacyCall) -> RecoveryPoint:
    """Where a call stands that is suspended, for another process."""
    session, exchange = call.session, call.exchange
    return RecoveryPoint(
        request_id=exchange.request_id,
        session_id=session.id,
        version=session.negotiated.version,
        server_info=session.negotiated.server_info,
        event_id=call.resumption.heard_id,
        retry_ms=call.resumption.retry_ms,
        standing=exchange.standing,
    )


@dataclass(slots=True)
class SuspendedCall:
    """A call whose server waits for an answer.

    Args:
        call: which.
        is_resumable: whether its token tells enough for another replica to go on with it, or to make it again.
    """

    call: LegacyCall
    is_resumable: bool = False

    async def expire(self) -> None:
        """Answer the questions as somebody who walked away would, and cancel the call."""
        await self.call.expire()

    async def drop(self, error: GatewayError) -> None:
        """Let go of it without a word to the server."""
        await self.call.drop(error)


@dataclass(slots=True)
class UrlRound:
    """A call that ended because a page must be visited first; its retry is a call of its own.

    Args:
        questions: the pages.
        is_resumable: whether its token names them, so that any replica can serve its retry.
    """

    questions: tuple[Question, ...]
    is_resumable: bool = False

    async def expire(self) -> None:
        """Nothing is open at the server."""

    async def drop(self, _error: GatewayError) -> None:
        """Nothing is open at the server."""

    def check(self, answers: Mapping[str, Any]) -> None:
        """Check the answers that are there. Raises ProtocolError."""
        for question in self.questions:
            if question.name in answers:
                question.check(answers[question.name])

    def open_questions(self, answers: Mapping[str, Any]) -> tuple[Question, ...]:
        """What has no answer yet."""
        return tuple(question for question in self.questions if question.name not in answers)

    def is_declined(self, answers: Mapping[str, Any]) -> bool:
        """Whether the user would not go."""
        return any(answers[q.name]["action"] != "accept" for q in self.questions if q.name in answers)
