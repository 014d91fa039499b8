"""gateway.server.graceful: what signals mean, and what is given up after the second."""

import asyncio
import signal

import pytest
import uvicorn

from gateway.server.graceful import Departure, GracefulServer

SIGTERM, SIGINT = signal.SIGTERM, signal.SIGINT


class Signalled:
    """A server that gets signals at times."""

    def __init__(self, *signals: tuple[float, signal.Signals]) -> None:
        self.now_s = 0.0
        self.server = GracefulServer(uvicorn.Config("none", log_config=None), now_s=lambda: self.now_s)
        for self.now_s, number in signals:
            self.server.handle_exit(number, None)

    @property
    def departure(self) -> tuple[bool, bool]:
        assert self.server.should_exit
        departure = self.server._departure
        return departure.is_hurried, departure.is_over


@pytest.mark.parametrize(
    ("signals", "is_hurried", "is_over"),
    [
        ([(1.0, SIGTERM)], False, False),
        ([(1.0, SIGINT)], True, False),
        ([(1.0, SIGTERM), (9.0, SIGTERM)], False, True),
        ([(1.0, SIGTERM), (9.0, SIGINT)], True, True),
        ([(1.0, SIGINT), (9.0, SIGINT)], True, True),
    ],
)
def test_the_first_signal_ends_in_order_and_the_second_at_once(
    signals: list[tuple[float, signal.Signals]], is_hurried: bool, is_over: bool
) -> None:
    assert Signalled(*signals).departure == (is_hurried, is_over)


def test_a_signal_that_comes_from_two_sides_is_one() -> None:
    assert Signalled((1.0, SIGINT), (1.2, SIGINT)).departure == (True, False)
    assert Signalled((1.0, SIGINT), (1.2, SIGINT), (3.0, SIGINT)).departure == (True, True)


async def test_work_is_done_to_its_end_however_long_it_takes() -> None:
    departure = Departure(lambda: 0)
    finish, done = asyncio.Event(), []

    async def work() -> None:
        await finish.wait()
        done.append(True)

    working = asyncio.ensure_future(departure.until_over(work(), 0.0))
    await asyncio.wait((working,), timeout=0.2)
    assert not working.done()
    finish.set()
    await working
    assert done


async def test_work_is_given_up_when_it_is_over() -> None:
    departure = Departure(lambda: 0)
    departure.is_over = True
    given_up = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            given_up.append(True)

    await departure.until_over(work(), 0.01)
    assert given_up


async def test_what_fails_is_told() -> None:
    async def work() -> None:
        raise ValueError

    with pytest.raises(ValueError):
        await Departure(lambda: 0).until_over(work(), 0.0)
