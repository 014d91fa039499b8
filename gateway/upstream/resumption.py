"""Picks up a broken stream where it ended, if the server gave event ids.

2025-11-25, basic/transports, "Resumability and Redelivery": GET with `Last-Event-ID`, not before the time that
`retry` names. A server may close a stream on purpose, to be polled like this.
"""

import asyncio
from functools import cached_property
from typing import Final

from gateway.errors import UpstreamError
from gateway.upstream.legacy_session import LegacySession
from gateway.upstream.transport import Answer
from gateway.wire.sse import SseEvent

MAX_ATTEMPTS: Final = 8
"""How often in a row a stream is picked up without anything new on it."""

PAUSE_S: Final = 0.1
"""The first pause before an attempt, if the server names none; it doubles with each that comes to nothing."""

_LONGEST_PAUSE_S: Final = 1.0
_MOST_SEEN: Final = 1000
_REFUSALS: Final = frozenset({400, 401, 403, 404, 405, 410, 501})


class Resumption:
    """Where a call's stream ended, and the attempts to go on from there.

    Attributes:
        has_begun: whether the stream that is read now is one that was picked up. It may hold what belongs to other
            requests: some servers replay everything that a session was sent.
        has_heard: whether there was anything on a stream that was picked up.
    """

    def __init__(self, session: LegacySession) -> None:
        self.has_begun = self.has_heard = False
        self._session = session
        self._stream: Answer | None = None
        self._last_event_id: str | None = None
        self._heard_id: str | None = None
        self._retry_ms: int | None = None
        self._attempts = 0
        self._refused = False
        self._seen: dict[str, None] = {}
        self._before: frozenset[str] = frozenset()

    @cached_property
    def wanted(self) -> asyncio.Event:
        """Set when the exchange wants the stream back."""
        return asyncio.Event()

    @property
    def is_possible(self) -> bool:
        """Whether there is a place to go on from, and hope of going on."""
        return (
            self._last_event_id is not None
            and self._session.id is not None
            and not self._refused
            and self._attempts < MAX_ATTEMPTS
        )

    @property
    def heard_id(self) -> str | None:
        """The last event that was heard: from there another process could go on.

        An event without a message is not heard, but it may have an id (2025-11-25 begins a stream with one).
        """
        begun = None if self._stream is None else self._stream.last_event_id
        return self._heard_id or begun or self._last_event_id

    @property
    def retry_ms(self) -> int | None:
        """The reconnection time that the server asked for."""
        begun = None if self._stream is None else self._stream.retry_ms
        return self._retry_ms if begun is None else begun

    def start_at(self, event_id: str | None, retry_ms: int | None) -> None:
        """Be where another process left off."""
        self._last_event_id, self._retry_ms = event_id, retry_ms

    def has_seen(self, event: SseEvent) -> bool:
        """Whether an earlier stream of this call had this event already."""
        self.has_heard |= self.has_begun
        if event.id is None:
            return False
        self._heard_id = event.id
        self._seen[event.id] = None
        if len(self._seen) > _MOST_SEEN:
            del self._seen[next(iter(self._seen))]
        return event.id in self._before

    def follow(self, stream: Answer) -> None:
        """This stream is read from now on."""
        self._stream = stream

    def note(self, stream: Answer) -> None:
        """Remember where a stream ended."""
        self._stream = None
        if stream.last_event_id is not None and stream.last_event_id != self._last_event_id:
            self._last_event_id = stream.last_event_id
            self._attempts = 0
        if stream.retry_ms is not None:
            self._retry_ms = stream.retry_ms

    async def open(self) -> Answer | None:
        """Ask for the rest of the stream; None if this attempt failed."""
        self.wanted.clear()
        await asyncio.sleep(self.pause_s)
        self._attempts += 1
        headers = {**self._session.headers, "Last-Event-ID": self._last_event_id or ""}
        try:
            reply = await self._session.http.get(headers)
        except UpstreamError:
            return None
        if reply.status == 200 and reply.kind == "sse":
            self.has_begun = True
            self._before = frozenset(self._seen)
            return reply
        reply.close()
        self._refused = reply.status in _REFUSALS
        return None

    def unfinished(self) -> UpstreamError:
        """What the client is told when the stream ended in order but without a response."""
        name = self._session.name
        message = f"Upstream {name!r} ended its reply without a response: the outcome of the call is unknown"
        return UpstreamError(name, "outcome_unknown", message)

    @property
    def pause_s(self) -> float:
        """How long to wait before the next attempt.

        The server's word counts, however long it is; the call's own deadlines are the limit.
        """
        if self._retry_ms is not None:
            return self._retry_ms / 1000
        return min(PAUSE_S * float(2**self._attempts), _LONGEST_PAUSE_S)
