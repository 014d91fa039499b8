"""One call that another replica relays: where its notifications go, and how it ended.

Rule: a slow client holds up its own call, as it would if it were connected here; a relayer that fell silent does not.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from gateway.core.relay import Ended, Notice, Serve, to_caller, to_request
from gateway.rounds.relayer import Send
from gateway.store.down import StoreDown
from gateway.wire.jsonrpc import JsonObject, encode

WINDOW: Final = 64
"""How many notifications may be on the way: what the client does not take, the server is not asked for."""

SILENT_S: Final = 6.0
"""How long a relayer may be silent before its relay counts as given up."""

_LOOK_S: Final = 0.25


class RelayedCall:
    """A retry that a relayer handed over.

    Args:
        serve: what it handed over.
        send: puts a message into a replica's inbox.
        now_s: a monotonic clock.

    Attributes:
        relay: the id of the relay that waits for the end now.
        relayer: the replica that does.
        since_s: since when that waits.
        seen_s: when it showed itself last.
        task: the work, once it has begun.
        size: about how many bytes the end holds.

    Raises:
        ValueError: it is no retry that this version of the gateway knows.
    """

    def __init__(self, serve: Serve, send: Send, now_s: Callable[[], float]) -> None:
        self.relay = serve.relay
        self.relayer = serve.relayer
        self.upstream = serve.upstream
        self.handle = serve.handle
        self.request = to_request(serve.request)
        self.caller = to_caller(serve.caller)
        self.since_s = self.seen_s = now_s()
        self.task: asyncio.Task[None] | None = None
        self.size = 0
        self._send = send
        self._now_s = now_s
        self._end: JsonObject | None = None
        self._ended_s = 0.0
        self._number = 0
        self._on_the_way: set[int] = set()
        self._may_go_on = asyncio.Event()

    @property
    def is_ended(self) -> bool:
        """Whether there is an end to tell."""
        return self._end is not None

    @property
    def is_given_up(self) -> bool:
        """Whether the relayer has been silent for too long."""
        return self.silent_s >= SILENT_S

    @property
    def silent_s(self) -> float:
        """For how many seconds the relayer has not shown itself."""
        return self._now_s() - self.seen_s

    @property
    def kept_s(self) -> float:
        """For how many seconds the end has been here, or been asked for last."""
        return self._now_s() - max(self.seen_s, self._ended_s)

    def note_still(self, taken: int, *, is_idle: bool) -> None:
        """The relayer waits, and has taken so many notifications; if it is idle, no other one is on the way."""
        self.seen_s = self._now_s()
        self._on_the_way = set() if is_idle else {number for number in self._on_the_way if number >= taken}
        self._may_go_on.set()

    def attach(self, serve: Serve) -> None:
        """Go on for another relay of the same retry."""
        self.relay, self.relayer = serve.relay, serve.relayer
        self.since_s = self.seen_s = self._now_s()
        self._number = 0
        self._on_the_way = set()
        self._may_go_on.set()

    async def notify(self, notification: JsonObject) -> None:
        """Send a notification to the client of the relayer; one that cannot be sent is lost, the call goes on."""
        if not await self._has_room():
            return
        number, self._number = self._number, self._number + 1
        self._on_the_way.add(number)
        try:
            await self._send(Notice(self.relay, number, notification), self.relayer)
        except StoreDown:
            self._on_the_way.discard(number)

    async def _has_room(self) -> bool:
        """Wait for room, but for nobody who has fallen silent."""
        while not self.is_given_up:
            if len(self._on_the_way) < WINDOW:
                return True
            self._may_go_on.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._may_go_on.wait()
        return False

    def end_with(self, end: JsonObject) -> None:
        """The call has come to its end.

        Raises:
            ValueError: it cannot be written.
        """
        self.size = len(encode(end))
        self._end, self._ended_s = end, self._now_s()

    def ended(self) -> Ended:
        """What the relayer is told of the end."""
        assert self._end is not None  # noqa: S101 -- asked only of a call that has ended
        return Ended(self.relay, self._end)
