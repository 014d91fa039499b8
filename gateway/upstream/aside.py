"""What a call is told on a GET stream that it shares with other calls, which must not wait for this call's client."""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.core.incoming import Incoming
from gateway.upstream.background import Background

MOST: Final = 64
"""How much may wait for a client that reads slowly; what is older is dropped, since later progress says more."""


class Aside:
    """A bounded mailbox.

    Args:
        take: takes what arrived, one after the other.
        background: where that happens.
    """

    def __init__(self, take: Callable[[Incoming], Awaitable[None]], background: Background) -> None:
        self._take = take
        self._background = background
        self._waiting: deque[Incoming] = deque(maxlen=MOST)
        self._is_busy = False

    def put(self, incoming: Incoming) -> None:
        """Take note, without waiting."""
        self._waiting.append(incoming)
        if not self._is_busy:
            self._is_busy = True
            self._background.run(self._empty())

    async def _empty(self) -> None:
        try:
            while self._waiting:
                await self._take(self._waiting.popleft())
        finally:
            self._is_busy = False
