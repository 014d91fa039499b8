import pytest

from gateway.upstream.crashes import PAUSES_S, STEADY_S, Crashes


def waits(*lives: tuple[float, float]) -> list[float]:
    """How long to wait after each of the lives, from start to end."""
    crashes = Crashes()
    found = []
    for started_s, ended_s in lives:
        crashes.note(started_s, ended_s)
        found.append(crashes.wait_s(ended_s))
    return found


def test_nothing_has_happened_yet() -> None:
    assert Crashes().wait_s(0.0) == 0.0


def test_each_crash_after_the_first_two_makes_the_wait_longer_up_to_a_bound() -> None:
    lives = [(float(at), at + 0.5) for at in range(len(PAUSES_S) + 2)]
    assert waits(*lives) == [*PAUSES_S, PAUSES_S[-1], PAUSES_S[-1]]


def test_the_wait_passes() -> None:
    crashes = Crashes()
    for at in range(4):
        crashes.note(at, at + 0.5)
    assert [crashes.wait_s(3.5 + later) for later in (0, 0.25, 1.0, 100.0)] == [1.0, 0.75, 0.0, 0.0]


def test_processes_that_end_together_count_once() -> None:
    assert waits(*[(0.0, 1.0 + number / 1000) for number in range(20)]) == [0.0] * 20


@pytest.mark.parametrize(
    "lives",
    [
        [(0, 1), (1, 2), (2, 3), (3, 4), (4, 4 + STEADY_S)],
        [(0, 1), (1, 2), (2, 3), (3, 4), (4 + STEADY_S, 5 + STEADY_S + STEADY_S)],
    ],
)
def test_one_that_ran_for_a_good_while_begins_anew(lives: list[tuple[float, float]]) -> None:
    assert waits(*lives) == [0.0, 0.0, 0.5, 1.0, 0.0]
