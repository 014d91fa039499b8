"""What a legacy server has asked during one call, and what became of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.core.exchange_events import Post
from gateway.errors import ProtocolError
from gateway.translate import capabilities, input_rounds
from gateway.wire import codes, methods
from gateway.wire.jsonrpc import Json, JsonObject, RequestId, encode, error_object, error_response, response

MAX_AHEAD_BYTES: Final = 65_536
"""What a suspended call keeps of answers to questions that nobody has asked; a client may send more with each round."""

MAX_OPEN: Final = 100
"""Open questions of one call; a server that asks more has lost its mind, and must not take ours."""


@dataclass(frozen=True, slots=True)
class Question:
    """A request of the server that waits for the client's answer, under the name that the client knows it by."""

    name: str
    request_id: RequestId
    method: str
    params: JsonObject

    def to_input_request(self) -> JsonObject:
        """What the client sees of it."""
        return input_rounds.to_input_request(self.method, self.params)

    def check(self, answer: Json) -> None:
        """Check an answer against this question: its shape, and for a form the requested schema.

        Raises:
            ProtocolError: `-32602`, naming the question and the field, never a value.
        """
        try:
            input_rounds.check_answer(self.to_input_request(), answer)
        except ValueError as error:
            raise ProtocolError(codes.INVALID_PARAMS, f"inputResponses.{self.name}: {error}") from error

    def accepts(self, answer: Json) -> bool:
        """Whether an answer fits this question."""
        try:
            self.check(answer)
        except ProtocolError:
            return False
        return True

    def answered(self, answer: JsonObject) -> Post:
        """The answer on its way to the server."""
        return Post(response(self.request_id, input_rounds.to_legacy_answer(answer)))

    def cancelled(self) -> Post:
        """What somebody who walked away says: `cancel`, or an error where the protocol has no such word."""
        if self.method == methods.ELICIT:
            return Post(response(self.request_id, {"action": "cancel"}))
        return Post(error_response(self.request_id, error_object(codes.INTERNAL_ERROR, "The client did not answer")))


@dataclass(slots=True)
class Questions:
    """The open questions of one call, in the order in which they were asked.

    Args:
        preferred_names: the operator's names for the questions of this tool.
    """

    preferred_names: Sequence[str] = ()
    _open: dict[str, Question] = field(default_factory=dict)
    _names: set[str] = field(default_factory=set)
    _seen: set[tuple[type, RequestId]] = field(default_factory=set)

    def __bool__(self) -> bool:
        return bool(self._open)

    @property
    def open(self) -> Sequence[Question]:
        """The questions that have no answer yet."""
        return tuple(self._open.values())

    @property
    def past_names(self) -> Sequence[str]:
        """The names of those that are not open any more."""
        return sorted(self._names - self._open.keys())

    @property
    def past_ids(self) -> Sequence[RequestId]:
        """The server's ids of those that are not open any more."""
        still_open = {_typed(question.request_id) for question in self._open.values()}
        return [request_id for _, request_id in sorted(self._seen - still_open, key=repr)]

    def restore(self, still_open: Sequence[Question], names: Sequence[str], ids: Sequence[RequestId]) -> None:
        """Be what another process left: these questions open; these names and ids had by others before."""
        self._open = {question.name: question for question in still_open}
        self._names = {*names, *self._open}
        self._seen = {_typed(request_id) for request_id in (*ids, *(q.request_id for q in still_open))}

    def fault_of(self, message: JsonObject) -> Post | None:
        """What to say to a request of the server that is not put to the client; None if it may be."""
        if len(self._open) >= MAX_OPEN:
            return refusal(message, "Too many questions are open:")
        return fault_of(message)

    def has_seen(self, message: JsonObject) -> bool:
        """Whether a request of the server was added before: a resumed stream repeats some."""
        return _typed(message["id"]) in self._seen

    def add(self, message: JsonObject) -> Question:
        """Name and keep a request of the server."""
        request_id, method, params = message["id"], message["method"], message.get("params") or {}
        self._seen.add(_typed(request_id))
        name = input_rounds.name_of(
            method, params, request_id=request_id, preferred=self.preferred_names, taken=self._names
        )
        self._names.add(name)
        question = self._open[name] = Question(name, request_id, method, params)
        return question

    def still_ahead(self, answers: Mapping[str, JsonObject]) -> Mapping[str, JsonObject]:
        """Of the answers that a client sent, those whose question has not been asked yet, to be held.

        Of too much, nothing is held: then what is asked is asked.
        """
        ahead = {name: answer for name, answer in answers.items() if name not in self._names}
        try:
            return ahead if len(encode(ahead)) <= MAX_AHEAD_BYTES else {}
        except ValueError:
            return {}

    def close(self, question: Question) -> None:
        """A question has its answer."""
        del self._open[question.name]

    def withdraw(self, request_id: RequestId) -> None:
        """The server no longer wants to know."""
        for question in list(self._open.values()):
            if question.request_id == request_id and type(question.request_id) is type(request_id):
                self.close(question)

    def close_answered(self, answers: Mapping[str, JsonObject]) -> list[Question]:
        """Close every question that has an answer; unknown names are ignored (2026-07-28, basic/patterns/mrtr)."""
        given = [question for name, question in self._open.items() if name in answers]
        for question in given:
            self.close(question)
        return given

    def cancel_all(self) -> list[Post]:
        """Close every question without an answer."""
        posts = [question.cancelled() for question in self._open.values()]
        self._open.clear()
        return posts

    def check(self, answers: Mapping[str, Json]) -> None:
        """Check the answers to the open questions.

        Raises:
            ProtocolError: `-32602`, naming the first question and field that is wrong.
        """
        for name, question in self._open.items():
            if name in answers:
                question.check(answers[name])

    def missing_for(self, declared: JsonObject) -> JsonObject:
        """The capabilities that the open questions need and a request did not declare; empty if none."""
        needs = (capabilities.missing_for(q.method, q.params, declared) for q in self._open.values())
        return capabilities.merge(needs) or {}

    def to_input_requests(self) -> JsonObject:
        """The `inputRequests` of an `input_required` result."""
        return {question.name: question.to_input_request() for question in self._open.values()}


def _typed(request_id: RequestId) -> tuple[type, RequestId]:
    """Python's 1 equals its True and its 1.0; JSON-RPC's 1 is not "1" either."""
    return type(request_id), request_id


def fault_of(message: JsonObject) -> Post | None:
    """What to say to a request of the server that no client could answer; None if one could."""
    if message["method"] not in methods.QUESTIONS:
        return refusal(message, "Method not found:", codes.METHOD_NOT_FOUND)
    if not isinstance(message.get("params") or {}, dict):
        return refusal(message, "params must be an object:", codes.INVALID_PARAMS)
    return None


def undeclared(missing: JsonObject) -> ProtocolError:
    """2026-07-28, basic/patterns/mrtr: `-32021` names exactly what a request did not declare."""
    data = {"requiredCapabilities": missing}
    return ProtocolError(codes.MISSING_CAPABILITY, "Missing required client capability", data)


def refusal(message: JsonObject, text: str, code: int = codes.INTERNAL_ERROR) -> Post:
    """An error in answer to a request of the server."""
    error = error_object(code, f"{text} {message['method']}")
    return Post(error_response(message["id"], error), is_vital=False)
