"""A queue for room: users take turns, and of one user's calls the one that came first gets the next place."""

import asyncio
from collections import deque
from collections.abc import Hashable


class Turns:
    """Those who wait for a place. However many calls one user has waiting, the others wait for one of them at most."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}  # whose turn is next comes first

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def wait(self, timeout_s: float, user: Hashable) -> bool:
        """Wait for a turn; False if none came in time. A turn that comes to somebody who leaves is the next one's."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(turn)
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
            self._forget(user, turn)
        return True

    def give(self) -> None:
        """There is a place: let the next who waits try for it."""
        while self._waiting:
            user = next(iter(self._waiting))
            turns = self._waiting.pop(user)
            turn = turns.popleft()
            if turns:
                self._waiting[user] = turns
            if not turn.done():
                turn.set_result(None)
                return

    def _forget(self, user: Hashable, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(user)
        if turns is not None and turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[user]


def _has_come(turn: asyncio.Future[None]) -> bool:
    return turn.done() and not turn.cancelled()
