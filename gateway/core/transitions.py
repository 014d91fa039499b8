"""The table of an exchange: for every state and every event, the handler; for every handler, where it leads.

The handlers are methods of `core.exchange.Exchange`. The diagram in docs/rounds.md is drawn from here, and the
playbooks hold both the table and the diagram to what the exchange really does.
"""

from enum import Enum
from typing import Final, Literal, TypeAlias

from gateway.core.exchange_events import (
    Answered,
    Asked,
    Broke,
    ClientLeft,
    Expired,
    Notified,
    Overtaken,
    Quieted,
    Responded,
    TimedOut,
    Withdrew,
)


class State(Enum):
    """Where an exchange stands, in the order in which a conversation gets there."""

    WAITING = "the server works on the call; the client's request is open"
    GATHERING = "the server has asked; more questions may follow within the quiet time"
    SUSPENDED = "the client has the questions, its request has ended; the server's stream is open"
    SETTLED = "the server finished, or was lost, while the client was away; the outcome waits for the retry"
    CLOSED = "the client has its outcome, or will never come back for it"


Target: TypeAlias = State | Literal["stay"]

IMPOSSIBLE: Final = "_impossible"
"""The handler of a cell that the shell promises never to reach."""

_ROWS: Final[dict[type, tuple[str, str, str, str, str]]] = {
    #            WAITING           GATHERING         SUSPENDED         SETTLED            CLOSED
    Responded: ("_finish", "_finish", "_settle", "_ignore", "_ignore"),
    Asked: ("_consider", "_consider", "_keep", "_turn_down", "_turn_down"),
    Notified: ("_relay", "_relay", "_hold", "_ignore", "_ignore"),
    Withdrew: ("_ignore", "_drop_gathered", "_drop_question", "_ignore", "_ignore"),
    Quieted: ("_ignore", "_require_input", "_ignore", "_ignore", "_ignore"),
    Answered: (IMPOSSIBLE, IMPOSSIBLE, "_take_answers", "_hand_over", IMPOSSIBLE),
    Broke: ("_interrupt", "_interrupt", "_detach", "_ignore", "_ignore"),
    ClientLeft: ("_cancel_call", "_cancel_call", IMPOSSIBLE, IMPOSSIBLE, "_ignore"),
    TimedOut: ("_time_out", "_time_out", IMPOSSIBLE, IMPOSSIBLE, "_ignore"),
    Expired: (IMPOSSIBLE, IMPOSSIBLE, "_expire", "_close_in_silence", "_ignore"),
    Overtaken: ("_give_up", "_give_up", "_close_in_silence", "_close_in_silence", "_ignore"),
}

HANDLERS: Final[dict[tuple[State, type], str]] = {
    (state, event): name for event, row in _ROWS.items() for state, name in zip(State, row, strict=True)
}
"""For every state and every event, the name of the method that handles it."""

LEADS_TO: Final[dict[str, tuple[Target, ...]]] = {
    IMPOSSIBLE: (),
    "_ignore": ("stay",),
    "_finish": (State.CLOSED,),
    "_settle": (State.SETTLED,),
    "_consider": ("stay", State.GATHERING, State.CLOSED),
    "_keep": ("stay",),
    "_turn_down": ("stay",),
    "_relay": ("stay",),
    "_hold": ("stay",),
    "_drop_gathered": ("stay", State.WAITING),
    "_drop_question": ("stay",),
    "_require_input": (State.SUSPENDED, State.CLOSED),
    "_take_answers": ("stay", State.WAITING, State.CLOSED),
    "_hand_over": (State.CLOSED,),
    "_interrupt": ("stay", State.CLOSED),
    "_detach": ("stay", State.SETTLED),
    "_cancel_call": (State.CLOSED,),
    "_time_out": (State.CLOSED,),
    "_expire": (State.CLOSED,),
    "_close_in_silence": (State.CLOSED,),
    "_give_up": (State.CLOSED,),
}
"""For every handler, the states that it may leave the exchange in."""


def targets(state: State, event: type) -> frozenset[State]:
    """The states in which an exchange may be after an event; empty for an impossible one."""
    return frozenset(state if target == "stay" else target for target in LEADS_TO[HANDLERS[state, event]])
