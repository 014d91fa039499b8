"""Claims in the shared store: of any number of replicas, exactly one gets a round.

A claim outlives the token that it is about, so that a used token stays used.
"""

from typing import Final

from gateway.core.claims import Claim, Stage
from gateway.store.connection import SharedStore
from gateway.store.down import StoreDown

_SLACK_S: Final = 60.0

_SWAP: Final = (
    "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL') return 1 end return 0"
)
"""Replace a claim that is still what it was. One key, so that a cluster can do it."""

_DROP: Final = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class ClaimUnread(StoreDown):
    """Somebody else has a round, and the store could not be asked who."""


class Claims:
    """The claims of one replica.

    Args:
        store: where they stand.
        replica: who claims.
        ttl_s: seconds for which a token is good.
    """

    def __init__(self, store: SharedStore, replica: str, ttl_s: float) -> None:
        self._store = store
        self._replica = replica
        self._ttl_ms = int((ttl_s + _SLACK_S) * 1000)

    async def take(self, handle: str) -> Claim | None:
        """Claim a round, unless somebody has.

        Returns:
            None if it is ours now; else the claim that stands, which may be one that we made earlier.

        Raises:
            ClaimUnread: somebody has claimed it; it is not known who.
            StoreDown: it is not known whether it was claimed; taking it again is safe.
        """
        words = (self._key(handle), Claim(self._replica).to_text(), "NX", "PX", self._ttl_ms)
        if await self._store.execute("SET", *words):
            return None
        try:
            found = await self.of(handle)
        except StoreDown as error:
            raise ClaimUnread from error
        if found is None:
            raise ClaimUnread
        return found

    async def of(self, handle: str) -> Claim | None:
        """The claim on a round, None if there is none. Raises StoreDown."""
        text = await self._store.execute("GET", self._key(handle))
        return None if text is None else Claim.from_text(text)

    async def take_from(self, dead: Claim, handle: str) -> Claim | None:
        """Take a claim over from a replica that is dead; None if it has changed meanwhile. Raises StoreDown."""
        claim = Claim(self._replica, dead.stage)
        return claim if await self._swap(handle, dead, claim) else None

    async def note(self, handle: str, stage: Stage) -> None:
        """Say how far a round of ours has come since it was claimed. Raises StoreDown."""
        for before in (Stage.CLAIMED, Stage.POSTED):
            if await self._swap(handle, Claim(self._replica, before), Claim(self._replica, stage)):
                return

    async def give_back(self, claim: Claim, handle: str, to: Claim | None) -> None:
        """Undo a claim that was taken from somebody who is alive after all. Raises StoreDown."""
        if to is not None:
            await self._swap(handle, claim, to)
        else:
            await self._store.execute("EVAL", _DROP, 1, self._key(handle), claim.to_text())

    async def _swap(self, handle: str, old: Claim, new: Claim) -> bool:
        return bool(await self._store.execute("EVAL", _SWAP, 1, self._key(handle), old.to_text(), new.to_text()))

    def _key(self, handle: str) -> str:
        return self._store.key("claim", handle)
