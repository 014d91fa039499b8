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

from gateway.core.claims import Claim, OwnerLost, Stage
from gateway.core.exchange import lost
from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller
from gateway.core.relay import (
    Cancel,
    Done,
    Ended,
    Message,
    Notice,
    Serve,
    Still,
    Unknown,
    Working,
    caller_members,
    request_members,
)
from gateway.core.request_state import RequestState, refused
from gateway.core.tokens import Sealer
from gateway.errors import GatewayError, ProtocolError
from gateway.rounds.claims import Claims
from gateway.rounds.heartbeat import Heartbeat
from gateway.rounds.inbox import Inbox
from gateway.rounds.memory import MemoryRounds, Round, RoundLimits
from gateway.rounds.owner import Owner, ServeUpstream
from gateway.rounds.relayed import RelayedCall
from gateway.rounds.relayer import ClientStream, OwnerDied, Relayer
from gateway.store.connection import SharedStore
from gateway.store.down import StoreDown

log = structlog.get_logger()

_AGAIN_S: Final = 0.05


class SharedRounds:
    """The suspended rounds of this replica, and the way to those of the others.

    Args:
        limits: how many this replica keeps, and for how long.
        store: what the replicas share.
        sealer: seals what replicas tell each other.
        serve: serves a request of an upstream by name.
        run: runs work in the background.
    """

    def __init__(
        self,
        limits: RoundLimits,
        store: SharedStore,
        sealer: Sealer,
        serve: ServeUpstream,
        run: Callable[[Any], asyncio.Task[None]],
    ) -> None:
        self._here = MemoryRounds(limits, run, on_timeout=self._expire)
        self.owner = self._here.owner
        self.is_shared = True
        self.counts = self._here.counts
        self.limits = limits
        self.admit, self.keep = self._here.admit, self._here.keep
        self.occupied, self.find = self._here.occupied, self._here.find
        self._store = store
        self._run = run
        self._running: dict[str, Round] = {}
        self._seized: dict[str, float] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._claims = Claims(store, self.owner, limits.ttl_s)
        self._heartbeat = Heartbeat(store, self.owner, self._check_claims, self._tidy, time.monotonic)
        self._inbox = Inbox(store, self.owner, sealer, self._receive)
        self._relayer = Relayer(self._inbox.send, self._heartbeat.is_dead, run)
        self._relayed = Owner(self._inbox.send, serve, run, time.monotonic)

    def __len__(self) -> int:
        return len(self._here)

    @property
    def ttl_s(self) -> float:
        """Seconds for which a round waits."""
        return self.limits.ttl_s

    # --- a round that is here ---

    async def acquire(self, handle: str, client: object = None) -> Any:
        """Take a round out: of any number of replicas exactly one gets it, the others get None."""
        round_ = self._here.claim(handle)
        if round_ is None:
            return None
        try:
            claim = await self._claims.take(handle)
        except StoreDown:
            claim = Claim(self.owner)  # nobody else can claim it now
        except BaseException:
            self._run(round_.expire())
            raise
        if claim.replica != self.owner:
            await round_.drop(_overtaken())
            return None
        self.counts.resumed += 1
        if isinstance(client, RelayedCall):
            self._relayed.note_claimed(client)
        return round_

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
        owner = state.owner
        while True:
            if not await self._heartbeat.is_dead(owner):
                relay = secrets.token_urlsafe(12)
                self.counts.relayed += 1
                members = request_members(request), caller_members(caller)
                serve = Serve(relay, self.owner, upstream, state.handle, *members)
                try:
                    return await self._relayer.relay(serve, owner, client)
                except OwnerDied:
                    log.info("owner died while it was relayed", upstream=upstream)
            check()
            if (seized := await self._seize(state.handle, owner)) is not None:
                raise seized

    def is_relayed(self, handle: str) -> bool:
        """Whether a retry of a round of ours is served, or has been a moment ago, for another replica."""
        return self._relayed.knows(handle)

    async def _seize(self, handle: str, owner: str) -> OwnerLost | None:
        """Claim a round whose owner is dead, and say what is known of its answers; None: look again.

        Raises:
            ProtocolError: somebody who lives has claimed it.
        """
        found = await self._claims.take(handle)
        if found.replica == self.owner:
            if found.stage is Stage.LOST:
                raise lost()
            if handle in self._seized:
                raise refused("used or expired")
            taken: Claim | None = found
            before = None
        else:
            if found.stage is Stage.LOST:
                raise lost()
            if found.replica != owner and not await self._heartbeat.is_dead(found.replica):
                raise refused("used or expired")
            taken, before = await self._claims.take_from(found, handle), found
        if taken is None:
            return None
        if await self._heartbeat.is_alive(owner):
            await self._claims.give_back(taken, handle, to=before)
            return None
        self.counts.taken_over += 1
        self._seized[handle] = time.monotonic() + self.ttl_s
        return OwnerLost(is_posted=False if before is None else before.stage is Stage.POSTED or None)

    # --- this replica among others ---

    def start(self) -> None:
        """Show that this replica lives, and read what the others send."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._heartbeat.run()), loop.create_task(self._inbox.read())]

    @property
    def relayed(self) -> int:
        """How many retries other replicas have us serve."""
        return len(self._relayed)

    async def hand_over(self, error: GatewayError) -> None:
        """Let go of every round that another replica can go on with, and tell the others that this one is gone.

        Args:
            error: what clients are told whose retries are at work here, or relayed from here.
        """
        resumable = [(handle, round_) for handle, round_ in self._rounds() if round_.is_resumable]
        for handle, round_ in resumable:
            self._here.claim(handle)
            await round_.drop(error)
        self._relayer.leave(error)
        await self._end_tasks()
        await self._heartbeat.stop()

    async def close(self) -> None:
        """End every round, and leave the store."""
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
        match message:
            case Serve() | Still() | Cancel() | Done():
                self._relayed.receive(message)
            case Notice() | Ended() | Unknown() | Working():
                self._relayer.receive(message)

    async def _tidy(self) -> None:
        """Done with every beat."""
        self._relayed.sweep()
        now_s = time.monotonic()
        for handle in [handle for handle, until_s in self._seized.items() if until_s < now_s]:
            del self._seized[handle]
        await self._inbox.tidy()
        await self._relayer.flush()

    async def _check_claims(self) -> None:
        """This replica was taken for dead: let go of every round that another one has claimed since."""
        for handle, round_ in self._rounds():
            claim = await self._claims.of(handle)
            if claim is not None and claim.replica != self.owner:
                self._here.claim(handle)
                await round_.drop(_overtaken())

    async def _expire(self, handle: str) -> None:
        """Nobody came back in time."""
        round_ = await self.acquire(handle)
        if round_ is not None:
            await round_.expire()


def _overtaken() -> ProtocolError:
    return refused("overtaken by another replica")
