"""What a request state carries so that another replica can go on with the call when the one that keeps it is dead.

The server's stream can be picked up where it stood (2025-11-25, basic/transports, "Resumability and Redelivery"), and
its open questions can be answered, since answers are requests of their own. Nothing here decides whether to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.core.questions import Question
from gateway.wire.jsonrpc import Json, JsonObject, encode

MAX_BYTES: Final = 32_768
"""What a request state may carry for this; with more the call can be ended by another replica, but not gone on with."""


@dataclass(frozen=True, slots=True)
class RecoveryPoint:
    """Where a suspended call stands.

    Args:
        session_id: the server's name for its session.
        version: the revision of the session.
        server_info: who the server says it is.
        request_id: the call's id towards the server.
        event_id: after which event the stream goes on; None: it cannot be picked up.
        retry_ms: the reconnection time that the server asked for.
        questions: those that are open.
        names: every name that a question of this call has had.
        rounds: how many rounds there have been.
    """

    session_id: str
    version: str
    server_info: JsonObject | None
    request_id: str
    event_id: str | None
    retry_ms: int | None
    questions: Sequence[Question]
    names: Sequence[str]
    rounds: int

    @property
    def is_resumable(self) -> bool:
        """Whether the call can be gone on with."""
        return self.event_id is not None

    def to_members(self) -> JsonObject:
        """As a request state carries it: short, and within bounds."""
        rest = {
            "event": self.event_id,
            "retry": self.retry_ms,
            "info": self.server_info,
            "asked": _members(self.questions),
            "names": list(self.names),
            "rounds": self.rounds,
        }
        where: JsonObject = {"session": self.session_id, "version": self.version, "call": self.request_id}
        return {**where, **rest} if self.event_id is not None and len(encode(rest)) <= MAX_BYTES else where

    @classmethod
    def from_members(cls, members: JsonObject) -> "RecoveryPoint":
        """What `to_members` wrote."""
        return cls(
            session_id=members["session"],
            version=members["version"],
            server_info=members.get("info"),
            request_id=members["call"],
            event_id=members.get("event"),
            retry_ms=members.get("retry"),
            questions=to_questions(members.get("asked", [])),
            names=members.get("names", []),
            rounds=members.get("rounds", 0),
        )


def page_members(questions: Sequence[Question]) -> JsonObject | None:
    """Questions that no call waits on, as a request state carries them; None if they are too large for that."""
    members = _members(questions)
    return {"pages": members} if len(encode(members)) <= MAX_BYTES else None


def to_pages(members: JsonObject) -> tuple[Question, ...] | None:
    """What `page_members` wrote; None if a call waits."""
    return to_questions(members["pages"]) if "pages" in members else None


def within_bounds(answers: JsonObject) -> JsonObject | None:
    """Answers that a request state may carry; None if they are too large for that."""
    return answers if len(encode(answers)) <= MAX_BYTES else None


def to_questions(members: Sequence[Sequence[Json]]) -> tuple[Question, ...]:
    """Questions, as they stand in a request state."""
    return tuple(Question(*question) for question in members)


def _members(questions: Sequence[Question]) -> list[Json]:
    return [[question.name, question.request_id, question.method, question.params] for question in questions]
