"""A mailbox in which what is newest counts, and nobody who fills it waits."""

import asyncio

from gateway.core.exchange_events import Notified
from gateway.core.incoming import Incoming
from gateway.upstream import aside
from gateway.upstream.aside import Aside
from gateway.upstream.background import Background


def numbered(number: int) -> Notified:
    return Notified({"method": "notifications/progress", "params": {"progress": number}})


async def test_what_arrives_is_taken_in_order() -> None:
    taken: list[Incoming] = []

    async def take(incoming: Incoming) -> None:
        await asyncio.sleep(0)
        taken.append(incoming)

    background = Background()
    box = Aside(take, background)
    for number in range(10):
        box.put(numbered(number))
    await background.close(5.0)
    assert taken == [numbered(number) for number in range(10)]
    box.put(numbered(10))
    await background.close(5.0)
    assert taken[-1] == numbered(10)


async def test_of_too_much_the_oldest_is_dropped() -> None:
    taken: list[Incoming] = []
    reads = asyncio.Event()

    async def take(incoming: Incoming) -> None:
        await reads.wait()
        taken.append(incoming)

    background = Background()
    box = Aside(take, background)
    box.put(numbered(0))
    await asyncio.sleep(0)
    for number in range(1, 10 * aside.MOST):
        box.put(numbered(number))
    assert len(background) == 1
    reads.set()
    await background.close(5.0)
    assert taken == [numbered(0), *(numbered(number) for number in range(9 * aside.MOST, 10 * aside.MOST))]
