"""The side of a relay that has the client: hands a retry to the owner of its round, and passes on what comes back."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias

from gateway.core.outcome import Outcome
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
    end_of_error,
    to_outcome,
)
from gateway.errors import GatewayError
from gateway.store.down import StoreDown
from gateway.wire.jsonrpc import JsonObject

STILL_S: Final = 2.0
"""How often a relayer shows that it waits, when nothing comes."""

ACKNOWLEDGE_EVERY: Final = 32
"""After how many notices it says that they were taken."""

_PATIENCE_S: Final = 20.0
"""How long an owner may be silent that is said to live."""

Send: TypeAlias = Callable[[Message, str], Awaitable[None]]
Answer: TypeAlias = Notice | Ended | Unknown | Working


class ClientStream(Protocol):
    """Where notifications go while a request is served."""

    async def notify(self, notification: JsonObject) -> None:
        """Send one to the client."""


class OwnerDied(Exception):  # noqa: N818 -- an event: somebody else takes the round over
    """The owner of a round is dead."""


class Relayer:
    """The relays of this replica's clients.

    Args:
        send: puts a message into a replica's inbox.
        is_dead: whether a replica is dead.
        run: runs work in the background.
    """

    def __init__(self, send: Send, is_dead: Callable[[str], Awaitable[bool]], run: Callable[..., object]) -> None:
        self._send = send
        self._is_dead = is_dead
        self._run = run
        self._open: dict[str, asyncio.Queue[Answer]] = {}
        self._done: defaultdict[str, list[str]] = defaultdict(list)
        self._parting: GatewayError | None = None

    def __len__(self) -> int:
        return len(self._open)

    def receive(self, message: Answer) -> None:
        """Take in what an owner says; of a relay that is over, nothing."""
        if (queue := self._open.get(message.relay)) is not None:
            queue.put_nowait(message)

    async def relay(self, serve: Serve, owner: str, client: ClientStream) -> Outcome:
        """Have a retry served by the owner of its round. Cancelling this cancels the call.

        Raises:
            OwnerDied: it is dead, and may have done its part or not.
            StoreDown: it cannot be reached now; the same retry may be sent again.
            GatewayError: what it refused, or failed with.
        """
        if self._parting is not None:
            raise self._parting
        self._open[serve.relay] = asyncio.Queue()
        try:
            outcome = await self._follow(serve, owner, client)
        except asyncio.CancelledError:
            self._run(self._tell(Cancel(serve.relay), owner))
            raise
        finally:
            del self._open[serve.relay]
        return outcome

    def leave(self, error: GatewayError) -> None:
        """End every relay here, and begin none; the calls go on at their owners, their clients come back elsewhere."""
        self._parting = error
        for relay in self._open:
            self.receive(Ended(relay, 0, end_of_error(error)))

    async def flush(self) -> None:
        """Tell owners of the relays that are over. Raises StoreDown; then it is told later."""
        for owner in list(self._done):
            await self._send(Done(self._done[owner]), owner)
            del self._done[owner]

    async def _follow(self, serve: Serve, owner: str, client: ClientStream) -> Outcome:
        await self._send(serve, owner)
        silent_s, taken = 0.0, 0
        while True:
            message = await self._next(serve.relay)
            silent_s = 0.0 if message is not None else silent_s + STILL_S
            match message:
                case None:
                    await self._look_after(serve, owner, taken, silent_s)
                case Notice() if message.number >= taken:
                    await client.notify(message.notification)
                    taken = message.number + 1
                    if taken % ACKNOWLEDGE_EVERY == 0:
                        await self._send(Still(serve.relay, serve.relayer, taken), owner)
                case Unknown():
                    await self._send(serve, owner)
                case Ended():
                    self._done[owner].append(serve.relay)
                    return to_outcome(message.end)

    async def _next(self, relay: str) -> Answer | None:
        try:
            async with asyncio.timeout(STILL_S):
                return await self._open[relay].get()
        except TimeoutError:
            return None

    async def _look_after(self, serve: Serve, owner: str, taken: int, silent_s: float) -> None:
        if await self._is_dead(owner):
            raise OwnerDied
        if silent_s >= _PATIENCE_S:
            raise StoreDown
        await self._send(Still(serve.relay, serve.relayer, taken), owner)

    async def _tell(self, message: Message, owner: str) -> None:
        try:
            await self._send(message, owner)
        except StoreDown:
            return  # the owner notices that nobody shows any more
