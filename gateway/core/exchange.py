"""The life of one call on a legacy server, from the first request to the last answer.

Rule: a call is sent to the server once. Whatever happens then is an event, and the exchange says what to do about it.
Strategy: one table (`core.transitions`) names, for every state and every event, the one method that handles it; a cell
that says `impossible` is a promise of the shell that drives the exchange, and is asserted. No clock, no I/O.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from gateway.core.answers import Answers
from gateway.core.exchange_events import (
    Answered,
    Asked,
    Broke,
    ClientLeft,
    Command,
    Complete,
    Event,
    Expired,
    Fail,
    Gather,
    Leg,
    Notified,
    Overtaken,
    Post,
    Quieted,
    RequireInput,
    Responded,
    Resume,
    TimedOut,
    Withdrew,
)
from gateway.core.notices import Notices
from gateway.core.questions import Questions, refusal, undeclared
from gateway.core.recorded import Recorded
from gateway.core.recovery import Standing
from gateway.core.request_state import lost
from gateway.core.transitions import HANDLERS, State
from gateway.errors import GatewayError
from gateway.translate.capabilities import merge
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject, notification


class Exchange:
    """One call on a legacy server.

    Args:
        method: the call's method; only `methods.ASKING` may ask the client anything.
        request_id: the id of the call towards the server; also its progress token there.
        leg: the client's request.
        names: the operator's names for the questions of this tool, in the order of asking.
        unanswerable: what to fail with if the server asks although no answer can reach it (it keeps no session).
        recorded: where answers are recorded, and taken from if the call was made before; None for a call that may not
            be made again.
    """

    def __init__(
        self,
        method: str,
        request_id: str,
        leg: Leg,
        *,
        names: Sequence[str] = (),
        unanswerable: GatewayError | None = None,
        recorded: Recorded | None = None,
    ) -> None:
        self.state = State.WAITING
        self.method = method
        self.request_id = request_id
        self.rounds = 0
        self.recorded = recorded
        self._unanswerable = unanswerable
        self._questions = Questions(names)
        self._answers = Answers(self._questions, leg, recorded)
        self._missing: JsonObject = {}
        self._notices = Notices(request_id, leg)
        self._detached = False
        self._settlement: Complete | Fail | None = None

    def receive(self, event: Event) -> list[Command]:
        """Take in what happened; say what to do.

        Raises:
            AssertionError: the event cannot happen in this state; the message names both.
        """
        return TRANSITIONS[self.state, type(event)](self, event)

    def check(self, answers: Mapping[str, Json]) -> None:
        """Check a retry's answers against the open questions, before anything is consumed.

        Raises:
            ProtocolError: `-32602`, naming the question and the field, never a value.
        """
        self._questions.check(answers)

    @property
    def standing(self) -> Standing:
        """Where the call stands now that it is suspended, for another process."""
        questions = self._questions
        return Standing(questions.open, questions.past_names, questions.past_ids, self._answers.ahead(), self.rounds)

    def restore(self, standing: Standing) -> None:
        """Stand where another process left the call: suspended, with its questions open."""
        self.state = State.SUSPENDED
        self.rounds = standing.rounds
        self._answers.restore(standing.ahead)
        self._questions.restore(standing.questions, standing.past_names, standing.past_ids)

    def has_seen(self, question: Asked) -> bool:
        """Whether a question has been heard before."""
        return self._questions.has_seen(question.message)

    @property
    def is_closed(self) -> bool:
        """Whether nothing more will be said to the client."""
        return self.state is State.CLOSED

    @property
    def awaits_client(self) -> bool:
        """Whether the client is away: with the questions, or with an outcome still to fetch."""
        return self.state in (State.SUSPENDED, State.SETTLED)

    # --- the server speaks ---

    def _finish(self, event: Responded) -> list[Command]:
        if self._missing:
            return [self._undeclared()]
        self.state = State.CLOSED
        return [Complete(event.message)]

    def _settle(self, event: Responded) -> list[Command]:
        self.state = State.SETTLED
        self._settlement = Complete(event.message)
        return []

    def _consider(self, event: Asked) -> list[Command]:
        """A question while the client is there: refuse it, answer it from what was sent ahead, or gather it."""
        message = event.message
        if (said := self._screen(message)) is not None:
            return said
        if missing := self._missing_for(message):
            self._missing = merge([self._missing, missing]) or {}
            self.state = State.GATHERING
            return [refusal(message, "The client does not support this"), Gather()]
        if self._unanswerable is not None:
            return [*self._abandon("no session"), Fail(self._unanswerable)]
        if self.method not in methods.ASKING:
            return [refusal(message, f"During {self.method} the client cannot be asked")]
        if ahead := self._answers.answer_ahead(self._questions.add(message)):
            return [ahead]
        self.state = State.GATHERING
        return [Gather()]

    def _keep(self, event: Asked) -> list[Command]:
        """A question while the client is away: it becomes part of the next round."""
        message = event.message
        if (said := self._screen(message)) is not None:
            return said
        if self._missing_for(message):
            return [refusal(message, "The client does not support this")]
        ahead = self._answers.answer_ahead(self._questions.add(message))
        return [] if ahead is None else [ahead]

    def _turn_down(self, event: Asked) -> list[Command]:
        """A question when nobody will answer any more: say so, lest the server waits for ever."""
        return [refusal(event.message, "The client is gone")]

    def _relay(self, event: Notified) -> list[Command]:
        return [*self._notices.relay(event.message)]

    def _hold(self, event: Notified) -> list[Command]:
        """The client is away, and is told when it comes back."""
        self._notices.hold(event.message)
        return []

    def _drop_question(self, event: Withdrew) -> list[Command]:
        self._questions.withdraw(event.request_id)
        return []

    def _drop_gathered(self, event: Withdrew) -> list[Command]:
        self._questions.withdraw(event.request_id)
        if not self._questions and not self._missing:
            self.state = State.WAITING
        return []

    def _interrupt(self, event: Broke) -> list[Command]:
        if event.resumable:
            return [Resume()]
        return [*self._abandon("the stream broke"), Fail(event.error)]

    def _detach(self, event: Broke) -> list[Command]:
        """The stream ended while the client is away: it is picked up when the client comes back, if it can be."""
        if event.resumable:
            self._detached = True
            return []
        commands = self._abandon("the stream broke")
        self.state = State.SETTLED
        self._settlement = Fail(lost())
        return commands

    # --- the client speaks, or stays silent ---

    def _require_input(self, _event: Quieted) -> list[Command]:
        if self._missing:
            return self._refuse_undeclared()
        return self._ask()

    def _take_answers(self, event: Answered) -> list[Command]:
        posts = self._answers.take(event.leg)
        commands: list[Command] = [*self._notices.begin(event.leg), *(() if event.is_delivered else posts)]
        if self._questions:
            self._missing = self._questions.missing_for(event.leg.capabilities)
            return [*commands, *(self._refuse_undeclared() if self._missing else self._ask())]
        self.state = State.WAITING
        if self._detached:
            self._detached = False
            commands.append(Resume())
        return commands

    def _hand_over(self, event: Answered) -> list[Command]:
        self.state = State.CLOSED
        settlement = [] if self._settlement is None else [self._settlement]
        return [*self._notices.begin(event.leg), *settlement]

    def _cancel_call(self, _event: ClientLeft) -> list[Command]:
        return self._abandon("the client closed the request")

    def _time_out(self, event: TimedOut) -> list[Command]:
        return [*self._abandon("timed out"), Fail(event.error)]

    def _expire(self, _event: Expired) -> list[Command]:
        return self._abandon("nobody answered in time")

    def _close_in_silence(self, _event: Expired | Overtaken) -> list[Command]:
        self.state = State.CLOSED
        return []

    def _give_up(self, event: Overtaken) -> list[Command]:
        self.state = State.CLOSED
        return [Fail(event.error)]

    # --- cells of the table that do nothing, or must not be reached ---

    def _ignore(self, _event: Event) -> list[Command]:
        return []

    def _impossible(self, event: Event) -> list[Command]:
        raise AssertionError(f"{type(event).__name__} cannot happen to an exchange that is {self.state.name}")

    # --- what the transitions share ---

    def _screen(self, message: JsonObject) -> list[Command] | None:
        """What to do about a request of the server that is no new question; None if it is one."""
        if self._questions.has_seen(message):
            return []
        fault = self._questions.fault_of(message)
        return None if fault is None else [fault]

    def _missing_for(self, message: JsonObject) -> JsonObject | None:
        if self.method not in methods.ASKING:
            return None
        return self._answers.missing_for(message)

    def _ask(self) -> list[Command]:
        self.state = State.SUSPENDED
        self._answers.hold()
        self.rounds += 1
        return [RequireInput(self._questions.to_input_requests())]

    def _refuse_undeclared(self) -> list[Command]:
        return [*self._abandon("the client lacks a capability"), self._undeclared()]

    def _undeclared(self) -> Fail:
        self.state = State.CLOSED
        return Fail(undeclared(self._missing))

    def _abandon(self, reason: str) -> list[Command]:
        """Leave nothing open at the server: neither a question nor the call."""
        self.state = State.CLOSED
        return [*self._questions.cancel_all(), self._cancel(reason)]

    def _cancel(self, reason: str) -> Post:
        return Post(notification(methods.CANCELLED, {"requestId": self.request_id, "reason": reason}))


Handler: TypeAlias = Callable[[Exchange, Any], list[Command]]

TRANSITIONS: Final[dict[tuple[State, type], Handler]] = {
    cell: getattr(Exchange, name) for cell, name in HANDLERS.items()
}
"""For every state and every event, the method that handles it."""
