"""What the client says to the questions of one call: ahead of them, now, or when the call was made before.

Rule: an answer is used once, for the question that it was given to.
"""

from collections.abc import Mapping
from dataclasses import replace

from gateway.core.exchange_events import Leg, Post
from gateway.core.questions import Question, Questions
from gateway.core.recorded import Recorded
from gateway.translate.capabilities import missing_for
from gateway.wire.jsonrpc import JsonObject


class Answers:
    """The client's side of the questions of one call.

    Args:
        questions: what the server asked.
        leg: the client's request.
        recorded: where answers are recorded, and taken from if the call was made before; None for a call that may not
            be made again.
    """

    def __init__(self, questions: Questions, leg: Leg, recorded: Recorded | None) -> None:
        self._questions = questions
        self._leg = leg
        self._recorded = recorded

    def missing_for(self, message: JsonObject) -> JsonObject | None:
        """The capabilities that a question needs and the client did not declare; None if it may be asked."""
        return missing_for(message["method"], message.get("params"), self._leg.capabilities)

    def ahead(self) -> Mapping[str, JsonObject]:
        """The answers that wait for their questions through all rounds, within bounds."""
        return self._questions.still_ahead(self._leg.answers)

    def hold(self) -> None:
        """Keep only those: the rest of the client's request has been used."""
        self.restore(self.ahead())

    def restore(self, ahead: Mapping[str, JsonObject]) -> None:
        """Hold these, and no others."""
        self._leg = replace(self._leg, answers=ahead)

    def take(self, leg: Leg) -> list[Post]:
        """The client has come back: close the questions that it answers, and say to the server what it said."""
        self._leg = replace(leg, answers={**self.ahead(), **leg.answers})
        return [
            self._answered(question, leg.answers[question.name])
            for question in self._questions.close_answered(leg.answers)
        ]

    def answer_ahead(self, question: Question) -> Post | None:
        """The answer that the client gave when the call was made before, or sent before it was asked, if it fits."""
        answer = None if self._recorded is None else self._recorded.answer_to(question)
        if answer is None:
            answer = self._leg.answers.get(question.name)
        if answer is None or not question.accepts(answer):
            return None
        self._questions.close(question)
        return self._answered(question, answer)

    def _answered(self, question: Question, answer: JsonObject) -> Post:
        if self._recorded is not None:
            self._recorded.note(question, answer)
        return question.answered(answer)
