"""Counts the requests of one endpoint by what they asked for and how they ended; looked at when somebody asks."""

from bisect import bisect_left
from collections import Counter
from typing import Final

from gateway.wire import methods

BOUNDS_MS: Final = (5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10_000.0)
"""Upper bounds of the classes of duration, in milliseconds; there is one more, without a bound."""

_OTHER: Final = "other"


class Tally:
    """The requests of one endpoint.

    Attributes:
        ends: how many, by method and HTTP status; a method that a client may have made up counts as "other".
        durations: how many requests fell into each class of duration.
        total_ms: how long all of them took together.
    """

    def __init__(self) -> None:
        self.ends: Counter[tuple[str, int]] = Counter()
        self.durations = [0] * (len(BOUNDS_MS) + 1)
        self.total_ms = 0.0

    def note(self, method: object, status: int, ms: float) -> None:
        """A request has ended."""
        known = method if isinstance(method, str) and method in methods.MODERN_REQUESTS else _OTHER
        self.ends[known, status] += 1
        self.durations[bisect_left(BOUNDS_MS, ms)] += 1
        self.total_ms += ms
