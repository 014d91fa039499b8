"""The side of a relay that has the client: hands a retry to the owner of its round, and passes on what comes back.

Rule: a relayer shows itself as long as its client waits, also while that is slow to take what it is told.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from gateway.core.outcome import Outcome
from gateway.core.relay import (
    Cancel,
    Done,
    Ended,
    FromOwner,
    Message,
    Notice,
    Serve,
    Still,
    Unknown,
    Working,
    end_of_error,
    to_outcome,
)
from gateway.errors import GatewayError, ProtocolError
from gateway.store.down import RETRY_AFTER_S, StoreDown
from gateway.wire import codes
from gateway.wire.jsonrpc import JsonObject

STILL_S: Final = 2.0
"""How often a relayer shows that it waits."""

ACKNOWLEDGE_EVERY: Final = 32
"""After how many notices it says that they were taken."""

_PATIENCE_S: Final = 20.0
"""How long an owner may be silent that is said to live."""

_MOST_SENT: Final = 4
"""How often a retry is sent to an owner that says that it knows nothing of it."""

Send: TypeAlias = Callable[[Message, str], Awaitable[None]]


class ClientStream(Protocol):
    """Where notifications go while a request is served."""

    async def notify(self, notification: JsonObject) -> None:
        """Send one to the client."""


class OwnerDied(Exception):  # noqa: N818 -- an event: somebody else takes the round over
    """The owner of a round is dead."""


@dataclass(slots=True)
class _Relay:
    """One relay.

    Args:
        serve: what was handed over.
        owner: to whom.
        shown_s: when the owner was told last that somebody waits.
        quiet_since_s: when the client had taken what had come so far; endless while it takes something.
        taken: how many notices it has taken.
        sent: how often the retry was sent.
        answers: what has come from the owner.
    """

    serve: Serve
    owner: str
    shown_s: float
    quiet_since_s: float
    taken: int = 0
    sent: int = 0
    answers: asyncio.Queue[FromOwner] = field(default_factory=asyncio.Queue)

    def still(self, now_s: float) -> Still:
        """Tells the owner that somebody waits."""
        self.shown_s = now_s
        is_idle = self.answers.empty() and now_s - self.quiet_since_s >= STILL_S
        return Still(self.serve.relay, self.serve.relayer, self.taken, is_idle)


class Relayer:
    """The relays of this replica's clients.

    Args:
        send: puts a message into a replica's inbox.
        is_dead: whether a replica is dead.
        run: runs work in the background.
        now_s: a monotonic clock.
    """

    def __init__(
        self,
        send: Send,
        is_dead: Callable[[str], Awaitable[bool]],
        run: Callable[..., object],
        now_s: Callable[[], float],
    ) -> None:
        self._send = send
        self._is_dead = is_dead
        self._run = run
        self._now_s = now_s
        self._open: dict[str, _Relay] = {}
        self._done: dict[str, list[str]] = {}
        self._parting: GatewayError | None = None

    def __len__(self) -> int:
        return len(self._open)

    def receive(self, message: FromOwner) -> None:
        """Take in what an owner says; of a relay that is over, nothing."""
        relay = self._open.get(message.relay)
        if relay is not None and (relay.answers.empty() or not isinstance(message, Working)):
            relay.answers.put_nowait(message)

    async def relay(self, serve: Serve, owner: str, client: ClientStream) -> Outcome:
        """Have a retry served by the owner of its round. Cancelling this cancels the call.

        Raises:
            OwnerDied: it is dead, and may have done its part or not.
            StoreDown: it cannot be reached now; the same retry may be sent again.
            GatewayError: what it refused, or failed with; or it lives and says nothing.
        """
        if self._parting is not None:
            raise self._parting
        now_s = self._now_s()
        relay = self._open[serve.relay] = _Relay(serve, owner, now_s, now_s)
        try:
            return await self._follow(relay, client)
        except asyncio.CancelledError:
            self._run(self._tell(Cancel(serve.relay), owner))
            raise
        finally:
            del self._open[serve.relay]

    def leave(self, error: GatewayError) -> None:
        """End every relay here, and begin none; the calls go on at their owners, their clients come back elsewhere."""
        self._parting = error
        for relay in self._open:
            self.receive(Ended(relay, end_of_error(error)))

    async def tend(self) -> None:
        """Show owners that somebody waits, and tell them of the relays that are over; to be called every second.

        Raises:
            StoreDown: it is told later.
        """
        for relay in list(self._open.values()):
            if self._now_s() - relay.shown_s >= STILL_S:
                await self._send(relay.still(self._now_s()), relay.owner)
        while self._done:
            owner, relays = self._done.popitem()
            try:
                await self._send(Done(relays), owner)
            except StoreDown:
                self._done.setdefault(owner, []).extend(relays)
                raise

    async def _follow(self, relay: _Relay, client: ClientStream) -> Outcome:
        await self._hand_over(relay)
        silent_s = 0.0
        while True:
            message = await _next(relay)
            silent_s = 0.0 if message is not None else silent_s + STILL_S
            match message:
                case None:
                    await self._look_after(relay, silent_s)
                case Notice() if message.number >= relay.taken:
                    await self._pass_on(message, relay, client)
                case Unknown():
                    await self._hand_over(relay)
                case Ended():
                    self._done.setdefault(relay.owner, []).append(relay.serve.relay)
                    return to_outcome(message.end)

    async def _hand_over(self, relay: _Relay) -> None:
        if relay.sent == _MOST_SENT:
            raise unanswered()
        relay.sent += 1
        await self._send(relay.serve, relay.owner)

    async def _pass_on(self, notice: Notice, relay: _Relay, client: ClientStream) -> None:
        relay.quiet_since_s = math.inf
        await client.notify(notice.notification)
        relay.quiet_since_s, relay.taken = self._now_s(), notice.number + 1
        if relay.taken % ACKNOWLEDGE_EVERY == 0:
            await self._tell(relay.still(self._now_s()), relay.owner)

    async def _look_after(self, relay: _Relay, silent_s: float) -> None:
        if await self._is_dead(relay.owner):
            raise OwnerDied
        if silent_s >= _PATIENCE_S:
            raise unanswered()

    async def _tell(self, message: Message, owner: str) -> None:
        try:
            await self._send(message, owner)
        except StoreDown:
            return  # `tend` shows it later, or the owner notices that nobody shows any more


async def _next(relay: _Relay) -> FromOwner | None:
    try:
        async with asyncio.timeout(STILL_S):
            return await relay.answers.get()
    except TimeoutError:
        return None


def unanswered() -> ProtocolError:
    """What a client is told whose call is at a replica that lives but does not answer."""
    return ProtocolError(
        codes.INTERNAL_ERROR,
        "The replica that keeps this call does not answer; send the same request again",
        {"reason": "replica", "retryable": True},
        status=503,
        reason="replica",
        headers=(("retry-after", str(RETRY_AFTER_S)),),
    )
