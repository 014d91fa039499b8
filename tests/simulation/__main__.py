"""Runs the simulation: `python -m tests.simulation [--replicas N] [--rounds N] [--seed N] [--write]`."""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.simulation.costs import Costs
from tests.simulation.report import report
from tests.simulation.scenarios import Plan
from tests.simulation.workload import Workload

PAGE = Path(__file__).parents[2] / "docs" / "sizing.md"
BEGIN, END = "<!-- simulation: begin -->\n", "<!-- simulation: end -->"


def _arguments() -> argparse.Namespace:
    plan = Plan()
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description="A fleet of replicas on one store.")
    parser.add_argument("--replicas", type=int, default=plan.replicas)
    parser.add_argument("--rounds", type=int, default=plan.rounds, help="that are suspended")
    parser.add_argument("--seed", type=int, default=plan.seed)
    parser.add_argument("--write", action="store_true", help="put the result into docs/sizing.md")
    return parser.parse_args()


def main() -> int:
    """Prints what the simulation came to."""
    arguments = _arguments()
    plan = Plan(arguments.seed, arguments.replicas, arguments.rounds)
    with ProcessPoolExecutor(2) as processes:
        text = report(plan, Costs(), Workload(), processes.map)
    print(text)
    if arguments.write:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}{text}\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
