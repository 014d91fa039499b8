"""One call that another replica relays: where its notifications go, and how it ended."""

import asyncio
from collections.abc import Callable
from typing import Final

from gateway.core.relay import Ended, Notice, Serve, to_caller, to_request
from gateway.rounds.relayer import Send
from gateway.store.down import StoreDown
from gateway.wire.jsonrpc import JsonObject, encode

WINDOW: Final = 64
"""How many notifications may be on the way: what the client does not take, the server is not asked for."""


class RelayedCall:
    """A retry that a relayer handed over.

    Args:
        serve: what it handed over.
        send: puts a message into a replica's inbox.
        now_s: a monotonic clock.

    Attributes:
        relay: the id of the relay that waits for the end now.
        relayer: the replica that does.
        seen_s: when that showed itself last.
        task: the work, once it has begun.
        size: about how many bytes the end holds.
    """

    def __init__(self, serve: Serve, send: Send, now_s: Callable[[], float]) -> None:
        self.relay = serve.relay
        self.relayer = serve.relayer
        self.upstream = serve.upstream
        self.handle = serve.handle
        self.request = to_request(serve.request)
        self.caller = to_caller(serve.caller)
        self.seen_s = now_s()
        self.task: asyncio.Task[None] | None = None
        self.size = 0
        self._send = send
        self._now_s = now_s
        self._end: JsonObject | None = None
        self._sent = 0
        self._taken = 0
        self._has_room = asyncio.Event()
        self._has_room.set()

    @property
    def is_ended(self) -> bool:
        """Whether there is an end to tell."""
        return self._end is not None

    def silent_s(self, now_s: float) -> float:
        """For how many seconds the relayer has not shown itself."""
        return now_s - self.seen_s

    def note_still(self, taken: int) -> None:
        """The relayer has taken so many notifications."""
        self.seen_s = self._now_s()
        self._taken = max(self._taken, taken)
        if self._sent - self._taken < WINDOW:
            self._has_room.set()

    def attach(self, serve: Serve) -> None:
        """Go on for another relay of the same retry."""
        self.relay, self.relayer, self.seen_s = serve.relay, serve.relayer, self._now_s()
        self._sent = self._taken = 0
        self._has_room.set()

    async def notify(self, notification: JsonObject) -> None:
        """Send a notification to the client of the relayer; one that cannot be sent is lost, the call goes on."""
        await self._has_room.wait()
        number, self._sent = self._sent, self._sent + 1
        if self._sent - self._taken >= WINDOW:
            self._has_room.clear()
        try:
            await self._send(Notice(self.relay, number, notification), self.relayer)
        except StoreDown:
            return

    def end_with(self, end: JsonObject) -> None:
        """The call has come to its end."""
        self._end = end
        self.size = len(encode(end))

    def ended(self) -> Ended:
        """What the relayer is told of the end."""
        assert self._end is not None  # noqa: S101 -- asked only of a call that has ended
        return Ended(self.relay, self._sent, self._end)
