"""Plays a dialogue with an exchange: events in, commands out, and where that leaves it.

    assert (
        Playbook(call())
        >> Asked(form(0))
        << Gather()
        << State.GATHERING
        >> Quieted()
        << RequireInput({"elicitation_1": input_request()})
        << State.SUSPENDED
    )

`>>` is what happens, `<<` is what the exchange must say to it, in order and with nothing left out; a `State` among the
answers says where the exchange then stands. `<< Impossible` says that the event must never happen there. Nothing runs
before the end: the assertion plays the dialogue, and shows both versions of it, side by side, where they differ.
"""

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, Self

from gateway.core.exchange import Exchange
from gateway.core.transitions import State
from gateway.errors import GatewayError, ProtocolError, UpstreamError

Step = tuple[State, type, State | None]
"""From where, by which event, to where; None: it was refused as impossible."""

_recordings: list[set[Step]] = []


@contextmanager
def recording() -> Iterator[set[Step]]:
    """Collect the steps of all dialogues that are played meanwhile."""
    steps: set[Step] = set()
    _recordings.append(steps)
    try:
        yield steps
    finally:
        _recordings.remove(steps)


class Impossible:
    """Stands for the assertion that names an event and the state in which it must not happen."""


class Playbook:
    """A dialogue with an exchange; see the module."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._lines: list[tuple[Any, list[Any]]] = []

    def __rshift__(self, event: Any) -> Self:
        self._lines.append((event, []))
        return self

    def __lshift__(self, answer: Any) -> Self:
        self._lines[-1][1].append(answer)
        return self

    def __bool__(self) -> bool:
        expected: list[str] = []
        actual: list[str] = []
        for event, answers in self._lines:
            expected += [f">> {show(event)}", *_told(answers)]
            actual += [f">> {show(event)}", *_told(self._play(event, answers))]
        if expected != actual:
            diff = difflib.ndiff(expected, actual)
            raise AssertionError(
                "the dialogue went otherwise (-: expected, +: what happened)\n\n"
                + "\n".join(line for line in diff if line[0] != "?")
            )
        return True

    def _play(self, event: Any, answers: list[Any]) -> list[Any]:
        """Let the event happen; tell the state only where the dialogue does."""
        before = self._exchange.state
        try:
            said: list[Any] = list(self._exchange.receive(event))
        except AssertionError as error:
            _record((before, type(event), None))
            assert type(event).__name__ in str(error), error
            assert before.name in str(error), error
            return [Impossible]
        _record((before, type(event), self._exchange.state))
        if any(isinstance(answer, State) for answer in answers):
            said.append(self._exchange.state)
        return said


def show(value: Any) -> str:
    """A value as a dialogue shows it: dataclasses by their fields, errors by what they tell the client."""
    if isinstance(value, State):
        return f"State.{value.name}"
    if value is Impossible:
        return "Impossible"
    if isinstance(value, ProtocolError):
        return f"ProtocolError({value.code}, {value.message!r}, {value.data!r})"
    if isinstance(value, UpstreamError):
        return f"UpstreamError({value.reason!r}, {value.message!r})"
    if is_dataclass(value) and not isinstance(value, type):
        told = (f"{field.name}={show(getattr(value, field.name))}" for field in fields(value) if field.repr)
        return f"{type(value).__name__}({', '.join(told)})"
    assert not isinstance(value, GatewayError), value
    return repr(value)


def _told(answers: list[Any]) -> list[str]:
    return [f"<< {show(answer)}" for answer in answers]


def _record(step: Step) -> None:
    for steps in _recordings:
        steps.add(step)
