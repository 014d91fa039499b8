"""One `subscriptions/listen` over several upstreams: one acknowledgement, then whatever any of them tells."""

import asyncio
from collections.abc import Sequence
from typing import Final

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller
from gateway.core.subscriptions import Filter, Subscription
from gateway.errors import GatewayError
from gateway.upstream.fan_out import Upstream
from gateway.upstream.legacy_call import ClientStream
from gateway.wire import meta, methods
from gateway.wire.jsonrpc import JsonObject, notification

ACKNOWLEDGE_S: Final = 3.0
"""How long the acknowledgement waits for upstreams; one that is later is not part of it."""


async def listen(
    request: InboundRequest, caller: Caller, client: ClientStream, upstreams: Sequence[Upstream]
) -> Outcome:
    """Serve one listener for as long as it stays, or any upstream has something to tell it."""
    listeners = [_Listener(client) for _ in upstreams]
    loop = asyncio.get_running_loop()
    tasks = [
        loop.create_task(_serve(upstream, request, caller, listener))
        for upstream, listener in zip(upstreams, listeners, strict=True)
    ]
    try:
        acknowledged = [loop.create_task(listener.is_acknowledged.wait()) for listener in listeners]
        await _until_known(acknowledged)
        granted = Filter()
        for listener in listeners:
            granted |= listener.granted
        await client.notify(Subscription(request.id, granted).acknowledgement())
        for listener in listeners:
            await listener.begin()
        await asyncio.wait(tasks)
        if granted:
            reason = {"requestId": request.id, "reason": "the gateway is shutting down"}
            await client.notify(notification(methods.CANCELLED, reason))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    return Outcome.of_result({"resultType": "complete", "_meta": {meta.SUBSCRIPTION_ID: request.id}})


class _Listener:
    """What one upstream tells; held back until the one acknowledgement has gone out."""

    def __init__(self, client: ClientStream) -> None:
        self.granted = Filter()
        self.is_acknowledged = asyncio.Event()
        self._client = client
        self._has_begun = False
        self._held: list[JsonObject] = []

    async def notify(self, message: JsonObject) -> None:
        """Take what an upstream tells its listener."""
        if message["method"] == methods.ACKNOWLEDGED:
            self.granted = Filter.of_notifications(message["params"].get("notifications"))
            self.is_acknowledged.set()
        elif message["method"] == methods.CANCELLED:
            return
        elif self._has_begun:
            await self._client.notify(message)
        else:
            self._held.append(message)

    async def begin(self) -> None:
        """The acknowledgement has gone out."""
        self._has_begun = True
        for message in self._held:
            await self._client.notify(message)
        self._held.clear()


async def _serve(upstream: Upstream, request: InboundRequest, caller: Caller, listener: _Listener) -> None:
    try:
        await upstream.serve(request, caller, listener)
    except GatewayError:
        return  # it promised nothing, or no longer keeps it; the others go on
    finally:
        listener.is_acknowledged.set()


async def _until_known(acknowledged: Sequence["asyncio.Task[bool]"]) -> None:
    try:
        await asyncio.wait(acknowledged, timeout=ACKNOWLEDGE_S)
    finally:
        for waiting in acknowledged:
            waiting.cancel()
