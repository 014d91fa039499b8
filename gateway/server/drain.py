"""How a process that is to end serves on until it is not needed any more."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from gateway.server.gate import Gate
from gateway.server.graceful import LOOK_S, Departure


@dataclass(frozen=True, slots=True)
class DrainTimes:
    """Both in seconds, from the signal on.

    Args:
        lame_duck_s: how long new calls are served, since a load balancer may not have noticed.
        drain_s: how long those are that have begun, and the retries of rounds that are kept here.
    """

    lame_duck_s: float
    drain_s: float


async def serve_out(
    departure: Departure,
    gate: Gate,
    times: DrainTimes,
    *,
    at_work: Callable[[], int],
    is_needed: Callable[[], bool],
    on_closed: Callable[[], None],
) -> None:
    """Serve until nothing is left to serve, or the time is over, or somebody is in a hurry.

    Args:
        departure: the shutdown.
        gate: is closed to new calls after the lame duck's time.
        times: how long.
        at_work: how many calls are being served.
        is_needed: whether calls are suspended here, which somebody who is in a hurry does not wait for.
        on_closed: ends what would not end by itself; whoever comes back for it is let in elsewhere.
    """
    began_s = time.monotonic()

    def has_time(limit_s: float) -> bool:
        return not departure.is_over and time.monotonic() < began_s + limit_s

    gate.is_leaving = True
    while has_time(times.lame_duck_s) and not departure.is_hurried:  # noqa: ASYNC110 -- signals come outside of the event loop
        await asyncio.sleep(LOOK_S)
    gate.is_closed = True
    on_closed()
    while has_time(times.drain_s) and (at_work() or (is_needed() and not departure.is_hurried)):  # noqa: ASYNC110
        await asyncio.sleep(LOOK_S)
