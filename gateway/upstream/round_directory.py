"""What rounds need of the directory that keeps them, in this process or for many."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from gateway.core.claims import Stage
from gateway.core.counts import RoundCounts
from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller, Principal
from gateway.core.request_state import RequestState
from gateway.upstream.client_stream import ClientStream


class RoundDirectory(Protocol):
    """Keeps suspended rounds, and gives each to one claimant."""

    owner: str
    is_shared: bool
    counts: RoundCounts

    @property
    def ttl_s(self) -> float:
        """Seconds for which a round waits."""

    def admit(self, principal: Principal, upstream: str) -> None:
        """Raise ProtocolError when there is no room."""

    def keep(self, round_: Any, principal: Principal, upstream: str) -> str:
        """Suspend a round and return its handle."""

    def occupied(self, principal: Principal, upstream: str) -> AbstractContextManager[None]:
        """Keep the place of a call that goes on."""

    def find(self, handle: str) -> Any:
        """Look at a round; None if it is not here."""

    async def acquire(self, handle: str, client: ClientStream) -> Any:
        """Take a round out; None if it is gone, or another replica has it."""

    async def note(self, handle: str, stage: Stage) -> None:
        """Say how far a round of ours has come since it was taken out."""

    def is_relayed(self, handle: str) -> bool:
        """Whether a retry of a round of ours is served for another process."""

    def running(self, handle: str, round_: Any) -> AbstractContextManager[None]:
        """While a round that was taken out is worked on."""

    async def forward(
        self,
        upstream: str,
        state: RequestState,
        request: InboundRequest,
        caller: Caller,
        client: ClientStream,
        check: Callable[[], None],
    ) -> Outcome:
        """Have the replica that keeps a round serve its retry. Raises OwnerLost when that is dead."""
