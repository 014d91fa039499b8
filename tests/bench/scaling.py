"""Two processes against one: the same load, on one gateway or shared by two, and likewise on the bare proxy.

Upstream and load generators run on the same cores, so that twice the speed is out of reach; the bare proxy tells how
much of it is to be had.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.bench.cases import Plan
from tests.bench.load import Load
from tests.bench.processes import Target, put_loads, start_bare, start_gateway

_TOOL = "json_1k"
_CONNECTIONS = 32


@dataclass(frozen=True, slots=True)
class Scaling:
    """Calls a second of one process and of two, and the median of the ratios round by round."""

    name: str
    one: float
    two: float
    ratio: float


def measure_scaling(plan: Plan, upstream: Target, folder: Path) -> list[Scaling]:
    """Measures the gateway and the bare proxy."""
    return [
        _measure("gateway", plan, lambda: start_gateway(upstream, folder)),
        _measure("bare", plan, lambda: start_bare(upstream)),
    ]


def _measure(name: str, plan: Plan, make: Callable[[], Target]) -> Scaling:
    with ExitStack() as stack:
        pair = [make() for _ in range(2)]
        for target in pair:
            stack.callback(target.stop)
        _rate(pair, plan.warm_up_s)
        rounds = [_round(pair, plan.seconds, number) for number in range(plan.rounds)]
    return Scaling(
        name,
        one=median(one for one, _ in rounds),
        two=median(two for _, two in rounds),
        ratio=median(two / one for one, two in rounds),
    )


def _round(pair: Sequence[Target], seconds: float, number: int) -> tuple[float, float]:
    alone = pair[number % 2]
    if number % 2:
        two = _rate(pair, seconds)
        return _rate([alone, alone], seconds), two
    return _rate([alone, alone], seconds), _rate(pair, seconds)


def _rate(targets: Sequence[Target], seconds: float) -> float:
    """Calls a second of two loads at the same time, one for each of the targets."""
    return sum(sample.rate for sample in put_loads([Load(one.port, _TOOL, _CONNECTIONS, seconds) for one in targets]))
