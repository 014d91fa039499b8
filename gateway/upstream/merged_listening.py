"""One `subscriptions/listen` over several upstreams: one acknowledgement, then whatever any of them tells.

An upstream that cannot be listened to at first, or no longer, is listened to again; what it may have told meanwhile is
told then. So a client learns when a server that was missing from its lists is back.
2026-07-28, basic/patterns/subscriptions.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import structlog

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.subscriptions import Filter, Subscription, change_of
from gateway.errors import GatewayError, ProtocolError
from gateway.upstream.backoff import Backoff
from gateway.upstream.client_stream import ClientStream
from gateway.upstream.contexts import Upstream
from gateway.upstream.fan_out import LATE_DEADLINE_S, FanOut
from gateway.upstream.merged_directory import Directory
from gateway.upstream.merged_listings import Inquiry
from gateway.wire import codes, meta, methods
from gateway.wire.jsonrpc import JsonObject, notification

log = structlog.get_logger()

ACKNOWLEDGE_S: Final = 3.0
"""How long the acknowledgement waits for upstreams; one that is later is not part of it."""


class MergedListening:
    """Serves the listeners of the merged endpoint.

    Args:
        directory: knows whose a resource is.
        fan_out: knows how long an upstream may be waited for.
    """

    def __init__(self, directory: Directory, fan_out: FanOut) -> None:
        self._directory = directory
        self._fan_out = fan_out
        self._silent: set[str] = set()

    async def serve(self, inquiry: Inquiry, client: ClientStream) -> Outcome:
        """Serve one listener for as long as it stays, or any upstream has something to tell it.

        Raises:
            ProtocolError: there are too many.
        """
        request, stream = inquiry.request, _Stream(inquiry.request, client)
        asked = await self._asked_of_each(inquiry)
        parts = [
            _Part(upstream, _narrowed(request, asked[upstream.name]), stream)
            for upstream in inquiry.upstreams
            if asked[upstream.name]
        ]
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(part.run(inquiry)) for part in parts]
        try:
            await self._until_known(parts)
            await stream.acknowledge(parts)
            if stream.granted:
                await asyncio.wait(tasks)
                await stream.say_goodbye()
        finally:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
        return Outcome.of_result({"resultType": "complete", "_meta": {meta.SUBSCRIPTION_ID: request.id}})

    async def _until_known(self, parts: "Sequence[_Part]") -> None:
        """Wait until each upstream has said what it can tell of, or has had the time to say so."""
        await asyncio.gather(*(self._until_one_known(part) for part in parts))

    async def _until_one_known(self, part: "_Part") -> None:
        patience_s = LATE_DEADLINE_S if part.name in self._silent else ACKNOWLEDGE_S
        try:
            async with asyncio.timeout(min(patience_s, self._fan_out.patience_s(part.name))):
                await part.is_known.wait()
            self._silent.discard(part.name)
        except TimeoutError:
            self._silent.add(part.name)

    async def _asked_of_each(self, inquiry: Inquiry) -> Mapping[str, Filter]:
        """Changes of lists are asked of every upstream, updates of a resource of those that have it."""
        wanted = Filter.of_request(inquiry.request.params)
        holders = await self._holders(wanted, inquiry)
        return {
            upstream.name: Filter(
                wanted.lists,
                frozenset(uri for uri in wanted.uris if upstream.name in holders.get(uri, (upstream.name,))),
            )
            for upstream in inquiry.upstreams
        }

    async def _holders(self, wanted: Filter, inquiry: Inquiry) -> Mapping[str, Sequence[str]]:
        """Who has each resource, where anybody is known to have it."""
        uris = sorted(wanted.uris)
        try:
            async with asyncio.timeout(ACKNOWLEDGE_S):
                found = [await self._directory.holders_of(uri, inquiry) for uri in uris]
        except TimeoutError:
            return {}
        return {uri: holders.known for uri, holders in zip(uris, found, strict=True) if holders.known}


def _narrowed(request: InboundRequest, asked: Filter) -> InboundRequest:
    return replace(request, params={**request.params, "notifications": asked.to_notifications()})


class _Stream:
    """What the client hears: the acknowledgement first, then one notification at a time."""

    def __init__(self, request: InboundRequest, client: ClientStream) -> None:
        self.id = request.id
        self.granted: Filter | None = None
        self._client = client
        self._turn = asyncio.Lock()

    async def acknowledge(self, parts: "Sequence[_Part]") -> None:
        """Promise what the upstreams promise, each of which may then speak."""
        for part in parts:
            if part.refusal is not None:
                raise part.refusal
        granted = Filter()
        for part in parts:
            granted |= part.granted
        async with self._turn:
            await self._client.notify(Subscription(self.id, granted).acknowledgement())
            self.granted = granted
        for part in parts:
            await part.begin()

    async def tell(self, message: JsonObject) -> None:
        """Pass on what was promised."""
        async with self._turn:
            if self.granted is not None and self.granted.asked_as(change_of(message)) is not None:
                await self._client.notify(message)

    async def tell_missed(self, granted: Filter) -> None:
        """Something may have gone unheard: take it that everything has changed."""
        subscription = Subscription(self.id, granted)
        subscription.offer_all()
        for message in subscription.take():
            await self.tell(message)

    async def say_goodbye(self) -> None:
        """No upstream has anything to tell any more."""
        async with self._turn:
            reason = {"requestId": self.id, "reason": "the gateway is shutting down"}
            await self._client.notify(notification(methods.CANCELLED, reason))


class _Part:
    """One upstream's part in a stream: what it tells before the acknowledgement is held back.

    Attributes:
        granted: what it promises.
        is_known: it has said so, or has failed to.
        refusal: there are too many listeners.
    """

    def __init__(self, upstream: Upstream, request: InboundRequest, stream: _Stream) -> None:
        self.name = upstream.name
        self.granted = Filter()
        self.is_known = asyncio.Event()
        self.refusal: ProtocolError | None = None
        self._upstream = upstream
        self._request = request
        self._stream = stream
        self._held: list[JsonObject] = []

    async def run(self, inquiry: Inquiry) -> None:
        """Listen, again and again if it breaks, until there is no more to hear."""
        backoff = Backoff()
        while True:
            backoff.opened()
            try:
                await self._upstream.serve(self._request, inquiry.caller, self)
                return
            except GatewayError as error:
                if isinstance(error, ProtocolError) and error.code == codes.METHOD_NOT_FOUND:
                    return
                if isinstance(error, ProtocolError) and not self.is_known.is_set():
                    self.refusal = error
                log.info("listening later", upstream=self.name, reason=str(error))
            finally:
                self.is_known.set()
            await asyncio.sleep(backoff.next_s())

    async def notify(self, message: JsonObject) -> None:
        """Take what the upstream tells its listener."""
        if message["method"] == methods.ACKNOWLEDGED:
            self.granted = Filter.of_notifications(message["params"].get("notifications"))
            self.is_known.set()
            if self._stream.granted is not None:
                await self._stream.tell_missed(self.granted)
        elif message["method"] == methods.CANCELLED:
            return
        elif self._stream.granted is None:
            self._held.append(message)
        else:
            await self._stream.tell(message)

    async def begin(self) -> None:
        """The acknowledgement has gone out."""
        held, self._held = self._held, []
        for message in held:
            await self._stream.tell(message)
