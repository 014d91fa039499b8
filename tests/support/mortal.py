"""Replicas within this process that die when a test says so: what servers see of it is what they see of a killed one.

async with mortal(server) as (one, other), RoundClient(other.url) as client:
    asked = await client.call("book", url=one.url)
    await one.die()
    done = await client.call("book", answers=..., state=asked.state)

There is no store between them. Who is dead and who has claimed which round stands on a blackboard, and a retry must not
be sent to a replica that is alive and not the one that asked.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any
from unittest.mock import patch

from cryptography.fernet import Fernet

from gateway.app import Gateway
from gateway.core.claims import Claim, OwnerLost, Stage
from gateway.core.outcome import Outcome
from gateway.core.request_state import RequestState, lost, refused
from gateway.rounds.memory import MemoryRounds, Round, RoundLimits
from tests.support.running_gateway import RunningGateway, running_gateway


class Blackboard:
    """What the replicas know of each other.

    Attributes:
        claims: on rounds, by handle.
        dead: the replicas that have died.
    """

    def __init__(self) -> None:
        self.claims: dict[str, Claim] = {}
        self.dead: set[str] = set()


class MortalRounds(MemoryRounds):
    """The directory of one replica."""

    def __init__(self, board: Blackboard, limits: RoundLimits, run: Callable[[Any], object]) -> None:
        super().__init__(limits, run)
        self.is_shared = True
        self.board = board
        self._working: dict[str, Round] = {}

    async def acquire(self, handle: str, _client: object = None) -> Any:
        """Take a round out."""
        round_ = self.claim(handle)
        if round_ is not None:
            self.board.claims[handle] = Claim(self.owner)
        return round_

    async def note(self, handle: str, stage: Stage) -> None:
        """Say how far a round has come."""
        if self.owner not in self.board.dead and self.board.claims[handle].stage is not Stage.LOST:
            self.board.claims[handle] = Claim(self.owner, stage)

    @contextmanager
    def running(self, handle: str, round_: Round) -> Iterator[None]:
        """While a claimed round is worked on."""
        self._working[handle] = round_
        try:
            yield
        finally:
            del self._working[handle]

    async def forward(self, *retry: Any) -> Outcome:
        """Claim the round of a dead owner. Raises OwnerLost."""
        _upstream, state, _request, _caller, _client, check = retry
        assert isinstance(state, RequestState)
        assert state.owner in self.board.dead, "the replica that asked is alive"
        check()
        before = self.board.claims.get(state.handle)
        if before is not None and before.stage is Stage.LOST:
            raise lost()
        if before is not None and before.replica not in self.board.dead:
            raise refused("used or expired")
        self.board.claims[state.handle] = Claim(self.owner, Stage.CLAIMED if before is None else before.stage)
        raise OwnerLost(is_posted=False if before is None else before.stage is Stage.POSTED or None)

    async def die(self) -> None:
        """Break every connection of every round, without a word."""
        self.board.dead.add(self.owner)
        for handle, round_ in [*self._working.items(), *self.items()]:
            self.claim(handle)
            await round_.drop(refused("its replica is dead"))


class Mortal(RunningGateway):
    """A replica."""

    @property
    def rounds(self) -> MortalRounds:
        """Its directory."""
        rounds = self.gateway.rounds
        assert isinstance(rounds, MortalRounds)
        return rounds

    @property
    def board(self) -> Blackboard:
        """What it shares with the others."""
        return self.rounds.board

    async def die(self) -> None:
        """End as a process that is killed."""
        await self.rounds.die()
        await self.until_idle()


@asynccontextmanager
async def mortal(
    url: str, *, count: int = 2, upstream: Mapping[str, Any] | None = None, **sections: Mapping[str, Any]
) -> AsyncIterator[list[Mortal]]:
    """Run replicas in front of one legacy server, `docs`; none may leave anything behind.

    Args:
        url: the server.
        count: how many replicas.
        upstream: more configuration of the server.
        sections: configuration by section.
    """
    board = Blackboard()

    def open_rounds(gateway: Gateway, _rounds: object) -> MortalRounds:
        rounds = gateway._settings.rounds
        limits = RoundLimits(rounds.ttl_s, rounds.max, rounds.max_per_principal, rounds.max_per_upstream)
        return MortalRounds(board, limits, gateway._background.run)

    docs = {"docs": {"url": url, "era": "legacy", **(upstream or {})}}
    sections = {"state": {"keys": Fernet.generate_key().decode()}, **sections}
    async with AsyncExitStack() as stack:
        stack.enter_context(patch.object(Gateway, "_open_rounds", open_rounds))
        replicas = []
        for _ in range(count):
            running = await stack.enter_async_context(running_gateway(upstreams=docs, **sections))
            replicas.append(Mortal(running.gateway, running.url, running.log))
        yield replicas
        for replica in replicas:
            await replica.until_idle()
