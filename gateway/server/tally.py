"""Counts the requests of one endpoint by what they asked for and how they ended.

A request leaves a note and goes on; notes are counted many at a time, which costs a fifth as much.
"""

from bisect import bisect_right
from collections import Counter
from typing import Final, TypeAlias

from gateway.wire import methods

BOUNDS_MS: Final = (5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10_000.0)
"""Upper bounds of the classes of duration, in milliseconds; there is one more, without a bound."""

_OTHER: Final = "other"
_NONE: Final = "none"
_ERROR: Final = "error"
_MOST_NOTES: Final = 500
_RESULTS: Final = frozenset({"complete", "input_required"})

_Note: TypeAlias = tuple[object, int, object, bool]


class Tally:
    """The requests of one endpoint."""

    def __init__(self) -> None:
        self._notes: list[_Note] = []
        self._notes_ms: list[float] = []
        self._ends: Counter[tuple[str, int, str]] = Counter()
        self._durations = [0] * (len(BOUNDS_MS) + 1)
        self._total_ms = 0.0

    def note(self, method: object, status: int, ms: float, result: object, *, is_error: bool) -> None:
        """A request has ended.

        Args:
            method: what it asked for; None: that was not looked at.
            status: of HTTP.
            ms: how long it took.
            result: the kind of its result, if it had one.
            is_error: whether it ended with an error.
        """
        self._notes.append((method, status, result, is_error))
        if method != methods.LISTEN:
            self._notes_ms.append(ms)
        if len(self._notes) >= _MOST_NOTES:
            self._count()

    @property
    def ends(self) -> dict[tuple[str, int, str], int]:
        """How many, by method, HTTP status and outcome: the kind of the result, "error", or "none".

        A method or a kind that somebody may have made up is "other".
        """
        self._count()
        return self._ends

    @property
    def durations(self) -> list[int]:
        """How many fell into each class of duration, without streams of changes, which last."""
        self._count()
        return self._durations

    @property
    def total_ms(self) -> float:
        """How long all of these took together."""
        self._count()
        return self._total_ms

    def _count(self) -> None:
        notes, self._notes = self._notes, []
        for (method, status, result, is_error), count in Counter(notes).items():
            outcome = _ERROR if is_error else _NONE if result is None else _known(result, _RESULTS)
            self._ends[_known(method, methods.MODERN_REQUESTS), status, outcome] += count
        durations, self._notes_ms = sorted(self._notes_ms), []
        self._total_ms += sum(durations)
        below = 0
        for number, bound in enumerate(BOUNDS_MS):
            upto = bisect_right(durations, bound, below)
            self._durations[number] += upto - below
            below = upto
        self._durations[-1] += len(durations) - below


def _known(word: object, words: frozenset[str]) -> str:
    return word if isinstance(word, str) and word in words else _OTHER
