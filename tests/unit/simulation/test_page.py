"""docs/sizing.md: what the simulation assumes is what the page says was measured."""

import re
from pathlib import Path

import pytest

from tests.simulation.costs import Costs
from tests.simulation.report import assumed
from tests.simulation.scenarios import Plan
from tests.simulation.workload import Workload

PAGE = (Path(__file__).parents[3] / "docs" / "sizing.md").read_text()
COSTS = Costs()


def measured(name: str) -> list[float]:
    """Commands, and bytes to and from the store, of a line of the table."""
    line = re.search(rf"(?m)^\| {name} \|(.*)\|$", PAGE)
    assert line is not None
    cells = [cell.strip().replace(",", "") for cell in line[1].split("|")]
    return [float(cells[0]), float(cells[2]) + float(cells[3])]


@pytest.mark.parametrize(
    ("name", "commands", "traffic"),
    [
        ("idle replica, each second", COSTS.idle_commands, COSTS.idle_bytes),
        ("round, retried at its replica", COSTS.local_commands, COSTS.local_bytes),
        ("round, retried at another", COSTS.relayed_commands, COSTS.relayed_bytes),
    ],
)
def test_the_simulation_reckons_with_what_was_measured(name: str, commands: float, traffic: float) -> None:
    assert measured(name) == [pytest.approx(commands, rel=0.1), pytest.approx(traffic, rel=0.1)]


def test_a_plain_call_costs_the_store_nothing() -> None:
    assert measured("plain call")[0] == 0


def test_a_busy_store_needs_the_time_that_was_measured() -> None:
    told = re.search(r"it spends (\d+) µs on a round", PAGE)
    assert told is not None
    assert COSTS.relayed_commands * COSTS.command_us == pytest.approx(float(told[1]), rel=0.15)


def test_the_page_shows_what_the_simulation_assumes_now() -> None:
    assert assumed(Plan(), Workload()) in PAGE
