"""Hears the changes of a modern server on one `subscriptions/listen`, for all listeners of one principal.

When a listener asks for more than is listened to, a stream for everything takes the place of the one before. When the
stream ends, another is opened, and the listeners are told that something may have been missed.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, Final

import structlog

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.subscriptions import Filter
from gateway.errors import GatewayError, ProtocolError, UpstreamError
from gateway.upstream.era import CLIENT_INFO
from gateway.upstream.legacy_call import ClientStream
from gateway.wire import codes, meta, methods
from gateway.wire.jsonrpc import JsonObject
from gateway.wire.versions import MODERN

log = structlog.get_logger()

Listen = Callable[[InboundRequest, ClientStream], Coroutine[Any, Any, Outcome]]
"""Makes a listen request of the server; returns when its stream has ended. Raises GatewayError."""

_ACKNOWLEDGE_S: Final = 10.0
_BACKOFF_S: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class _Collector:
    """The client's side of the gateway's own listen request."""

    def __init__(self, on_change: Callable[[JsonObject], None]) -> None:
        self.granted: asyncio.Future[Filter] = asyncio.get_running_loop().create_future()
        self._on_change = on_change

    async def notify(self, notification: JsonObject) -> None:
        """Take what the server says."""
        if notification["method"] == methods.ACKNOWLEDGED:
            if not self.granted.done():
                self.granted.set_result(Filter.of_notifications(notification["params"].get("notifications")))
        elif notification["method"] != methods.CANCELLED:
            self._on_change(notification)


class ModernSource:
    """The changes of one modern server, for the listeners of one principal.

    Args:
        upstream: its configured name.
        listen: makes a listen request with the principal's credentials.
        on_change: told of changes.
        on_gap: told when changes may have been missed.
    """

    def __init__(
        self, upstream: str, listen: Listen, on_change: Callable[[JsonObject], None], on_gap: Callable[[], None]
    ) -> None:
        self._upstream = upstream
        self._listen = listen
        self._on_change = on_change
        self._on_gap = on_gap
        self._lock = asyncio.Lock()
        self._asked = Filter()
        self._granted = Filter()
        self._stream: asyncio.Task[Outcome] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._ids = count(1)

    async def join(self, asked: Filter) -> Filter:
        """Begin to listen for what is asked; says what the server grants. Raises GatewayError."""
        async with self._lock:
            if not asked <= self._asked or self._stream is None:
                await self._begin(self._asked | asked)
        if self._keeper is None:
            self._keeper = asyncio.get_running_loop().create_task(self._keep())
        return asked & self._granted

    async def leave(self, granted: Filter) -> None:
        """A listener has gone; what it alone asked for is heard on, and told to nobody."""

    async def close(self) -> None:
        """End the stream."""
        tasks = [task for task in (self._keeper, self._stream) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _begin(self, asked: Filter) -> None:
        """Open a stream, and end the one before once the new one is acknowledged.

        Raises:
            GatewayError: there is none to be had.
        """
        collector = _Collector(self._on_change)
        stream = asyncio.get_running_loop().create_task(self._listen(self._request(asked), collector))
        first: list[asyncio.Future[Any]] = [stream, collector.granted]
        await asyncio.wait(first, timeout=_ACKNOWLEDGE_S, return_when=asyncio.FIRST_COMPLETED)
        if not collector.granted.done():
            raise await self._failure(stream)
        before, self._stream = self._stream, stream
        self._asked, self._granted = asked, collector.granted.result()
        stream.add_done_callback(_seen)
        if before is not None:
            before.cancel()

    async def _failure(self, stream: asyncio.Task[Outcome]) -> GatewayError:
        """Why a stream was not acknowledged; it is ended."""
        stream.cancel()
        await asyncio.wait([stream])
        if not stream.cancelled():
            error = stream.exception()
            if isinstance(error, GatewayError):
                return error
            if error is None and _is_unknown_method(stream.result()):
                return ProtocolError(
                    codes.METHOD_NOT_FOUND, f"Upstream {self._upstream!r} does not offer subscriptions"
                )
        message = f"Upstream {self._upstream!r} did not acknowledge the subscription"
        return UpstreamError(self._upstream, "nonsense", message)

    async def _keep(self) -> None:
        attempt = 0
        while True:
            stream = self._stream
            if stream is not None:
                await asyncio.wait([stream])
                if stream is not self._stream:
                    continue  # another took its place
            backoff_s = _BACKOFF_S[min(attempt, len(_BACKOFF_S) - 1)]
            await asyncio.sleep(backoff_s * (0.5 + random.random()))  # noqa: S311 -- spreads reconnections
            try:
                async with self._lock:
                    await self._begin(self._asked)
            except GatewayError as error:
                log.info("listening not renewed", upstream=self._upstream, reason=type(error).__name__)
                attempt += 1
                continue
            attempt = 0
            self._on_gap()

    def _request(self, asked: Filter) -> InboundRequest:
        about: JsonObject = {
            meta.PROTOCOL_VERSION: MODERN,
            meta.CLIENT_INFO: CLIENT_INFO,
            meta.CLIENT_CAPABILITIES: {},
        }
        params = {"notifications": asked.to_notifications(), "_meta": about}
        return InboundRequest(f"listen-{next(self._ids)}", methods.LISTEN, params, about, {})


def _is_unknown_method(outcome: Outcome) -> bool:
    error = outcome.body.get("error")
    return isinstance(error, dict) and error.get("code") == codes.METHOD_NOT_FOUND


def _seen(stream: asyncio.Task[Outcome]) -> None:
    if not stream.cancelled():
        stream.exception()  # whatever ended it, it is opened again
