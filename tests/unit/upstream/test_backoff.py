"""Pauses grow while something keeps failing, and are short again after a good while."""

from gateway.upstream import backoff
from gateway.upstream.backoff import Backoff


class Clock:
    now_s = 0.0

    def time(self) -> float:
        return self.now_s


def pauses(monkeypatch_clock: Clock, count: int, lasted_s: float | None) -> list[float]:
    tried = Backoff((1.0, 2.0, 8.0))
    found = []
    for _ in range(count):
        if lasted_s is not None:
            tried.opened()
            monkeypatch_clock.now_s += lasted_s
        found.append(tried.next_s())
    return found


def within(found: list[float], expected: list[float]) -> bool:
    return all(0.5 * pause <= got <= 1.5 * pause for got, pause in zip(found, expected, strict=True))


async def test_failures_make_pauses_longer_up_to_the_last(monkeypatch: object) -> None:
    clock = _install(monkeypatch)
    assert within(pauses(clock, 5, None), [1, 2, 8, 8, 8])


async def test_what_closes_as_soon_as_it_was_opened_counts_as_a_failure(monkeypatch: object) -> None:
    clock = _install(monkeypatch)
    assert within(pauses(clock, 4, 0.1), [1, 2, 8, 8])


async def test_what_lasted_begins_anew(monkeypatch: object) -> None:
    clock = _install(monkeypatch)
    assert within(pauses(clock, 4, 8.0), [1, 1, 1, 1])


async def test_pauses_are_spread(monkeypatch: object) -> None:
    clock = _install(monkeypatch)
    assert len({pauses(clock, 1, None)[0] for _ in range(20)}) > 10


async def test_the_first_pause_says_so(monkeypatch: object) -> None:
    _install(monkeypatch)
    tried = Backoff()
    tried.next_s()
    assert tried.is_first
    tried.next_s()
    assert not tried.is_first


def _install(monkeypatch: object) -> Clock:
    clock = Clock()
    monkeypatch.setattr(backoff.asyncio, "get_running_loop", lambda: clock)  # type: ignore[attr-defined]
    return clock
