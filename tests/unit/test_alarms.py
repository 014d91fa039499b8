"""gateway.alarms: everybody who is not done is woken after the delay, by one timer."""

import asyncio
from collections.abc import Callable

import pytest

from gateway.alarms import Alarms


class Loop:
    """The clock and the timers of an event loop, moved by hand."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now_s

    def call_at(self, when_s: float, ring: Callable[[], None]) -> object:
        self.timers.append((when_s, ring))
        return self.timers

    def call_later(self, delay_s: float, ring: Callable[[], None]) -> object:
        return self.call_at(self.now_s + delay_s, ring)

    def advance(self, now_s: float) -> None:
        self.now_s = now_s
        due = [timer for timer in self.timers if timer[0] <= now_s]
        self.timers = [timer for timer in self.timers if timer[0] > now_s]
        for _, ring in due:
            ring()


class Sleeper:
    def __init__(self, on_ring: Callable[[], None] = lambda: None) -> None:
        self.rung = 0
        self._on_ring = on_ring

    def ring(self) -> None:
        self.rung += 1
        self._on_ring()


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    made = Loop()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: made)
    return made


def test_who_is_not_done_is_woken_in_time_by_one_timer(loop: Loop) -> None:
    alarms, sleepers = Alarms(10), [Sleeper() for _ in range(3)]
    for sleeper in sleepers:
        alarms.set(sleeper, loop.now_s)
        loop.now_s += 1
        assert len(loop.timers) == 1
    alarms.cancel(sleepers[1])
    for now_s, expected in (
        (109.9, [0, 0, 0]),
        (110, [1, 0, 0]),
        (111.9, [1, 0, 0]),
        (112, [1, 0, 1]),
        (200, [1, 0, 1]),
    ):
        loop.advance(now_s)
        assert [sleeper.rung for sleeper in sleepers] == expected
    assert (len(alarms), loop.timers) == (0, [])


def test_an_alarm_can_be_set_again_after_it_rang_or_was_cancelled(loop: Loop) -> None:
    alarms, sleeper = Alarms(10), Sleeper()
    alarms.cancel(sleeper)
    alarms.set(sleeper, loop.now_s)
    alarms.cancel(sleeper)
    loop.advance(110)
    alarms.set(sleeper, loop.now_s)
    loop.advance(120)
    assert sleeper.rung == 1


def test_who_is_woken_may_cancel_another_alarm_and_set_one(loop: Loop) -> None:
    alarms, second, third = Alarms(10), Sleeper(), Sleeper()

    def turn() -> None:
        alarms.cancel(second)
        alarms.set(third, loop.now_s)

    alarms.set(Sleeper(turn), loop.now_s)
    alarms.set(second, loop.now_s)
    loop.advance(110)
    loop.advance(120)
    assert (second.rung, third.rung) == (0, 1)
