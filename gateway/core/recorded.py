"""The answers of a call that may be made again, each with a digest of the question that it answered.

Rule: a recorded answer is given to the very question that it answered, and to no other. A call that is made again may
ask otherwise ("Delete 5 files?" after "Delete 3 files?"); then its client is asked anew.
"""

from typing import Final

from gateway.core.questions import Question
from gateway.core.request_state import request_digest
from gateway.wire.jsonrpc import JsonObject

_DIGITS: Final = 16


class Recorded:
    """What a call's questions have been answered so far.

    Args:
        members: as a request state carried it.
    """

    def __init__(self, members: JsonObject | None = None) -> None:
        self._answers: JsonObject = dict(members or {})

    def note(self, question: Question, answer: JsonObject) -> None:
        """A question has been answered."""
        self._answers[question.name] = [_digest(question), answer]

    def answer_to(self, question: Question) -> JsonObject | None:
        """What this very question was answered; None if it has not been asked before."""
        digest, answer = self._answers.get(question.name, (None, None))
        return answer if digest == _digest(question) else None

    def to_members(self) -> JsonObject:
        """As a request state carries it."""
        return dict(self._answers)


def _digest(question: Question) -> str:
    """Of what the client sees: an id that the server makes up for each question does not matter."""
    return request_digest(question.method, question.to_input_request()["params"])[:_DIGITS]
