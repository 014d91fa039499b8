"""What a gateway still holds when it should hold nothing."""

import asyncio
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from tests.support.gateway_app import Front

WAIT_S = 20.0
"""The bound of every wait."""


@dataclass(frozen=True)
class Held:
    """What is at work in a gateway.

    Attributes:
        leased: calls that hold a session.
        listeners: open `subscriptions/listen` streams.
        background: tasks that outlive requests.
        suspended: rounds that wait for their client.
    """

    leased: int
    listeners: int
    background: int
    suspended: int


def held(front: Front) -> Held:
    """What the gateway holds now."""
    upstreams = list(front.gateway.upstreams.values())
    sessions = [session for upstream in upstreams for session in upstream._legacy._sessions._pool._sessions]
    return Held(
        leased=sum(session.in_flight for session in sessions),
        listeners=sum(len(upstream._subscriptions) for upstream in upstreams),
        background=sum(len(upstream._background) for upstream in upstreams),
        suspended=len(front.gateway.rounds),
    )


async def until_quiet(front: Front) -> None:
    """Wait until the gateway holds nothing but idle sessions, and say what is left if that does not come about."""
    try:
        await until(lambda: not any(asdict(held(front)).values()))
    except TimeoutError:
        raise AssertionError(f"left behind: {held(front)}") from None


async def until(condition: Callable[[], Any]) -> None:
    """Wait until something is so within the gateway; bounded."""
    async with asyncio.timeout(WAIT_S):
        while not condition():  # noqa: ASYNC110 -- nothing within the gateway announces it
            await asyncio.sleep(0.002)
