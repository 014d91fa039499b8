"""Runs the benchmark: `python -m tests.bench [--quick] [--only PATTERN] [--assert] [--profile]`."""

import argparse
import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench import report
from tests.bench.cases import COLD_START, FULL, QUICK, ROUNDS, Case, Plan, is_chosen
from tests.bench.measure import Row, cold_starts, measure_case, upstream_alone
from tests.bench.processes import Target, start_bare, start_gateway, start_upstream
from tests.bench.profiling import profile
from tests.bench.rounds import measure_rounds


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="The gateway beside a bare proxy.")
    parser.add_argument("--quick", action="store_true", help="three cases, about fifteen seconds")
    parser.add_argument("--only", metavar="PATTERN", help="what to measure: 'json-1k-*', 'cold-start', 'rounds'")
    parser.add_argument("--rounds", type=int, help="turns of each target in each case")
    parser.add_argument("--assert", dest="check", action="store_true", help="exit with 1 below a floor")
    parser.add_argument("--profile", action="store_true", help="profile the gateway in the first case chosen")
    return parser.parse_args()


def _measure_cases(cases: list[Case], plan: Plan, upstream: Target, folder: Path) -> list[Row]:
    """Measures and prints the table, a case at a time."""
    print(report.machine(), report.ceiling(upstream_alone(upstream, plan.seconds)), "", sep="\n")
    with ExitStack() as stack:
        gateway = start_gateway(upstream, folder)
        stack.callback(gateway.stop)
        bare = start_bare(upstream)
        stack.callback(bare.stop)
        print(report.HEAD, flush=True)
        rows = []
        for case in cases:
            rows.append(measure_case(case, plan, gateway, bare, upstream))
            print(report.rows_of(rows[-1]), flush=True)
    print("", report.added_latency(rows), sep="\n")
    return rows


def _measure_rounds(plan: Plan, upstream: Target, folder: Path) -> str:
    """Measures on a gateway of its own: memory that was used before would hide the growth."""
    gateway = start_gateway(upstream, folder)
    try:
        return report.rounds(measure_rounds(plan, gateway))
    finally:
        gateway.stop()


def _show_log(path: Path, kind: object, *_: object) -> None:
    """After a failure, the end of the gateway's log."""
    if kind is not None and path.exists():
        print(path.read_text()[-3000:], file=sys.stderr)


def main() -> int:
    """Runs what the arguments ask for; the exit code is 1 only for a missed floor under `--assert`."""
    arguments = _arguments()
    only: str | None = arguments.only
    plan = QUICK if arguments.quick else FULL
    if arguments.rounds:
        plan = replace(plan, rounds=arguments.rounds)
    cases = [case for case in plan.cases if is_chosen(case.name, only)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="era-gateway-bench-")))
        upstream = start_upstream()
        stack.callback(upstream.stop)
        if arguments.profile:
            profile(cases[0], plan.seconds * 6, upstream, folder)
            return 0
        stack.push(partial(_show_log, folder / "gateway.log"))
        rows = _measure_cases(cases, plan, upstream, folder) if cases else []
        if is_chosen(COLD_START, only):
            print(report.cold(cold_starts(plan.cold_starts, upstream, folder)), flush=True)
        if is_chosen(ROUNDS, only):
            print(_measure_rounds(plan, upstream, folder), flush=True)
    missed = report.below_floor(rows)
    print("\n".join(missed))
    return 1 if missed and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
