"""Dialogues that nobody wrote: whatever a server and a client do, in whatever order, the exchange keeps its promises.

No possible event fails. A question is answered at most once, and when a call is cut short no question is left without
an answer. Each request of the client ends at most once. A call is cancelled at most once, and never after its response.
"""

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

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
    Notified,
    Post,
    Quieted,
    RequireInput,
    Responded,
    TimedOut,
    Withdrew,
)
from gateway.core.transitions import HANDLERS, IMPOSSIBLE, State
from gateway.errors import ProtocolError
from gateway.wire.jsonrpc import JsonObject
from tests.playbook.vocabulary import CALL_ID, CUT, EVERYTHING, FORM, PAGE, PROMPT, RESULT, SILENT, leg

ids = st.integers(0, 5) | st.sampled_from(["0", "1", "a", "el-9"])
json = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["mode", "title", "x"]), inner),
    max_leaves=4,
)
params = st.sampled_from([FORM, PAGE, PROMPT, {}, None]) | json | st.fixed_dictionaries({"requestedSchema": json})
questions = st.sampled_from(["elicitation/create", "sampling/createMessage", "roots/list", "tasks/get"])
capabilities = st.sampled_from([EVERYTHING, {}, {"elicitation": {}}, {"roots": {}, "sampling": {}}])
names = st.sampled_from(["elicitation_1", "elicitation_2", "sampling_1", "roots_1", "a", "el-9", "unknown"])
answers = st.dictionaries(
    names,
    st.sampled_from(
        [
            {"action": "cancel"},
            {"action": "accept", "content": {"name": "Ada"}},
            {"roots": []},
            {"role": "user", "content": {"type": "text", "text": ""}, "model": "m"},
            {},
        ]
    ),
    max_size=4,
)
notices = st.sampled_from(["notifications/progress", "notifications/message", "notifications/other"])
legs = st.builds(
    leg,
    answers,
    capabilities=capabilities,
    progress=st.none() | st.sampled_from(["p", 7]),
    logs=st.none() | st.sampled_from(["debug", "error"]),
)


class Walk(RuleBasedStateMachine):
    """One call, and every event that may happen to it."""

    @initialize(
        first=legs,
        method=st.sampled_from(["tools/call", "tools/call", "resources/read", "tools/list"]),
        unanswerable=st.sampled_from([None, None, None, CUT]),
    )
    def begin(self, first: Any, method: str, unanswerable: Any) -> None:
        """The client makes a call."""
        self.exchange = Exchange(method, CALL_ID, first, unanswerable=unanswerable)
        self.asked: dict[tuple[type, Any], str] = {}
        self.withdrawn: set[tuple[type, Any]] = set()
        self.replies: Counter[tuple[type, Any]] = Counter()
        self.endings = 0
        self.legs = 1
        self.cancellations = 0
        self.has_responded = False

    def happen(self, event: Event) -> None:
        """Let something happen, if it can; and hear what the exchange says to it."""
        if HANDLERS[self.exchange.state, type(event)] == IMPOSSIBLE:
            return
        was_closed = self.exchange.is_closed
        if isinstance(event, Answered):
            self.legs += 1
        for command in self.exchange.receive(event):
            if isinstance(command, Post):
                self.hear(command.message)
            self.endings += isinstance(command, RequireInput | Complete | Fail)
            assert not (was_closed and isinstance(command, RequireInput | Complete | Fail))
            if isinstance(command, RequireInput):
                assert command.input_requests
                assert self.exchange.state is State.SUSPENDED

    def hear(self, message: JsonObject) -> None:
        """The server hears something."""
        if "method" in message:
            assert message["method"] == "notifications/cancelled"
            assert message["params"]["requestId"] == CALL_ID
            assert not self.has_responded
            self.cancellations += 1
            return
        key = (type(message["id"]), message["id"])
        assert key in self.asked
        self.replies[key] += 1

    @rule(request_id=ids, method=questions, params=params)
    def ask(self, request_id: Any, method: str, params: Any) -> None:
        """The server asks; an id only once, as JSON-RPC has it."""
        key = (type(request_id), request_id)
        if key not in self.asked:
            self.asked[key] = method
            self.happen(Asked({"id": request_id, "method": method, "params": params}))

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def repeat(self, data: st.DataObject) -> None:
        """A resumed stream repeats a question that was put."""
        kind, request_id = data.draw(st.sampled_from(sorted(self.asked, key=repr)))
        if self.exchange._questions.has_seen({"id": request_id}) and not self.exchange.is_closed:
            before = self.replies.copy()
            if self.exchange.state is not State.SETTLED:
                self.happen(Asked({"id": request_id, "method": self.asked[kind, request_id], "params": {}}))
                assert self.replies == before

    @rule(method=notices, params=json)
    def notify(self, method: str, params: Any) -> None:
        """The server tells something, maybe nonsense."""
        self.happen(Notified({"method": method, "params": params}))

    @rule(request_id=ids)
    def withdraw(self, request_id: Any) -> None:
        """The server withdraws a question, or something that it never asked."""
        self.withdrawn.add((type(request_id), request_id))
        self.happen(Withdrew(request_id))

    @rule()
    def quieten(self) -> None:
        """The quiet time ends, whether or not it had begun."""
        self.happen(Quieted())

    @rule(retry=legs)
    def retry(self, retry: Any) -> None:
        """The client retries, unless its answers are wrong."""
        try:
            self.exchange.check(retry.answers)
        except ProtocolError as error:
            assert error.code == -32602
            return
        self.happen(Answered(retry))

    @precondition(lambda self: not self.has_responded)
    @rule()
    def respond(self) -> None:
        """The server answers the call."""
        self.has_responded = True
        self.happen(Responded(RESULT))

    @rule(event=st.sampled_from([Broke(True, CUT), Broke(False, CUT), ClientLeft(), TimedOut(SILENT), Expired()]))
    def end(self, event: Event) -> None:
        """Something ends it, or pauses it."""
        if self.has_responded and isinstance(event, Broke | TimedOut):
            return  # nobody reads on after the response
        self.happen(event)

    @invariant()
    def a_question_has_at_most_one_answer(self) -> None:
        """Else the second would answer somebody else's question, some day."""
        assert not [key for key, count in self.replies.items() if count > 1]

    @invariant()
    def a_request_ends_at_most_once(self) -> None:
        """And none of the client's requests is left open when it makes the next."""
        assert self.legs - 1 <= self.endings <= self.legs

    @invariant()
    def a_call_is_cancelled_at_most_once(self) -> None:
        """It has only one id."""
        assert self.cancellations <= 1

    @invariant()
    def no_question_is_left_when_a_call_is_cut_short(self) -> None:
        """A server that finished has no use for answers; one that was cut short might wait for them."""
        lost = self.exchange._settlement is not None
        if self.exchange.is_closed and not self.has_responded and not lost:
            open_ones = self.asked.keys() - self.replies.keys() - self.withdrawn
            assert not open_ones or self.cancellations


TestWalk = Walk.TestCase
TestWalk.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
