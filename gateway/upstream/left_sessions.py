"""Sticky sessions that this replica is done with, and others may not be: ended when nobody uses them any more."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

from gateway.core.sticky import SharingTimes
from gateway.store.down import StoreDown
from gateway.upstream.background import Background
from gateway.upstream.legacy_session import LegacySession
from gateway.upstream.share import Share

_MOST: Final = 1000
"""How many are remembered; the server itself has to end the others."""

_AGAIN_S: Final = 5.0


class Ends(Protocol):
    """Where it is known who uses a session."""

    async def end(self, name: str, stamp: str, *, left_s: float) -> float | None:
        """Take an entry out unless it was touched since; else say how long to wait. Raises StoreDown."""


class LeftSessions:
    """The sessions that were left.

    Args:
        store: knows who uses a session.
        times: when nobody does.
        background: where sessions are ended.
        now_s: a monotonic clock.
    """

    def __init__(self, store: Ends, times: SharingTimes, background: Background, now_s: Callable[[], float]) -> None:
        self._store = store
        self._times = times
        self._background = background
        self._now_s = now_s
        self._sessions: dict[str, tuple[LegacySession, Share]] = {}
        self._is_sweeping = False

    def __len__(self) -> int:
        return len(self._sessions)

    def take(self, session: LegacySession, share: Share) -> Coroutine[Any, Any, None]:
        """Leave a session: its stream is closed, and it is looked after until nobody uses it."""
        if not session.is_forgotten:
            if len(self._sessions) >= _MOST:
                del self._sessions[next(iter(self._sessions))]
            share.due_s = self._now_s()
            self._sessions[share.name] = session, share
        return session.leave()

    def forget(self, name: str) -> None:
        """A session is used here again."""
        self._sessions.pop(name, None)

    def sweep(self) -> None:
        """End, in the background, what nobody uses any more."""
        if not self._is_sweeping and any(share.due_s <= self._now_s() for _session, share in self._sessions.values()):
            self._is_sweeping = True
            self._background.run(self._sweep())

    async def _sweep(self) -> None:
        try:
            for name, (session, share) in list(self._sessions.items()):
                if share.due_s <= self._now_s():
                    await self._look(name, session, share)
        except StoreDown:
            return  # the next sweep tries again
        finally:
            self._is_sweeping = False

    async def _look(self, name: str, session: LegacySession, share: Share) -> None:
        early_s = await self._store.end(name, share.stamp, left_s=self._times.left_s)
        if early_s is not None and early_s > 0:
            share.due_s = self._now_s() + early_s
        elif (left := self._sessions.get(name)) is not None and left[0] is session:
            del self._sessions[name]
            if early_s is not None:
                await session.close()
