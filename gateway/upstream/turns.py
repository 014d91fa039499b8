"""A queue for room: who came first gets the next place that becomes free."""

import asyncio
from collections import deque


class Turns:
    """Those who wait for a place."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self, timeout_s: float) -> bool:
        """Wait for a turn; False if none came in time. A turn that comes to somebody who leaves is the next one's."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(timeout_s):
                await turn
        except TimeoutError:
            return _has_come(turn)
        except asyncio.CancelledError:
            if _has_come(turn):
                self.give()
            raise
        finally:
            if turn in self._waiting:
                self._waiting.remove(turn)
        return True

    def give(self) -> None:
        """There is a place: let the first who waits try for it."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return


def _has_come(turn: asyncio.Future[None]) -> bool:
    return turn.done() and not turn.cancelled()
