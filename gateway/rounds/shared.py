"""The directory of many replicas: each keeps its own rounds, and the shared store says where they are and whose.

Rule: a round is acted upon after it has been claimed in the store. If the store cannot be reached, the replica that
keeps a round may still go on with it; every other one must wait for the store.
A plain call, and a question that is asked, cost no command.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import structlog

from gateway.core.claims import OwnerLost, Stage
from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller
from gateway.core.relay import FromRelayer, Message, Serve, caller_members, request_members
from gateway.core.request_state import RequestState, refused
from gateway.core.tokens import Sealer
from gateway.errors import GatewayError, ProtocolError
from gateway.rounds.claims import Claims, ClaimUnread
from gateway.rounds.heartbeat import Heartbeat
from gateway.rounds.inbox import Inbox
from gateway.rounds.memory import MemoryRounds, Round, RoundLimits
from gateway.rounds.owner import Owner, ServeUpstream
from gateway.rounds.relayed import RelayedCall
from gateway.rounds.relayer import ClientStream, OwnerDied, Relayer, unanswered
from gateway.rounds.succession import Succession
from gateway.store.connection import SharedStore
from gateway.store.down import StoreDown

log = structlog.get_logger()

_AGAIN_S: Final = 0.05
_TIDY_S: Final = 1.0
_UNSEEN_PAUSE_S: Final = 1.0
_MOST_TURNS: Final = 8
"""How many replicas a retry is brought to, should each die, or come back, while it is looked at."""


class SharedRounds:
    """The suspended rounds of this replica, and the way to those of the others.

    Args:
        limits: how many this replica keeps, and for how long.
        store: what the replicas share.
        sealer: seals what replicas tell each other.
        serve: serves a request of an upstream by name.
        run: runs work in the background.
        now_s: a monotonic clock.
    """

    def __init__(
        self,
        limits: RoundLimits,
        store: SharedStore,
        sealer: Sealer,
        serve: ServeUpstream,
        run: Callable[[Any], asyncio.Task[None]],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._here = MemoryRounds(limits, run, on_timeout=self._expire)
        self.owner = self._here.owner
        self.is_shared = True
        self.counts = self._here.counts
        self.limits = limits
        self.admit, self.keep = self._here.admit, self._here.keep
        self.occupied = self._here.occupied
        self._parting: GatewayError | None = None
        self._store = store
        self._run = run
        self._now_s = now_s
        self._running: dict[str, Round] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._claims = Claims(store, self.owner, limits.ttl_s)
        self._heartbeat = Heartbeat(store, self.owner, self._check_claims, now_s)
        self._succession = Succession(self._claims, self._heartbeat, self.owner, limits.ttl_s, now_s)
        self._inbox = Inbox(store, self.owner, sealer, self._receive)
        self._relayer = Relayer(self._inbox.send, self._heartbeat.is_dead, run, now_s)
        self._relayed = Owner(self._inbox.send, serve, run, now_s)

    def __len__(self) -> int:
        return len(self._here)

    @property
    def ttl_s(self) -> float:
        """Seconds for which a round waits."""
        return self.limits.ttl_s

    # --- a round that is here ---

    def find(self, handle: str) -> Any:
        """Look at a round; None if it is gone.

        Raises:
            GatewayError: it may have been handed over a moment ago: another replica serves its retry.
        """
        round_ = self._here.find(handle)
        if round_ is None and self._parting is not None:
            raise self._parting
        return round_

    async def acquire(self, handle: str, client: object = None) -> Any:
        """Take a round out: of any number of replicas exactly one gets it, the others get None."""
        round_ = self._here.claim(handle)
        if round_ is None:
            return None
        try:
            is_ours = await self._claim(handle)
        except BaseException:
            self._run(round_.expire())
            raise
        if not is_ours:
            await round_.drop(_overtaken())
            return None
        self.counts.resumed += 1
        if isinstance(client, RelayedCall):
            self._relayed.note_claimed(client)
        return round_

    async def _claim(self, handle: str) -> bool:
        """Whether a round that is kept here may be gone on with here."""
        try:
            found = await self._claims.take(handle)
        except ClaimUnread:
            return False
        except StoreDown:
            return True  # nobody else can claim it now
        return found is None or found.replica == self.owner

    async def note(self, handle: str, stage: Stage) -> None:
        """Say how far a round of ours has come since it was claimed."""
        try:
            await self._claims.note(handle, stage)
        except StoreDown:
            return  # who takes over from us listens to the server before it answers again

    @contextmanager
    def running(self, handle: str, round_: Round) -> Iterator[None]:
        """While a claimed round is worked on: should this replica be taken for dead meanwhile, it asks whose it is."""
        self._running[handle] = round_
        try:
            yield
        finally:
            del self._running[handle]

    # --- a round that is elsewhere ---

    async def forward(
        self,
        upstream: str,
        state: RequestState,
        request: InboundRequest,
        caller: Caller,
        client: ClientStream,
        check: Callable[[], None],
    ) -> Outcome:
        """Have a retry served by the replica that keeps its round.

        Args:
            upstream: whose call it is.
            state: what its token says.
            request: the retry.
            caller: whose it is.
            client: where notifications go.
            check: raises if the retry is not fit to be gone on with here; called before the round is claimed.

        Raises:
            OwnerLost: that one is dead, and the round has been claimed by this one.
            ProtocolError: the round is used; or what the owner refused.
            StoreDown: the store cannot be reached; the retry may be sent again.
            UpstreamError: as the owner says.
        """
        holder = state.owner
        for _ in range(_MOST_TURNS):
            if not await self._heartbeat.is_dead(holder):
                self.counts.relayed += 1
                members = request_members(request), caller_members(caller)
                serve = Serve(secrets.token_urlsafe(12), self.owner, upstream, state.handle, *members)
                try:
                    return await self._relayer.relay(serve, holder, client)
                except OwnerDied:
                    log.info("owner died while it was relayed", upstream=upstream)
            check()
            try:
                holder = await self._succession.seize(state.handle, state.owner)
            except OwnerLost:
                self.counts.taken_over += 1
                raise
        raise unanswered()

    def is_relayed(self, handle: str) -> bool:
        """Whether a retry of a round of ours is served, or has been a moment ago, for another replica."""
        return self._relayed.knows(handle)

    # --- this replica among others ---

    def start(self) -> None:
        """Show that this replica lives, and read what the others send."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(work) for work in (self._heartbeat.run(), self._inbox.read(), self._tidy())]

    @property
    def relayed(self) -> int:
        """How many retries other replicas have us serve."""
        return len(self._relayed)

    async def hand_over(self, error: GatewayError) -> None:
        """Let go of every round that another replica can go on with, and tell the others that this one is gone.

        Args:
            error: what clients are told whose retries are at work here, or relayed from here.
        """
        self._parting = error
        await self._let_go(error)
        self._relayer.leave(error)
        await self._end_tasks()
        await self._heartbeat.stop()

    async def _let_go(self, error: GatewayError) -> None:
        """Drop every round that another replica can go on with."""
        for handle, round_ in self._rounds():
            if round_.is_resumable:
                self._here.claim(handle)
                await round_.drop(error)

    async def close(self) -> None:
        """End every round that nobody else can go on with, and leave the store."""
        await self._let_go(self._parting or _overtaken())  # a call may have asked since the others were handed over
        await self._here.close()
        await self._end_tasks()
        await self._heartbeat.stop()
        await self._store.close()

    async def _end_tasks(self) -> None:
        pending = set(self._tasks)
        while pending:  # the store's client loses a cancellation that meets it while it connects
            for task in pending:
                task.cancel()
            _done, pending = await asyncio.wait(pending, timeout=_AGAIN_S)

    def _rounds(self) -> list[tuple[str, Round]]:
        """Every round of this replica, at work or suspended."""
        return [*self._running.items(), *self._here.items()]

    def _receive(self, message: Message) -> None:
        if isinstance(message, FromRelayer):
            self._relayed.receive(message)
        else:
            self._relayer.receive(message)

    async def _tidy(self) -> None:
        """Done every second, apart from the heartbeat, which must not be late because the store is slow."""
        while True:
            self._relayed.sweep()
            self._succession.sweep()
            try:
                await self._inbox.tidy()
                await self._relayer.tend()
            except StoreDown:
                pass
            except Exception:
                log.exception("relays cannot be tended")
            await asyncio.sleep(_TIDY_S)

    async def _check_claims(self) -> None:
        """This replica was taken for dead: let go of every round that another one has claimed since."""
        for handle, round_ in self._rounds():
            claim = await self._claims.of(handle)
            if claim is not None and claim.replica != self.owner:
                self._here.claim(handle)
                await round_.drop(_overtaken())

    async def _expire(self, handle: str) -> None:
        """Nobody came back in time; unless to another replica, which took this one for dead, out of sight as it is."""
        until_s = self._now_s() + self.ttl_s
        while (round_ := self._here.find(handle)) is not None and round_.is_resumable and not self._heartbeat.is_seen:
            if self._now_s() > until_s:
                self._here.claim(handle)
                await round_.drop(_overtaken())
                return
            await asyncio.sleep(_UNSEEN_PAUSE_S)
        round_ = await self.acquire(handle)
        if round_ is not None:
            await round_.expire()


def _overtaken() -> ProtocolError:
    return refused("overtaken by another replica")
