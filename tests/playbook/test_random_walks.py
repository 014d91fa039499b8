"""Dialogues that nobody wrote: whatever a server and a client do, in whatever order, the exchange keeps its promises.

No possible event fails. A question is answered at most once, and put to the client only if the client could answer it.
Each request of the client ends exactly once. A call is cancelled at most once, and never after its response; a call
that is cut short leaves no question without an answer.
"""

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest

from gateway.core.exchange import Exchange
from gateway.core.exchange_events import (
    Answered,
    Asked,
    Broke,
    ClientLeft,
    Complete,
    Event,
    Expired,
    Fail,
    Leg,
    Notified,
    Overtaken,
    Post,
    Quieted,
    RequireInput,
    Responded,
    TimedOut,
    Withdrew,
)
from gateway.core.transitions import HANDLERS, IMPOSSIBLE, State
from gateway.errors import ProtocolError
from gateway.translate.capabilities import missing_for
from gateway.wire.jsonrpc import JsonObject
from tests.playbook.vocabulary import CALL_ID, CUT, EVERYTHING, FORM, PAGE, PROMPT, RESULT, SILENT
from tests.support.playbook import show

WALKS: Final = 250
STEPS: Final = 40

FITTING: Final[dict[str, JsonObject]] = {
    "elicitation/create": {"action": "decline"},
    "sampling/createMessage": {"role": "user", "content": {"type": "text", "text": ""}, "model": "m"},
    "roots/list": {"roots": []},
}
METHODS: Final = (*FITTING, "elicitation/create", "elicitation/create", "tasks/get")
ODD: Final[tuple[Any, ...]] = (
    None,
    {},
    [],
    ["x"],
    "x",
    7,
    True,
    {"mode": 7},
    {"requestedSchema": []},
    {"requestedSchema": {"title": 7}},
)
LESS: Final[tuple[JsonObject, ...]] = ({}, {"elicitation": {}}, {"roots": {}, "sampling": {}})


class Walk:
    """One call, and what happens to it."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.leg = self._leg({})
        method = dice.choice(["tools/call", "tools/call", "prompts/get", "tools/list"])
        self.exchange = Exchange(method, CALL_ID, self.leg, unanswerable=CUT if dice.random() < 0.05 else None)
        self.asked: dict[tuple[type, Any], JsonObject] = {}
        self.withdrawn: set[tuple[type, Any]] = set()
        self.replies: Counter[tuple[type, Any]] = Counter()
        self.endings = 0
        self.legs = 1
        self.cancellations = 0
        self.has_responded = False
        self.is_overtaken = False
        self.story: list[str] = []

    def run(self) -> None:
        """Let things happen until nothing more can."""
        moves: list[tuple[int, Callable[[], None]]] = [
            (8, self.ask),
            (2, self.repeat),
            (3, self.notify),
            (2, self.withdraw),
            (6, lambda: self.happen(Quieted())),
            (8, self.retry),
            (1, self.respond),
            (1, self.end),
        ]
        weights, choices = zip(*moves, strict=True)
        for _ in range(STEPS):
            self.dice.choices(choices, weights)[0]()
            assert self.legs - 1 <= self.endings <= self.legs
            assert self.cancellations <= 1
            assert all(count == 1 for count in self.replies.values())
        if self.exchange.is_closed:
            assert self.cancellations or self.has_responded or self.is_overtaken or self.exchange._settlement

    def happen(self, event: Event) -> None:
        """Let something happen, if it can; and hear what the exchange says to it."""
        if HANDLERS[self.exchange.state, type(event)] == IMPOSSIBLE:
            return
        was_closed = self.exchange.is_closed
        self.is_overtaken |= isinstance(event, Overtaken) and not was_closed
        self.story.append(f">> {show(event)}")
        if isinstance(event, Answered):
            self.legs += 1
            self.leg = event.leg
        for command in self.exchange.receive(event):
            self.story.append(f"<< {show(command)}")
            if isinstance(command, Post):
                assert not isinstance(event, Overtaken)
                self.hear(command.message)
            elif isinstance(command, RequireInput | Complete | Fail):
                assert not was_closed
                self.endings += 1
                self.end_leg(command)
        if self.exchange.is_closed and not was_closed and isinstance(event, ClientLeft | Expired | TimedOut | Broke):
            self.endings += isinstance(event, ClientLeft)
            self.no_question_is_left()

    def end_leg(self, ending: RequireInput | Complete | Fail) -> None:
        """The client's request ends."""
        if not isinstance(ending, RequireInput):
            assert self.exchange.is_closed
            return
        assert self.exchange.state is State.SUSPENDED
        assert ending.input_requests
        for question in ending.input_requests.values():
            assert missing_for(question["method"], question["params"], self.leg.capabilities) is None

    def hear(self, message: JsonObject) -> None:
        """The server hears something."""
        if "method" in message:
            assert message["params"]["requestId"] == CALL_ID
            assert not self.has_responded
            self.cancellations += 1
            return
        key = (type(message["id"]), message["id"])
        assert key in self.asked
        self.replies[key] += 1

    def no_question_is_left(self) -> None:
        """The server might wait for an answer for ever."""
        if not self.has_responded:
            assert self.asked.keys() <= self.replies.keys() | self.withdrawn

    # --- what may happen ---

    def ask(self) -> None:
        """The server asks something, under an id that it has not used yet."""
        request_id = self.dice.choice([len(self.asked), f"q-{len(self.asked)}", str(len(self.asked))])
        method = self.dice.choice(METHODS)
        usual = {"sampling/createMessage": PROMPT, "elicitation/create": self.dice.choice([FORM, PAGE])}
        params = usual.get(method, {}) if self.dice.random() < 0.8 else self.dice.choice(ODD)
        message = {"id": request_id, "method": method, "params": params}
        self.asked[type(request_id), request_id] = message
        self.happen(Asked(message))

    def repeat(self) -> None:
        """A resumed stream repeats a question that was put; while anybody reads on, it is no new question."""
        known = [message for message in self.asked.values() if self.exchange._questions.has_seen(message)]
        if known and self.exchange.state not in (State.SETTLED, State.CLOSED):
            before = self.replies.copy()
            self.happen(Asked(self.dice.choice(known)))
            assert self.replies == before

    def notify(self) -> None:
        """The server tells something, maybe nonsense."""
        kind = self.dice.choice(["progress", "message", "other"])
        told = [{"progressToken": CALL_ID, "progress": self.dice.random()}, {"level": "error", "data": "x"}, *ODD]
        self.happen(Notified({"method": f"notifications/{kind}", "params": self.dice.choice(told)}))

    def withdraw(self) -> None:
        """The server withdraws a question, or something that it never asked."""
        kind, request_id = self.dice.choice([*self.asked, (int, 99)])
        self.withdrawn.add((kind, request_id))
        self.happen(Withdrew(request_id))

    def retry(self) -> None:
        """The client comes back, with answers to some of its questions, unless they are wrong."""
        if not self.exchange.awaits_client:
            return
        asked = self.exchange._questions.to_input_requests()
        answers = {name: FITTING[asked[name]["method"]] for name in asked if self.dice.random() < 0.7}
        if self.dice.random() < 0.1:
            answers |= {self.dice.choice([*asked, "unknown", "roots_2"]): {}}
        try:
            self.exchange.check(answers)
        except ProtocolError as error:
            assert error.code == -32602
            return
        self.happen(Answered(self._leg(answers)))

    def respond(self) -> None:
        """The server answers the call."""
        if not self.has_responded:
            self.has_responded = True
            self.happen(Responded(RESULT))

    def end(self) -> None:
        """Something ends the call, or pauses it; after the response nobody reads on or waits for the server."""
        causes: list[Event] = [ClientLeft(), Expired(), Overtaken(CUT)]
        if not self.has_responded:
            causes += [Broke(True, CUT), Broke(False, CUT), TimedOut(SILENT)]
        self.happen(self.dice.choice(causes))

    def _leg(self, answers: JsonObject) -> Leg:
        capabilities = EVERYTHING if self.dice.random() < 0.9 else self.dice.choice(LESS)
        return Leg(capabilities, self.dice.choice([None, "p", 7]), self.dice.choice([None, "debug", "error"]), answers)


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_in_whatever_order(seed: int) -> None:
    rounds: Counter[int] = Counter()
    for number in range(WALKS):
        walk = Walk(random.Random(f"{seed}-{number}"))  # noqa: S311 -- the same at every run
        try:
            walk.run()
        except AssertionError as error:
            raise AssertionError("\n".join([f"walk {seed}-{number}", *walk.story])) from error
        rounds[walk.exchange.rounds] += 1
    assert sum(count for number, count in rounds.items() if number > 1) > WALKS / 10, "these walks lead nowhere"


def test_the_walks_get_everywhere() -> None:
    cells = {cell for number in range(4 * WALKS) for cell in _cells_of(Walk(random.Random(f"far-{number}")))}  # noqa: S311
    assert cells == {cell for cell, handler in HANDLERS.items() if handler != IMPOSSIBLE}


def _cells_of(walk: Walk) -> set[tuple[State, type]]:
    cells: set[tuple[State, type]] = set()
    receive = walk.exchange.receive

    def watched(event: Event) -> Any:
        cells.add((walk.exchange.state, type(event)))
        return receive(event)

    walk.exchange.receive = watched  # type: ignore[method-assign]
    walk.run()
    return cells
