"""Shows the other replicas that this one lives, and notices when it looked dead to them.

Rule: a replica is dead when its key is gone. One that comes to and finds its own key gone has been taken for dead:
others may have claimed its rounds, so it asks before it acts on any of them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from gateway.store.connection import SharedStore
from gateway.store.down import StoreDown

log = structlog.get_logger()

BEAT_S: Final = 1.0
TTL_S: Final = 5.0
"""How long a silent replica counts as alive."""

SETTLED_S: Final = 3.0
"""How long the replicas have to show themselves in a store that was emptied, or out of reach."""


class Heartbeat:
    """The heartbeat of one replica, and the look at those of others.

    Args:
        store: where they show.
        replica: this one.
        on_lapse: called when this replica has been taken for dead, before it shows itself again.
        now_s: a monotonic clock.
    """

    def __init__(
        self,
        store: SharedStore,
        replica: str,
        on_lapse: Callable[[], Awaitable[None]],
        now_s: Callable[[], float],
    ) -> None:
        self._store = store
        self._replica = replica
        self._on_lapse = on_lapse
        self._has_shown = False
        self._has_lapsed = False
        self._now_s = now_s
        self._shown_at_s = self._beaten_at_s = now_s()
        self._is_failing = False
        store.on_change(self._note_store)

    async def run(self) -> None:
        """Beat until cancelled."""
        while True:
            try:
                await self.beat()
                self._is_failing = False
            except StoreDown:
                pass
            except Exception:
                if not self._is_failing:  # once, not every second
                    log.exception("heartbeat failed")
                self._is_failing = True
            await asyncio.sleep(BEAT_S)

    async def beat(self) -> None:
        """Show that this replica lives.

        Raises:
            StoreDown: nobody can see it now.
        """
        key, ttl_ms = self._key(self._replica), int(TTL_S * 1000)
        if not await self._store.probe("SET", key, "1", "XX", "PX", ttl_ms):
            await self._return()
            await self._store.probe("SET", key, "1", "PX", ttl_ms)
            self._has_shown, self._has_lapsed, self._shown_at_s = True, False, self._now_s()
        self._beaten_at_s = self._now_s()

    async def _return(self) -> None:
        """Ask for what others may have claimed, unless nobody has seen this replica yet."""
        if not self._has_shown:
            return
        if not self._has_lapsed:  # once, however often it takes to ask
            log.warning("out of sight: other replicas may have taken this one for dead")
        self._has_lapsed = True
        await self._on_lapse()

    @property
    def is_seen(self) -> bool:
        """Whether the others have seen lately that this replica lives."""
        return self._now_s() < self._beaten_at_s + TTL_S

    async def is_alive(self, replica: str) -> bool:
        """Whether a replica shows that it lives. Raises StoreDown."""
        return bool(await self._store.execute("EXISTS", self._key(replica)))

    async def is_dead(self, replica: str) -> bool:
        """Whether a replica is dead, and not only missing in a store that was emptied, or that nobody could reach.

        Raises:
            StoreDown: that cannot be told yet: the store has just been emptied, or come back, or this replica started.
        """
        if await self.is_alive(replica):
            return False
        if self._now_s() < self._shown_at_s + SETTLED_S or not await self.is_alive(self._replica):
            raise StoreDown
        return True

    def _note_store(self, _is_up: bool) -> None:
        self._shown_at_s = self._now_s()

    async def stop(self) -> None:
        """Let the others know at once that this replica is gone."""
        try:
            await self._store.execute("DEL", self._key(self._replica))
        except StoreDown:
            return

    def _key(self, replica: str) -> str:
        return self._store.key("alive", replica)
