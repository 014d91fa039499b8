"""`subscriptions/listen`: the streams of one upstream's listeners, fed from one source for each principal.

The acknowledgement comes first and promises only what the source can deliver. A stream ends when its client leaves, or
when the gateway does: then with `notifications/cancelled` and the result, since the specification asks for one in
basic/patterns/cancellation and for the other in basic/patterns/subscriptions.
"""

import asyncio
from collections.abc import Callable, Hashable
from typing import Final, Protocol

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller
from gateway.core.subscriptions import Filter, Subscription, change_of
from gateway.errors import ProtocolError
from gateway.upstream.legacy_call import ClientStream
from gateway.wire import codes, meta, methods
from gateway.wire.jsonrpc import JsonObject, notification

MERGE_S: Final = 0.05
"""How long a change waits for others like it."""

_RETRY_AFTER_S: Final = "30"


class Source(Protocol):
    """Where the changes for one principal's listeners come from."""

    async def join(self, asked: Filter) -> Filter:
        """Begin to watch what is asked; says what can be watched. Raises UpstreamError, UpstreamRefused."""

    async def leave(self, granted: Filter) -> None:
        """A listener has gone."""

    async def close(self) -> None:
        """The last listener has gone."""


class StreamLimit:
    """How many listeners may be open in this process.

    Args:
        most: the bound.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open = 0

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

    def __init__(self, subscription: Subscription) -> None:
        self.subscription = subscription
        self.is_due = asyncio.Event()


class _Group:
    """The listeners that share a source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.members = 0


class Subscriptions:
    """The listeners of one upstream.

    Args:
        key_of: which callers share a source.
        open_source: makes the source for a caller; it is told how to report a gap.
        limit: how many listeners the process may have.
    """

    def __init__(
        self,
        key_of: Callable[[Caller], Hashable],
        open_source: Callable[[Caller, Callable[[], None]], Source],
        limit: StreamLimit,
    ) -> None:
        self._key_of = key_of
        self._open_source = open_source
        self._limit = limit
        self._groups: dict[Hashable, _Group] = {}
        self._streams: dict[_Stream, Hashable] = {}
        self._is_ending = asyncio.Event()

    def __len__(self) -> int:
        return len(self._streams)

    async def serve(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        """Serve one listener for as long as it stays.

        Raises:
            ProtocolError: there are too many.
            UpstreamRefused, UpstreamError: the upstream cannot be listened to at all.
        """
        with self._limit:
            key = self._key_of(caller)
            group = self._groups.get(key)
            if group is None:
                source = self._open_source(caller, lambda: self._report_gap(key))
                group = self._groups[key] = _Group(source)
            group.members += 1
            try:
                granted = await group.source.join(Filter.of_request(request.params))
                try:
                    await self._stream(_Stream(Subscription(request.id, granted)), key, client)
                finally:
                    await group.source.leave(granted)
            finally:
                await self._leave(key, group)
        return _ended(request)

    def publish(self, message: JsonObject) -> None:
        """A server says that something has changed; tell everybody who asked to be told.

        Servers tell only the session that caused a change, so it counts for the listeners of every principal: what it
        says is that there is something new to look at, and everybody looks with eyes of their own.
        """
        change = change_of(message)
        params = message.get("params")
        for stream in self._streams:
            if stream.subscription.offer(change, params if isinstance(params, dict) else None):
                stream.is_due.set()

    def end(self) -> None:
        """End every stream in order; no new one is kept open."""
        self._is_ending.set()
        for stream in self._streams:
            stream.is_due.set()

    # --- one stream ---

    async def _stream(self, stream: _Stream, key: Hashable, client: ClientStream) -> None:
        subscription = stream.subscription
        self._streams[stream] = key
        try:
            await client.notify(subscription.acknowledgement())
            while subscription.granted and not self._is_ending.is_set():
                await stream.is_due.wait()
                if not self._is_ending.is_set():
                    await asyncio.sleep(MERGE_S)
                stream.is_due.clear()
                for due in subscription.take():
                    await client.notify(due)
            if subscription.granted:
                reason = {"requestId": subscription.id, "reason": "the gateway is shutting down"}
                await client.notify(notification(methods.CANCELLED, reason))
        finally:
            del self._streams[stream]

    async def _leave(self, key: Hashable, group: _Group) -> None:
        group.members -= 1
        if group.members == 0:
            del self._groups[key]
            await group.source.close()

    def _report_gap(self, key: Hashable) -> None:
        for stream, stream_key in self._streams.items():
            if stream_key == key:
                stream.subscription.offer_all()
                stream.is_due.set()


def _ended(request: InboundRequest) -> Outcome:
    return Outcome.of_result({"resultType": "complete", "_meta": {meta.SUBSCRIPTION_ID: request.id}})
