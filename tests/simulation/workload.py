"""How users behave: assumed, since it differs from one service to the next."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

_STEPS = 4096


@dataclass(frozen=True, slots=True)
class Workload:
    """Calls that ask.

    Args:
        quick_s: the mean wait of most users.
        slow_s: that of the others.
        slow: the share of the others.
        gone: the share of rounds to which nobody ever comes back.
        again: the share of answers after which the call asks once more.
        ttl_s: `rounds.ttl`.
    """

    quick_s: float = 30.0
    slow_s: float = 150.0
    slow: float = 0.2
    gone: float = 0.1
    again: float = 0.5
    ttl_s: int = 600

    def waits(self) -> list[int]:
        """Waits in whole seconds, each as likely as the others; `ttl_s` stands for one that nobody ends."""
        gone = round(_STEPS * self.gone)
        slow = round((_STEPS - gone) * self.slow)
        quick = _STEPS - gone - slow
        return [*self._exponential(self.quick_s, quick), *self._exponential(self.slow_s, slow), *[self.ttl_s] * gone]

    def _exponential(self, mean_s: float, count: int) -> list[int]:
        quantiles = (-mean_s * log(1 - (step + 0.5) / count) for step in range(count))
        return [min(max(1, round(wait)), self.ttl_s - 1) for wait in quantiles]

    def calls_per_s(self, suspended: float, waits: Sequence[int]) -> float:
        """How many calls a second keep so many rounds suspended."""
        rounds_per_s = suspended / (sum(waits) / len(waits))
        return rounds_per_s * (1 - self.again * (1 - self.gone))
