"""What a request state carries so that another replica can go on with the call when the one that keeps it is dead.

The server's stream can be picked up where it stood (2025-11-25, basic/transports, "Resumability and Redelivery"), and
its open questions can be answered, since answers are requests of their own. Nothing here decides whether to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from gateway.core.questions import Question
from gateway.wire.jsonrpc import Json, JsonObject, RequestId, encode

MAX_BYTES: Final = 32_768
"""What a request state may carry of a call, and of its answers; with more it can only be ended elsewhere."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an exchange stands that is suspended.

    Args:
        questions: those that are open.
        past_names: the names that others have had.
        past_ids: the server's ids of others; a stream that is picked up may repeat them.
        ahead: answers to questions that nobody has asked yet.
        rounds: how many rounds there have been.
    """

    questions: Sequence[Question] = ()
    past_names: Sequence[str] = ()
    past_ids: Sequence[RequestId] = ()
    ahead: Mapping[str, JsonObject] = field(default_factory=dict)
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class RecoveryPoint:
    """Where a suspended call stands, and how its server is reached.

    Args:
        request_id: the call's id towards the server.
        session_id: the server's name for its session; None if that is tied to the process that opened it.
        version: the revision of the session.
        server_info: who the server says it is.
        event_id: after which event the stream goes on; None: it cannot be picked up.
        retry_ms: the reconnection time that the server asked for.
        standing: where its exchange stands.
    """

    request_id: str
    session_id: str | None
    version: str
    server_info: JsonObject | None
    event_id: str | None
    retry_ms: int | None
    standing: Standing

    @property
    def is_resumable(self) -> bool:
        """Whether the server lets the call be gone on with."""
        return self.session_id is not None and self.event_id is not None

    def tied(self) -> "RecoveryPoint":
        """The same, of a session that ends with the process that opened it."""
        return replace(self, session_id=None)

    def to_members(self, *, in_full: bool) -> JsonObject:
        """As a request state carries it: in full if that is within bounds, or just what it takes to end the call."""
        where: JsonObject = {"session": self.session_id, "version": self.version, "call": self.request_id}
        if not in_full:
            return where
        members = {**where, "event": self.event_id, "retry": self.retry_ms, "info": self.server_info}
        full = {**members, **_standing_members(self.standing)}
        return full if is_within_bounds(full) else where

    @classmethod
    def from_members(cls, members: JsonObject) -> "RecoveryPoint":
        """What `to_members` wrote."""
        return cls(
            request_id=members["call"],
            session_id=members["session"],
            version=members["version"],
            server_info=members.get("info"),
            event_id=members.get("event"),
            retry_ms=members.get("retry"),
            standing=_to_standing(members),
        )


@dataclass(frozen=True, slots=True)
class Provision:
    """What is put into a request state for the death of the replica that keeps the call.

    Args:
        recovery: where the call stands.
        answers: what its questions have been answered, if it may be made again.
    """

    recovery: JsonObject | None = None
    answers: JsonObject | None = None

    @property
    def is_enough(self) -> bool:
        """Whether another replica can go on with the call, or make it again."""
        return self.recovery is not None and "asked" in self.recovery

    @property
    def names_session(self) -> bool:
        """Whether another replica comes to the server's session by it, to go on with the call."""
        return self.is_enough and self.recovery is not None and self.recovery["session"] is not None


def provide(point: RecoveryPoint, answers: JsonObject | None, *, resumes: bool) -> Provision:
    """Provide for the death of this replica.

    Args:
        point: where the call stands.
        answers: what its questions have been answered; None if it may not be made again.
        resumes: whether calls are gone on with.
    """
    kept = answers if answers is None or is_within_bounds(answers) else None
    provision = Provision(point.to_members(in_full=kept is not None or (resumes and point.is_resumable)), kept)
    return provision if provision.is_enough else Provision(provision.recovery)


def page_members(questions: Sequence[Question]) -> JsonObject | None:
    """Questions that no call waits on, as a request state carries them; None if they are too large for that."""
    members: JsonObject = {"pages": _question_members(questions)}
    return members if is_within_bounds(members) else None


def to_pages(members: JsonObject) -> tuple[Question, ...] | None:
    """What `page_members` wrote; None if a call waits."""
    return _to_questions(members["pages"]) if "pages" in members else None


def questions_in(members: JsonObject) -> tuple[Question, ...]:
    """The open questions that a request state carries, whatever waits for them."""
    return _to_questions(members.get("pages") or members.get("asked") or ())


def is_within_bounds(members: JsonObject) -> bool:
    """Whether a request state may carry so much; what cannot be written it cannot carry at all."""
    try:
        return len(encode(members)) <= MAX_BYTES
    except ValueError:
        return False


def _standing_members(standing: Standing) -> JsonObject:
    members: JsonObject = {
        "asked": _question_members(standing.questions),
        "names": list(standing.past_names),
        "ids": list(standing.past_ids),
        "ahead": dict(standing.ahead),
        "rounds": standing.rounds,
    }
    return {name: value for name, value in members.items() if value or name == "asked"}


def _to_standing(members: JsonObject) -> Standing:
    return Standing(
        questions=_to_questions(members.get("asked", ())),
        past_names=members.get("names", ()),
        past_ids=members.get("ids", ()),
        ahead=members.get("ahead", {}),
        rounds=members.get("rounds", 0),
    )


def _question_members(questions: Sequence[Question]) -> list[Json]:
    return [[question.name, question.request_id, question.method, question.params] for question in questions]


def _to_questions(members: Sequence[Sequence[Json]]) -> tuple[Question, ...]:
    return tuple(Question(*question) for question in members)
