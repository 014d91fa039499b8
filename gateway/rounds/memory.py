"""The directory of one process: suspended rounds by handle, bounded in number and in time."""

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, Protocol

from gateway.core.claims import Stage
from gateway.core.counts import RoundCounts
from gateway.core.outcome import Outcome
from gateway.core.principal import ANONYMOUS, Principal
from gateway.core.request_state import lost
from gateway.errors import GatewayError, ProtocolError
from gateway.wire import codes

_RETRY_AFTER_S: Final = 10


class Round(Protocol):
    """Something that waits for its client."""

    @property
    def is_resumable(self) -> bool:
        """Whether another replica could go on with it."""

    async def expire(self) -> None:
        """Nobody came back in time."""

    async def drop(self, error: GatewayError) -> None:
        """Let go of it without a word to the server: another replica goes on with it.

        Args:
            error: what a client is told that waits for it here.
        """


@dataclass(frozen=True, slots=True)
class RoundLimits:
    """How many rounds may be suspended, and for how long.

    Args:
        ttl_s: seconds for which a round waits.
        max_rounds: in all.
        max_per_principal: of one authenticated principal; everybody anonymous is bounded by `max_rounds` alone.
        max_per_upstream: on one upstream; None: no bound of its own.
    """

    ttl_s: float = 600.0
    max_rounds: int = 1000
    max_per_principal: int = 20
    max_per_upstream: int | None = None


@dataclass(slots=True)
class _Entry:
    round: Any
    principal_id: str
    upstream: str
    timer: asyncio.TimerHandle


class MemoryRounds:
    """The suspended rounds of this process.

    Args:
        limits: how many, and for how long.
        run: runs work in the background.
        on_timeout: called with the handle of a round that nobody came back for; by default the round is expired.

    Attributes:
        owner: names this process in the tokens that it seals.
        is_shared: whether other processes know of its rounds.
        counts: what became of rounds.
    """

    def __init__(
        self,
        limits: RoundLimits,
        run: Callable[[Any], object],
        on_timeout: Callable[[str], Coroutine[Any, Any, None]] | None = None,
    ) -> None:
        self.owner = secrets.token_hex(8)
        self.is_shared = False
        self.counts = RoundCounts()
        self.limits = limits
        self._run = run
        self._on_timeout = on_timeout or self._expire
        self._entries: dict[str, _Entry] = {}
        self._resumed = 0
        self._by_principal: Counter[str] = Counter()
        self._by_upstream: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def ttl_s(self) -> float:
        """Seconds for which a round waits."""
        return self.limits.ttl_s

    def admit(self, principal: Principal, upstream: str) -> None:
        """Make sure that one more round may be suspended.

        Raises:
            ProtocolError: 429 when the principal has too many, 503 when all have; with `Retry-After`.
        """
        limits = self.limits
        if principal.id != ANONYMOUS.id and self._by_principal[principal.id] >= limits.max_per_principal:
            raise _full(429, f"You have {limits.max_per_principal} questions open; answer one, or let one expire")
        if len(self._entries) + self._resumed >= limits.max_rounds:
            raise _full(503, "The gateway has no room for another open question")
        if limits.max_per_upstream is not None and self._by_upstream[upstream] >= limits.max_per_upstream:
            raise _full(503, f"Upstream {upstream!r} has no room for another open question")

    def keep(self, round_: Round, principal: Principal, upstream: str) -> str:
        """Suspend a round.

        Returns:
            Its handle, 128 random bits, good for one claim.
        """
        handle = secrets.token_urlsafe(16)
        self.counts.suspended += 1
        timer = asyncio.get_running_loop().call_later(self.limits.ttl_s, self._time_out, handle)
        self._entries[handle] = _Entry(round_, principal.id, upstream, timer)
        self._by_principal[principal.id] += 1
        self._by_upstream[upstream] += 1
        return handle

    @contextmanager
    def occupied(self, principal: Principal, upstream: str) -> Iterator[None]:
        """Keep the place of a call that goes on: it may ask again, and is not to find its place taken."""
        self._resumed += 1
        self._by_principal[principal.id] += 1
        self._by_upstream[upstream] += 1
        try:
            yield
        finally:
            self._resumed -= 1
            self._discount(self._by_principal, principal.id)
            self._discount(self._by_upstream, upstream)

    def find(self, handle: str) -> Any:
        """Look at a round without claiming it; None if it is not here."""
        entry = self._entries.get(handle)
        return None if entry is None else entry.round

    def claim(self, handle: str) -> Any:
        """Take a round out: of any number of claims exactly one gets it, the others get None."""
        entry = self._entries.pop(handle, None)
        if entry is None:
            return None
        entry.timer.cancel()
        self._discount(self._by_principal, entry.principal_id)
        self._discount(self._by_upstream, entry.upstream)
        return entry.round

    def start(self) -> None:
        """There is nobody else to tell."""

    async def acquire(self, handle: str, _client: object = None) -> Any:
        """`claim`, as a directory does that must ask others first."""
        round_ = self.claim(handle)
        self.counts.resumed += round_ is not None
        return round_

    @property
    def relayed(self) -> int:
        """There is nobody who relays."""
        return 0

    async def hand_over(self, _error: GatewayError) -> None:
        """There is nobody to take over."""

    def is_relayed(self, _handle: str) -> bool:
        """There is nobody who relays."""
        return False

    async def note(self, handle: str, stage: Stage) -> None:
        """How far a round has come is of interest only to who would take over."""

    def running(self, _handle: str, _round: Round) -> AbstractContextManager[None]:
        """While a claimed round is worked on."""
        return nullcontext()

    async def forward(self, *_retry: object) -> Outcome:
        """A round that is not here is nowhere.

        Raises:
            ProtocolError: `lost`.
        """
        self.counts.lost += 1
        raise lost()

    def items(self) -> list[tuple[str, Any]]:
        """Every round with its handle."""
        return [(handle, entry.round) for handle, entry in self._entries.items()]

    async def close(self) -> None:
        """End every round, as if nobody had come back."""
        rounds: list[Awaitable[None]] = [self.claim(handle).expire() for handle in list(self._entries)]
        await asyncio.gather(*rounds, return_exceptions=True)

    def _time_out(self, handle: str) -> None:
        self.counts.expired += 1
        self._run(self._on_timeout(handle))

    async def _expire(self, handle: str) -> None:
        round_ = self.claim(handle)
        if round_ is not None:
            await round_.expire()

    def _discount(self, counter: Counter[str], key: str) -> None:
        counter[key] -= 1
        if not counter[key]:
            del counter[key]


def _full(status: int, message: str) -> ProtocolError:
    return ProtocolError(
        codes.INTERNAL_ERROR,
        message,
        {"reason": "full", "retryable": False},
        status=status,
        headers=(("retry-after", str(_RETRY_AFTER_S)),),
    )
