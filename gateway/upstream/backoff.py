"""Pauses between attempts to open what keeps breaking: longer and longer, and spread by chance."""

import asyncio
import random
from collections.abc import Sequence
from typing import Final

PAUSES_S: Final = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class Backoff:
    """The pauses of one thing that is opened again and again.

    Args:
        pauses_s: one after the other; the last one is repeated. By default `PAUSES_S`.
    """

    def __init__(self, pauses_s: Sequence[float] | None = None) -> None:
        self._pauses_s = pauses_s or PAUSES_S
        self._failures = 0
        self._opened_s = float("-inf")

    @property
    def is_first(self) -> bool:
        """Whether the pause given last was the first after a good while."""
        return self._failures == 1

    def opened(self) -> None:
        """It is open now."""
        self._opened_s = asyncio.get_running_loop().time()

    def next_s(self) -> float:
        """How long to wait before the next attempt; short again after what was open for a good while.

        What closes as soon as it was opened counts as a failure: it would be opened many times a second otherwise.
        """
        lasted_s = asyncio.get_running_loop().time() - self._opened_s
        self._opened_s = float("-inf")
        if self._pauses_s[-1] <= lasted_s < float("inf"):
            self._failures = 0
        pause_s = self._pauses_s[min(self._failures, len(self._pauses_s) - 1)]
        self._failures += 1
        return pause_s * (0.5 + random.random())  # noqa: S311 -- spreads reconnections, guards nothing
