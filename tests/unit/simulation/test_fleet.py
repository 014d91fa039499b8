"""The simulated fleet, where the answer is known."""

from random import Random

import pytest

from tests.simulation.costs import Costs
from tests.simulation.fleet import Fleet, Second
from tests.simulation.workload import Workload

COSTS = Costs()
PROMPT = Workload(quick_s=5.0, slow=0.0, gone=0.0, again=0.0, ttl_s=60)
"""Everybody answers, once, and soon."""


def empty(replicas: int, workload: Workload = PROMPT) -> Fleet:
    return Fleet(Random(3), replicas, workload, COSTS)  # noqa: S311 -- nothing is secret here


def fleet(replicas: int, rounds: int, workload: Workload = PROMPT) -> Fleet:
    made = empty(replicas, workload)
    made.fill(rounds)
    return made


def passed(fleet: Fleet, seconds: int, calls_per_s: float = 0.0) -> list[Second]:
    return [fleet.step(calls_per_s) for _ in range(seconds)]


def total(seconds: list[Second], what: str) -> int:
    return sum(getattr(second, what) for second in seconds)


def test_a_single_replica_relays_nothing() -> None:
    seconds = passed(fleet(1, 500), PROMPT.ttl_s)
    assert (total(seconds, "local"), total(seconds, "relayed")) == (500, 0)


def test_of_two_replicas_each_gets_half_of_the_others_retries() -> None:
    seconds = passed(fleet(2, 10_000), PROMPT.ttl_s)
    assert total(seconds, "local") + total(seconds, "relayed") == 10_000
    assert total(seconds, "relayed") == pytest.approx(5_000, abs=250)


def test_every_round_is_held_by_somebody_and_leaves_in_the_end() -> None:
    seen = fleet(7, 2_000)
    assert sum(seen.held) == seen.suspended == 2_000
    for second in passed(seen, 20, calls_per_s=100):
        assert second.calls == 100
    assert sum(seen.held) == seen.suspended
    passed(seen, PROMPT.ttl_s)
    assert sum(seen.held) == seen.suspended == 0


def test_calls_at_the_steady_rate_keep_the_number_of_rounds() -> None:
    workload = Workload()
    seen = fleet(50, 50_000, workload)
    passed(seen, 120, seen.steady_calls(50_000))
    assert seen.suspended == pytest.approx(50_000, rel=0.02)


def test_rounds_to_which_nobody_comes_back_expire_at_their_end() -> None:
    seen = fleet(3, 300, Workload(gone=1.0, again=0.0, ttl_s=60))
    seconds = passed(seen, 61)
    assert (total(seconds, "expired"), total(seconds, "local"), total(seconds, "relayed")) == (300, 0, 0)


def test_the_store_is_charged_for_what_happened() -> None:
    seen = fleet(4, 1_000)
    second = seen.step(0)
    expected = 4 * COSTS.idle_commands + second.local * COSTS.local_commands + second.relayed * COSTS.relayed_commands
    assert second.commands == pytest.approx(expected)
    idle = empty(4).step(50)
    assert idle.commands == pytest.approx(4 * COSTS.idle_commands), "a call that asks costs the store nothing"


def test_every_round_of_a_lost_replica_is_taken_over_once_and_not_before_it_is_known() -> None:
    seen = fleet(5, 5_000)
    lost = seen.held[2]
    assert seen.lose([2], noticed_s=5) == lost
    seconds = passed(seen, PROMPT.ttl_s + 10)
    assert [second.recovered for second in seconds[:4]] == [0] * 4
    assert total(seconds, "recovered") == lost
    assert total(seconds, "recovered") + total(seconds, "local") + total(seconds, "relayed") == 5_000
    assert seen.held[2] == 0


def test_a_replica_that_says_goodbye_is_missed_at_once() -> None:
    seen = fleet(5, 5_000)
    seen.lose([2], noticed_s=0)
    first = seen.step(0)
    assert first.recovered > 0
    assert first.delayed == 0


def test_a_draining_replica_gets_no_calls_but_keeps_its_rounds() -> None:
    seen = fleet(3, 3_000)
    kept = seen.held[0]
    seen.drain([0])
    second = seen.step(1_000)
    assert seen.held[0] < kept
    assert second.recovered == 0
    assert 0 not in seen.landing


def test_new_replicas_begin_with_nothing_and_get_their_share() -> None:
    seen = fleet(10, 10_000)
    new = seen.join(10)
    assert [seen.held[number] for number in new] == [0] * 10
    passed(seen, PROMPT.ttl_s, seen.steady_calls(10_000))
    assert sum(seen.held[number] for number in new) == pytest.approx(5_000, rel=0.1)


def test_processor_time_is_spent_where_the_work_is() -> None:
    alone = fleet(1, 100)
    passed(alone, PROMPT.ttl_s)
    assert alone.busy_ms[0] == pytest.approx(100 * COSTS.local_ms)
    both = fleet(2, 100)
    seconds = passed(both, PROMPT.ttl_s)
    spent = total(seconds, "local") * COSTS.local_ms + total(seconds, "relayed") * COSTS.relayed_ms
    assert sum(both.busy_ms) == pytest.approx(spent)
