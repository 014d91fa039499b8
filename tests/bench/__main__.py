"""Runs the benchmark: `python -m tests.bench`; what there is to choose, `--help` tells."""

import argparse
import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench import page, plot, report
from tests.bench.cases import FULL, GUARD, QUICK, Case, Plan, is_chosen
from tests.bench.instructions import measure_instructions
from tests.bench.measure import Row, measure_case, upstream_alone
from tests.bench.parts import PARTS
from tests.bench.processes import Target, start_bare, start_gateway, start_upstream
from tests.bench.profiling import profile


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="The gateway beside a bare proxy.")
    parser.add_argument("--quick", action="store_true", help="three cases and less of everything, about a minute")
    parser.add_argument("--only", metavar="PATTERN", help=f"what to measure: 'json-1k-*', {', '.join(PARTS)}")
    parser.add_argument("--rounds", type=int, help="turns of each target in each case")
    parser.add_argument("--guard", action="store_true", help="one case; exit with 1 if calls cost far too much, twice")
    parser.add_argument("--profile", action="store_true", help="profile the gateway in the first case chosen")
    parser.add_argument("--instructions", action="store_true", help="count instructions with valgrind, some minutes")
    parser.add_argument("--write", action="store_true", help="put the results into docs/performance.md")
    return parser.parse_args()


def _measure_cases(cases: list[Case], plan: Plan, upstream: Target, folder: Path, *, writes: bool = False) -> list[Row]:
    """Measures and prints the table, a case at a time."""
    head = f"{report.machine()}; {report.ceiling(upstream_alone(upstream, plan.seconds))}.\n\n{report.HEAD}"
    print(head, flush=True)
    with ExitStack() as stack:
        gateway = start_gateway(upstream, folder)
        stack.callback(gateway.stop)
        bare = start_bare(upstream)
        stack.callback(bare.stop)
        rows = []
        for case in cases:
            rows.append(measure_case(case, plan, gateway, bare, upstream))
            print(report.rows_of(rows[-1]), flush=True)
    print("", report.added_latency(rows), sep="\n")
    if writes:
        page.put("calls", "\n".join([head, *map(report.rows_of, rows), "", report.added_latency(rows)]))
        title = "Calls a second of the gateway, where the bare proxy makes 1 (red)"
        page.put_figure("performance-calls.svg", plot.ratios(title, {row.case.name: row.rate_ratio for row in rows}))
    return rows


def _guard(upstream: Target, folder: Path) -> int:
    """Measures what the guard looks at; once more, if that came out wrong."""
    for _ in range(2):
        above = report.above_ceiling(_measure_cases(list(GUARD.cases), GUARD, upstream, folder))
        print("\n".join(above))
        if not above:
            return 0
    return 1


def _measure_parts(plan: Plan, only: str | None, upstream: Target, folder: Path, *, writes: bool) -> None:
    for name, part in PARTS.items():
        if is_chosen(name, only):
            text = part(plan, upstream, folder)
            print(f"\n{name}\n{text}", flush=True)
            if writes:
                page.put(name, text)


def _show_log(path: Path, kind: object, *_: object) -> None:
    """After a failure, the end of the gateway's log."""
    if kind is not None and path.exists():
        print(path.read_text()[-3000:], file=sys.stderr)


def main() -> int:
    """Runs what the arguments ask for; the exit code is 1 only for what `--guard` finds."""
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
        stack.push(partial(_show_log, folder / "gateway.log"))
        if arguments.guard:
            return _guard(upstream, folder)
        if arguments.profile:
            profile(cases[0], plan.seconds * 6, upstream, folder)
            return 0
        if arguments.instructions:
            print(measure_instructions([case for case in cases if case.connections == 1], upstream, folder))
            return 0
        if cases:
            _measure_cases(cases, plan, upstream, folder, writes=arguments.write)
        _measure_parts(plan, only, upstream, folder, writes=arguments.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
