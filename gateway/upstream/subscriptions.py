"""`subscriptions/listen`: the streams of one upstream's listeners, fed from one source for each principal.

The acknowledgement comes first and promises only what the source can deliver. A stream ends when its client leaves, or
when the gateway does: then with `notifications/cancelled` and the result, since the specification asks for one in
basic/patterns/cancellation and for the other in basic/patterns/subscriptions. It ends with an error when what was
promised can be delivered no longer, so that the client asks anew.
"""

import asyncio
from collections.abc import Callable, Hashable
from typing import Final, Protocol, TypeAlias

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller
from gateway.core.subscriptions import Change, Filter, Subscription, change_of
from gateway.errors import ProtocolError
from gateway.upstream.background import Background
from gateway.upstream.client_stream import ClientStream
from gateway.wire import codes, meta, methods
from gateway.wire.jsonrpc import JsonObject, notification

MERGE_S: Final = 0.05
"""How long a change waits for others like it."""

Key: TypeAlias = tuple[Hashable, str]
"""Whose a request is, and what kind of client it comes from."""

_MOST_PENDING: Final = 1000
_RETRY_AFTER_S: Final = "30"


OnChange = Callable[[JsonObject | None], None]
"""Is told what a server says has changed; None: something may have, unheard."""


class Source(Protocol):
    """Where the changes for one principal's listeners come from."""

    async def join(self, asked: Filter) -> Filter:
        """Begin to watch what is asked; says what can be watched. Raises UpstreamError, UpstreamRefused."""

    async def leave(self, granted: Filter) -> None:
        """A listener has gone."""

    async def close(self) -> None:
        """The last listener has gone, whatever it still held."""


class Reports(Protocol):
    """What a source has to say."""

    def changed(self, message: JsonObject) -> None:
        """The server says that something has changed."""

    def missed(self) -> None:
        """Changes may have gone unheard."""

    def lost(self, error: Exception) -> None:
        """What was promised can be delivered no longer."""


class StreamLimit:
    """How many listeners may be open in this process.

    Args:
        most: the bound.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open = 0

    @property
    def count(self) -> int:
        """How many are open."""
        return self._open

    def __enter__(self) -> None:
        if self._open >= self._most:
            raise ProtocolError(
                codes.INTERNAL_ERROR,
                f"The gateway serves {self._most} subscriptions and has no room for another",
                {"reason": "full", "retryable": True},
                status=503,
                headers=(("retry-after", _RETRY_AFTER_S),),
            )
        self._open += 1

    def __exit__(self, *_exception: object) -> None:
        self._open -= 1


class _Stream:
    """A listener's side: what is due, and the signal that something is."""

    __slots__ = ("is_due", "subscription")

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.is_due = asyncio.Event()


class _Group:
    """The listeners that share a source, and what the source reports.

    Args:
        publish: takes what has changed.
        forget: whoever comes next does not belong to this group.
        on_gap: told when changes may have gone unheard.
    """

    source: Source

    def __init__(
        self, publish: Callable[[JsonObject], None], forget: Callable[[], None], on_gap: Callable[[], None]
    ) -> None:
        self.changed = publish
        self.forget = forget
        self._on_gap = on_gap
        self.members = 0
        self.streams: set[_Stream] = set()
        self.failure: Exception | None = None

    def missed(self) -> None:
        """Changes may have gone unheard."""
        self._on_gap()
        for stream in self.streams:
            stream.subscription.offer_all()
            stream.is_due.set()

    def lost(self, error: Exception) -> None:
        """What was promised can be delivered no longer."""
        self.failure = error
        self.forget()
        for stream in self.streams:
            stream.is_due.set()


class Subscriptions:
    """The listeners of one upstream.

    Args:
        key_of: whose a request is, and what kind of client it comes from: requests that are equal in this share a
            source.
        open_source: makes the source for a request; it is told where to report to.
        limit: how many listeners the process may have.
        background: where listeners are waved off that nobody waits for.
        on_change: told of every change before the listeners are, whether or not there are any; None: some may have
            gone unheard.
    """

    def __init__(
        self,
        key_of: Callable[[InboundRequest, Caller], Key],
        open_source: Callable[[InboundRequest, Caller, Reports], Source],
        limit: StreamLimit,
        background: Background,
        on_change: OnChange,
    ) -> None:
        self._key_of = key_of
        self._open_source = open_source
        self._limit = limit
        self._background = background
        self._on_change = on_change
        self._groups: dict[Key, _Group] = {}
        self._pending: dict[tuple[Hashable, Change], JsonObject | None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_ending = False

    def __len__(self) -> int:
        return sum(len(group.streams) for group in self._groups.values())

    async def serve(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        """Serve one listener for as long as it stays.

        Raises:
            ProtocolError: there are too many.
            UpstreamRefused, UpstreamError: the upstream cannot be listened to at all, or no longer.
        """
        with self._limit:
            key = self._key_of(request, caller)
            group = self._groups.get(key) or self._open_group(key, request, caller)
            group.members += 1
            granted = Filter()
            try:
                granted = await group.source.join(Filter.of_request(request.params))
                await self._stream(_Stream(Subscription(request.id, granted)), group, client)
            finally:
                self._leave(group, granted)
            if group.failure is not None:
                raise group.failure
        return _ended(request)

    def publish(self, message: JsonObject, owner: Hashable) -> None:
        """A server says that something has changed; tell everybody who asked to be told.

        Servers tell only the session that caused a change, so it counts for the listeners of every principal: what it
        says is that there is something new to look at, and everybody looks with eyes of their own. Whatever else it
        says is for the principal alone on whose session it was heard.

        Args:
            message: the notification.
            owner: whose session it was heard on.
        """
        self._on_change(message)
        if not self._groups:
            return
        params = message.get("params")
        self._pending[owner, change_of(message)] = params if isinstance(params, dict) else None
        if len(self._pending) >= _MOST_PENDING:
            self._fan_out()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(MERGE_S, self._fan_out)

    def end(self) -> None:
        """End every stream in order; no new one is kept open."""
        self._is_ending = True
        for group in self._groups.values():
            for stream in group.streams:
                stream.is_due.set()

    # --- one stream ---

    async def _stream(self, stream: _Stream, group: _Group, client: ClientStream) -> None:
        subscription = stream.subscription
        group.streams.add(stream)
        try:
            await client.notify(subscription.acknowledgement())
            while subscription.granted and not self._is_ending:
                await stream.is_due.wait()
                stream.is_due.clear()
                if group.failure is not None:
                    return
                for due in subscription.take():
                    await client.notify(due)
            if subscription.granted:
                reason = {"requestId": subscription.id, "reason": "the gateway is shutting down"}
                await client.notify(notification(methods.CANCELLED, reason))
        finally:
            group.streams.discard(stream)

    def _fan_out(self) -> None:
        """Let every listener know of what has changed within the last moment, each change once."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        pending, self._pending = self._pending, {}
        for (listener, _), group in self._groups.items():
            for stream in group.streams:
                for (owner, change), params in pending.items():
                    is_own = owner == listener
                    if stream.subscription.offer(change, params if is_own else None, may_know_parts=is_own):
                        stream.is_due.set()

    # --- those who share a source ---

    def _open_group(self, key: Key, request: InboundRequest, caller: Caller) -> _Group:
        group = _Group(
            lambda message: self.publish(message, key[0]),
            lambda: self._forget(key, group),
            lambda: self._on_change(None),
        )
        group.source = self._open_source(request, caller, group)
        self._groups[key] = group
        return group

    def _forget(self, key: Key, group: _Group) -> None:
        if self._groups.get(key) is group:
            del self._groups[key]

    def _leave(self, group: _Group, granted: Filter) -> None:
        """Nobody waits for the server to take note: the stream has ended, or is to end now."""
        group.members -= 1
        if group.members == 0:
            group.forget()
            self._background.run(group.source.close())
        elif granted:
            self._background.run(group.source.leave(granted))


def _ended(request: InboundRequest) -> Outcome:
    return Outcome.of_result({"resultType": "complete", "_meta": {meta.SUBSCRIPTION_ID: request.id}})
