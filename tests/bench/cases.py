"""What is measured: the cases of a full run and of a quick one, and the floors."""

from dataclasses import dataclass, replace
from fnmatch import fnmatch
from typing import Final


@dataclass(frozen=True, slots=True)
class Case:
    """One row of the table: how the upstream answers, how much, to how many connections at a time."""

    reply: str
    size: str
    connections: int
    asking: bool = False

    @property
    def name(self) -> str:
        """The name for `--only`, such as `json-1k-c32` or `asking-sse-1k-c32`."""
        return f"{'asking-' if self.asking else ''}{self.reply}-{self.size}-c{self.connections}"

    @property
    def tool(self) -> str:
        """The canned upstream's tool for this case."""
        return f"{self.reply}_{self.size}"


@dataclass(frozen=True, slots=True)
class Plan:
    """A run.

    Args:
        cases: of the table of calls.
        rounds: how often each target gets its turn.
        seconds: how long a turn is.
        warm_up_s: before the first one.
        cold_starts: how many gateways are started afresh.
        suspended: calls that wait while their memory is looked at.
        beside: calls that wait, and streams that are open, while others are made.
    """

    cases: tuple[Case, ...]
    rounds: int
    seconds: float
    warm_up_s: float
    cold_starts: int
    suspended: int
    beside: int


_SIZED: Final = (("1k", (1, 32, 128)), ("64k", (1, 32, 128)), ("1m", (1, 32, 128)))

FULL: Final = Plan(
    cases=(
        *(Case(reply, size, n) for size, counts in _SIZED for reply in ("json", "sse") for n in counts),
        *(Case(reply, "1k", n, asking=True) for reply in ("json", "sse") for n in (1, 32)),
    ),
    rounds=5,
    seconds=1.0,
    warm_up_s=0.6,
    cold_starts=5,
    suspended=8000,
    beside=1000,
)

QUICK: Final = Plan(
    cases=(Case("json", "1k", 1), Case("json", "1k", 32), Case("sse", "1k", 32)),
    rounds=5,
    seconds=0.3,
    warm_up_s=0.3,
    cold_starts=1,
    suspended=640,
    beside=200,
)

GUARD: Final = replace(QUICK, cases=(Case("json", "1k", 32),))

CEILINGS: Final = {"json-1k-c32": 1.5}
"""The most processor time that a call may cost, in calls of the bare proxy, under `--guard`."""

COLD_START: Final = "cold-start"
ROUNDS: Final = "rounds"
SUSPENDED: Final = "suspended"
STREAMS: Final = "streams"
MIXED: Final = "mixed"
SCALING: Final = "scaling"
MERGED: Final = "merged"
REPLICAS: Final = "replicas"
SUSPENDED_SHARED: Final = "suspended-shared"


def is_chosen(name: str, pattern: str | None) -> bool:
    """Whether a shell pattern names this measurement; without a pattern all are chosen."""
    return pattern is None or fnmatch(name, pattern)
