"""The parts of a run beside the table of calls: each measures one thing and says it in Markdown."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.bench import report
from tests.bench.cases import (
    COLD_START,
    MERGED,
    MIXED,
    REPLICAS,
    ROUNDS,
    SCALING,
    STREAMS,
    SUSPENDED,
    SUSPENDED_SHARED,
    Plan,
)
from tests.bench.measure import cold_starts
from tests.bench.merging import measure_merging
from tests.bench.processes import Target, start_gateway
from tests.bench.replicas import measure_replicas, shared_state
from tests.bench.replicas_table import replicas
from tests.bench.rounds import measure_rounds
from tests.bench.scaling import measure_scaling
from tests.bench.waiting import measure_waiting

Part = Callable[[Plan, Target, Path], str]


def _cold_start(plan: Plan, upstream: Target, folder: Path) -> str:
    return report.cold(cold_starts(plan.cold_starts, upstream, folder))


def _rounds(plan: Plan, upstream: Target, folder: Path) -> str:
    gateway = start_gateway(upstream, folder)
    try:
        return report.rounds(measure_rounds(plan, gateway))
    finally:
        gateway.stop()


def _suspended(plan: Plan, _upstream: Target, folder: Path) -> str:
    return _table(report.waiting(measure_waiting(plan, folder, suspended=plan.suspended)))


def _streams(plan: Plan, _upstream: Target, folder: Path) -> str:
    return _table(report.waiting(measure_waiting(plan, folder, streams=plan.beside)))


def _mixed(plan: Plan, _upstream: Target, folder: Path) -> str:
    return _table(report.waiting(measure_waiting(plan, folder, suspended=plan.beside, streams=plan.beside)))


def _table(row: str) -> str:
    return f"{report.WAITING_HEAD}\n{row}"


def _scaling(plan: Plan, upstream: Target, folder: Path) -> str:
    return report.scaling(measure_scaling(plan, upstream, folder))


def _merged(plan: Plan, upstream: Target, folder: Path) -> str:
    return report.merging(measure_merging(plan, upstream, folder))


def _replicas(plan: Plan, upstream: Target, folder: Path) -> str:
    return replicas(measure_replicas(plan, upstream, folder))


def _suspended_shared(plan: Plan, _upstream: Target, folder: Path) -> str:
    with shared_state() as state:
        return _table(report.waiting(measure_waiting(plan, folder, suspended=plan.beside * 2, more=state)))


PARTS: Final[Mapping[str, Part]] = {
    COLD_START: _cold_start,
    ROUNDS: _rounds,
    SUSPENDED: _suspended,
    STREAMS: _streams,
    MIXED: _mixed,
    SCALING: _scaling,
    MERGED: _merged,
    REPLICAS: _replicas,
    SUSPENDED_SHARED: _suspended_shared,
}
"""By the name for `--only`."""
