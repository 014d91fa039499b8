"""What a simulation came to, as Markdown."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from random import Random
from typing import Any

from tests.simulation.costs import Costs
from tests.simulation.placement import busiest_part
from tests.simulation.scenarios import Change, Loss, Plan, Scenarios, Steady
from tests.simulation.workload import Workload

CONNECTIONS, SHAPE = 20_000, 1.5
DRAIN_S = 40
LOOKS_S = (60, 120, 300)
PARTS = (3, 6, 12, 24)
HOME = (0.0, 0.5, 0.9)
_ROOM = 0.6
"""How busy a store should be at most, so that it answers at once."""


Run = Callable[[Callable[[str], object], Iterable[str]], Iterable[Any]]
"""Applies a function to each of some names, as `map` does."""


def report(plan: Plan, costs: Costs, workload: Workload, run: Run = map) -> str:
    """Runs every scenario.

    Args:
        plan: how large.
        costs: what things cost.
        workload: what users do.
        run: a `map`, which may use several processes.
    """
    names = ("restart", "out", "pinned", "third", "tenth", "one", "steady")
    seen = dict(zip(names, run(partial(_scenario, plan, costs, workload), names), strict=True))
    steady: Steady = seen["steady"]
    parts = [
        assumed(plan, workload),
        _store(plan, costs, workload, steady),
        _home(plan, costs, steady),
        _cluster(plan, costs, steady),
        _placement(steady, seen["pinned"], costs, plan),
        _losses(seen[name] for name in ("one", "tenth", "third")),
        _changes(seen["restart"], seen["out"], plan),
    ]
    return "\n\n".join(parts)


@cache
def _scenarios(plan: Plan, costs: Costs, workload: Workload) -> Scenarios:
    """One for each process, since it takes a while to fill."""
    return Scenarios(plan, costs, workload)


def _scenario(plan: Plan, costs: Costs, workload: Workload, name: str) -> object:
    scenarios = _scenarios(plan, costs, workload)
    tenth, third = max(1, plan.replicas // 10), max(1, plan.replicas // 3)
    run: dict[str, Callable[[], object]] = {
        "steady": scenarios.steady,
        "pinned": lambda: scenarios.by_connection(CONNECTIONS, SHAPE),
        "one": lambda: scenarios.loss(1),
        "tenth": lambda: scenarios.loss(tenth),
        "third": lambda: scenarios.loss(third),
        "restart": lambda: scenarios.rolling_restart(tenth, DRAIN_S),
        "out": lambda: scenarios.scale_out(plan.replicas // 4, LOOKS_S),
    }
    return run[name]()


def assumed(plan: Plan, workload: Workload) -> str:
    """What a run rests on."""
    waits = workload.waits()
    return (
        f"{plan.replicas:,} replicas, {plan.rounds:,} suspended rounds, seed {plan.seed}. Assumed: users answer after "
        f"{workload.quick_s:.0f} s in the mean, {workload.slow:.0%} of them after {workload.slow_s:.0f} s; "
        f"{workload.gone:.0%} of the rounds are left to expire after {workload.ttl_s} s (all in all "
        f"{sum(waits) / len(waits):.0f} s); {workload.again:.0%} of the answers lead to another question. That is "
        f"{workload.calls_per_s(plan.rounds, waits):,.0f} calls a second."
    )


def _store(plan: Plan, costs: Costs, workload: Workload, steady: Steady) -> str:
    cores = _cores(steady.commands_per_s, costs)
    idle = plan.replicas * costs.idle_commands
    most = (_ROOM * 1e6 / costs.command_us - idle) / costs.relayed_commands
    waits = workload.waits()
    mean_wait_s = sum(waits) / len(waits)
    rows = [
        ("retries a second", f"{steady.rounds_per_s:,.0f}, {steady.relayed:.1%} of them relayed"),
        ("commands a second", f"{steady.commands_per_s:,.0f}, {idle:,.0f} of them heartbeats"),
        ("bytes a second, in and out", f"{steady.bytes_per_s / 1e6:,.0f} MB"),
        ("cores that executing them takes", f"{cores:.2f} (one is all that a single Redis or Valkey has)"),
        (f"retries a second that one core bears at {_ROOM:.0%}", f"{most:,.0f}"),
        ("suspended rounds at that rate", f"{most * mean_wait_s / (1 - workload.gone):,.0f}"),
        ("claims kept", f"{steady.rounds_per_s * costs.claim_s * costs.claim_bytes / 1e9:,.1f} GB"),
        ("connections that wait for messages", f"{plan.replicas:,}"),
        ("other connections", f"{plan.replicas:,} at least, {plan.replicas * costs.connections:,} at most"),
    ]
    return _table(("at the store", ""), rows)


def _home(plan: Plan, costs: Costs, steady: Steady) -> str:
    rows = []
    for share in HOME:
        rounds = steady.rounds_per_s
        commands = plan.replicas * costs.idle_commands + rounds * (
            share * costs.local_commands + (1 - share) * costs.relayed_commands
        )
        traffic = plan.replicas * costs.idle_bytes + rounds * (
            share * costs.local_bytes + (1 - share) * costs.relayed_bytes
        )
        rows.append((f"{share:.0%}", f"{commands:,.0f}", f"{traffic / 1e6:,.0f}", f"{_cores(commands, costs):.2f}"))
    return _table(("retries that land at home", "commands a second", "MB a second", "store cores"), rows)


def _cluster(plan: Plan, costs: Costs, steady: Steady) -> str:
    rows = []
    for parts in PARTS:
        busiest = busiest_part(Random(plan.seed), plan.replicas, parts)  # noqa: S311
        share = _cores(steady.commands_per_s, costs) / parts
        rows.append((f"{parts}", f"{share:.2f}", f"{busiest:.2f}", f"{share * busiest:.2f}"))
    return _table(("parts of a cluster", "cores each", "busiest, times the mean", "cores of the busiest"), rows)


def _placement(steady: Steady, pinned: Steady, costs: Costs, plan: Plan) -> str:
    rows = []
    for name, seen in (("requests one by one", steady), (f"{CONNECTIONS:,} connections", pinned)):
        most = seen.held[0] * plan.rounds / plan.replicas
        rows.append(
            (
                name,
                f"{seen.held[0]:.2f}",
                f"{seen.held[1]:.2f}",
                f"{most:,.0f} ({most * costs.round_kb / 1000:,.0f} MB)",
                f"{seen.busy_share * seen.busy[0]:.1%}",
            )
        )
    head = ("what is balanced", "most rounds, times the mean", "least", "most rounds", "of a core, the busiest")
    return _table(head, rows)


def _losses(losses: Iterable[Loss]) -> str:
    rows = [
        (
            f"{loss.replicas:,}",
            f"{loss.rounds:,}",
            f"{loss.delayed:,}",
            f"{loss.peak_per_s:,}",
            f"{loss.mean_per_s:,.0f}",
            f"{loss.peak_each:.2f}",
            f"{loss.commands:.2f}",
        )
        for loss in losses
    ]
    head = (
        "replicas killed",
        "rounds they kept",
        "retries that waited until it was known",
        "most taken over in a second",
        "a second, in the first minute",
        "most by one replica",
        "store commands, times before",
    )
    return _table(head, rows)


def _changes(restart: Sequence[Change], out: Sequence[Change], plan: Plan) -> str:
    rows = []
    for name, changes in (
        (f"all restarted, {plan.replicas // 10:,} at a time", restart),
        (f"{plan.replicas // 4:,} replicas added", out),
    ):
        for change in changes:
            taken = f"{change.recovered:,}" if change.recovered else ""
            peak = f"{change.peak_per_s:,}" if change.recovered else ""
            rows.append((name, f"{change.after_s} s", f"{change.held[0]:.2f}", f"{change.held[1]:.2f}", taken, peak))
    head = ("change", "after", "most rounds, times the mean", "least", "calls taken over", "most in a second")
    return _table(head, rows)


def _cores(commands_per_s: float, costs: Costs) -> float:
    return commands_per_s * costs.command_us / 1e6


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = "|---|" + "--:|" * (len(head) - 1)
    return "\n".join([f"| {' | '.join(head)} |", rule, *(f"| {' | '.join(row)} |" for row in rows)])
