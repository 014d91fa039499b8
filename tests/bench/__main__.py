"""Runs the benchmark: `python -m tests.bench [--quick] [--only PATTERN] [--assert] [--profile]`."""

import argparse
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench import report
from tests.bench.cases import FULL, QUICK, Case, Plan, select
from tests.bench.measure import Row, cold_starts, measure_case, upstream_alone
from tests.bench.processes import Target, start_bare, start_gateway, start_upstream
from tests.bench.profiling import profile


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="The gateway beside a bare proxy.")
    parser.add_argument("--quick", action="store_true", help="three cases, about fifteen seconds")
    parser.add_argument("--only", metavar="PATTERN", help="cases by name, such as 'json-1k-*'; no cold start")
    parser.add_argument("--rounds", type=int, help="rounds of each case")
    parser.add_argument("--assert", dest="check", action="store_true", help="exit with 1 below a floor")
    parser.add_argument("--profile", action="store_true", help="profile the gateway in the first case chosen")
    return parser.parse_args()


def _measure(cases: tuple[Case, ...], plan: Plan, upstream: Target, folder: Path) -> list[Row]:
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
        return rows


def main() -> int:
    """Runs what the arguments ask for; the exit code is 1 only for a missed floor under `--assert`."""
    arguments = _arguments()
    plan = QUICK if arguments.quick else FULL
    cases = select(plan, arguments.only)
    if not cases:
        raise SystemExit(f"bench: no case matches {arguments.only!r}")
    if arguments.rounds:
        plan = replace(plan, rounds=arguments.rounds)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="era-gateway-bench-")))
        upstream = start_upstream()
        stack.callback(upstream.stop)
        if arguments.profile:
            profile(cases[0], plan.seconds * 4, upstream, folder)
            return 0
        print(report.machine(), report.ceiling(upstream_alone(upstream, plan.seconds)), "", sep="\n")
        rows = _measure(cases, plan, upstream, folder)
        print("", report.added_latency(rows), sep="\n")
        if not arguments.only:
            print(report.cold(cold_starts(plan.cold_starts, upstream, folder)))
    missed = report.below_floor(rows)
    print(*missed, sep="\n", end="\n" if missed else "")
    return 1 if missed and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
