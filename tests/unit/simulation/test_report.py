"""The report: the same for the same seed, and complete."""

from tests.simulation.costs import Costs
from tests.simulation.report import report
from tests.simulation.scenarios import Plan, Scenarios
from tests.simulation.workload import Workload

SMALL = Plan(replicas=20, rounds=4_000, seconds=10)


def test_the_same_seed_gives_the_same_report() -> None:
    first, second = (report(SMALL, Costs(), Workload()) for _ in range(2))
    assert first == second
    other = report(Plan(seed=8, replicas=20, rounds=4_000, seconds=10), Costs(), Workload())
    assert other != first


def test_a_loss_is_noticed_and_all_of_it_is_told() -> None:
    costs = Costs()
    loss = Scenarios(SMALL, costs, Workload()).loss(2)
    assert loss.replicas == 2
    assert 200 < loss.rounds < 600
    assert 0 < loss.delayed < loss.rounds
    assert loss.peak_per_s > 0


def test_a_restarted_fleet_evens_out() -> None:
    during, later = Scenarios(SMALL, Costs(), Workload()).rolling_restart(5, 40)
    assert during.recovered > 0
    assert later.held[1] > during.held[1]
    assert later.held[0] < during.held[0]


def test_added_replicas_fill_up() -> None:
    looks = Scenarios(SMALL, Costs(), Workload()).scale_out(5, (30, 120, 300))
    assert [look.held[1] for look in looks] == sorted(look.held[1] for look in looks)
