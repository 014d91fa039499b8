"""The merged endpoint: ten upstreams behind one path, beside the same gateway with one of them."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.bench.cases import Plan
from tests.bench.load import Load
from tests.bench.measure import Side, Turns, alternate
from tests.bench.messages import CALL
from tests.bench.processes import Target, start_gateway

UPSTREAMS = 10
_TOOL = "json_1k"
_LIST = "tools/list"


@dataclass(frozen=True, slots=True)
class Merging:
    """One method, merged (side 0) and with one upstream (side 1)."""

    method: str
    turns: Turns


def measure_merging(plan: Plan, upstream: Target, folder: Path) -> list[Merging]:
    """Measures calls and lists."""
    with ExitStack() as stack:
        merged = start_gateway(upstream, folder, upstreams=UPSTREAMS)
        stack.callback(merged.stop)
        single = start_gateway(upstream, folder)
        stack.callback(single.stop)
        return [
            Merging(
                method,
                alternate(
                    [
                        Side(merged, Load(merged.port, _TOOL, 32, plan.seconds, method=method, name=name)),
                        Side(single, Load(single.port, _TOOL, 32, plan.seconds, method=method)),
                    ],
                    plan.rounds,
                    plan.warm_up_s,
                ),
            )
            for method, name in ((CALL, f"bench{UPSTREAMS // 2}__{_TOOL}"), (_LIST, ""))
        ]
