"""Who goes on with the rounds of a replica that is dead: whoever claims them, once.

Rule: a heartbeat that is missing says only when to try; the claim decides. After it, the owner is looked at once more.
"""

from collections.abc import Callable

from gateway.core.claims import Claim, OwnerLost, Stage
from gateway.core.request_state import lost, refused
from gateway.errors import ProtocolError
from gateway.rounds.claims import Claims
from gateway.rounds.heartbeat import Heartbeat


class Succession:
    """The rounds that one replica takes over from others.

    Args:
        claims: its claims.
        heartbeat: tells who lives.
        replica: this one.
        ttl_s: seconds for which a token is good.
        now_s: a monotonic clock.
    """

    def __init__(
        self, claims: Claims, heartbeat: Heartbeat, replica: str, ttl_s: float, now_s: Callable[[], float]
    ) -> None:
        self._claims = claims
        self._heartbeat = heartbeat
        self._replica = replica
        self._ttl_s = ttl_s
        self._now_s = now_s
        self._seized: dict[str, float] = {}

    async def seize(self, handle: str, owner: str) -> str:
        """Claim a round whose owner is dead.

        Returns:
            The replica to turn to, if it could not be had: another one that has claimed it, and is not known to be dead
            (should it have died over it, the client has come back before anybody could know), or the owner again.

        Raises:
            OwnerLost: the round is ours, with what is known of its answers.
            ProtocolError: another copy of the same retry has it, or it is lost.
            StoreDown: the store cannot be reached; trying again is safe.
        """
        if handle in self._seized:
            raise await self._taken(handle)
        self._seized[handle] = self._now_s() + self._ttl_s
        try:
            turn_to = await self._take(handle, owner)
        except OwnerLost:
            raise
        except BaseException:
            del self._seized[handle]
            raise
        del self._seized[handle]
        return turn_to

    def sweep(self) -> None:
        """Forget the rounds whose tokens have expired."""
        now_s = self._now_s()
        self._seized = {handle: until_s for handle, until_s in self._seized.items() if until_s > now_s}

    async def _taken(self, handle: str) -> ProtocolError:
        """What another copy of a retry is told whose round is being taken over, or has been."""
        claim = await self._claims.of(handle)
        return lost() if claim is not None and claim.stage is Stage.LOST else refused("used or expired")

    async def _take(self, handle: str, owner: str) -> str:
        before = await self._claims.take(handle)
        if before is None:
            ours: Claim | None = Claim(self._replica)
        elif before.stage is Stage.LOST:
            raise lost()
        elif before.replica == self._replica:
            ours = before  # claimed by an attempt that did not hear of it
        elif before.replica != owner and not await self._heartbeat.is_dead(before.replica):
            return before.replica
        else:
            ours = await self._claims.take_from(before, handle)
        if ours is None:
            return owner
        if await self._heartbeat.is_alive(owner):
            await self._claims.give_back(ours, handle, to=before if before != ours else None)
            return owner
        raise OwnerLost(is_posted=False if before is None else before.stage is Stage.POSTED or None)
