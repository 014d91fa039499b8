"""How a process that is to end serves on until it is not needed any more."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.server.gate import Gate
from gateway.server.graceful import Departure

_LOOK_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class DrainTimes:
    """Both in seconds, from the signal on.

    Args:
        lame_duck_s: how long new calls are served, since a load balancer may not have noticed.
        drain_s: how long those are that have begun, and the retries of rounds that are kept here.
    """

    lame_duck_s: float
    drain_s: float


async def serve_out(departure: Departure, gate: Gate, times: DrainTimes, is_needed: Callable[[], bool]) -> None:
    """Serve until nothing is left to serve, or the time is over, or somebody is in a hurry.

    Args:
        departure: the shutdown.
        gate: is closed to new calls after the lame duck's time.
        times: how long.
        is_needed: whether calls are suspended here.
    """
    began_s = time.monotonic()

    def has_time(limit_s: float) -> bool:
        return not departure.is_urgent and time.monotonic() < began_s + limit_s

    gate.is_leaving = True
    while has_time(times.lame_duck_s):  # noqa: ASYNC110 -- signals come outside of the event loop
        await asyncio.sleep(_LOOK_S)
    gate.is_closed = True
    while has_time(times.drain_s) and (departure.in_flight() or is_needed()):  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_S)
