"""How things fall: known slots, even and uneven spreads."""

from random import Random

import pytest

from tests.simulation.placement import busiest_part, pinned, slot, spread
from tests.simulation.workload import Workload


def seeded() -> Random:
    return Random(1)  # noqa: S311 -- nothing is secret here


def test_slots_are_those_of_a_cluster() -> None:
    """The check value of CRC-16/XMODEM, and a slot from the cluster's documentation."""
    assert slot("123456789") == 0x31C3
    assert slot("foo") == 12_182


def test_one_part_has_everything() -> None:
    assert busiest_part(seeded(), 100, 1) == 1.0


def test_more_parts_are_less_even() -> None:
    few, many = (busiest_part(seeded(), 1_000, parts) for parts in (3, 24))
    assert 1.0 <= few < many < 2.0


def test_connections_weigh_what_they_carry() -> None:
    landing = pinned(seeded(), 10, 1_000, 1.5)
    assert set(landing) == set(range(10))
    assert len(landing) > 10 * 1_000


def test_the_spread_is_in_multiples_of_the_mean() -> None:
    assert spread([1, 2, 3]) == (1.5, 0.5)


def test_waits_have_the_mean_that_was_asked_for() -> None:
    waits = Workload(quick_s=30.0, slow=0.0, gone=0.0).waits()
    assert sum(waits) / len(waits) == pytest.approx(30.0, rel=0.02)


def test_as_many_are_gone_as_was_asked_for() -> None:
    workload = Workload(gone=0.25)
    waits = workload.waits()
    assert waits.count(workload.ttl_s) == len(waits) / 4


def test_calls_that_ask_twice_are_half_as_many() -> None:
    once, twice = Workload(gone=0.0, again=0.0), Workload(gone=0.0, again=0.5)
    assert twice.calls_per_s(1_000, twice.waits()) == pytest.approx(once.calls_per_s(1_000, once.waits()) / 2)
