"""Hears the changes of a modern server on one `subscriptions/listen`, for all listeners of one principal.

When a listener asks for more than is listened to, a stream for everything takes the place of the one before. When the
stream ends, another is opened, and the listeners are told that something may have been missed.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any, Final

import structlog

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.subscriptions import Change, Filter
from gateway.errors import GatewayError, ProtocolError, UpstreamError
from gateway.upstream import faults
from gateway.upstream.backoff import Backoff
from gateway.upstream.client_stream import ClientStream
from gateway.upstream.era import CLIENT_INFO
from gateway.upstream.subscriptions import Reports
from gateway.wire import codes, meta, methods
from gateway.wire.jsonrpc import JsonObject
from gateway.wire.versions import MODERN

log = structlog.get_logger()

Listen = Callable[[InboundRequest, ClientStream], Coroutine[Any, Any, Outcome]]
"""Makes a listen request of the server; returns when its stream has ended. Raises GatewayError."""

ACKNOWLEDGE_S: Final = 10.0
PATIENCE: Final = 8
"""How often in a row a server may refuse to be listened to again before the listeners are told."""


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
        reports: told of changes, of gaps, and of the end.
    """

    def __init__(self, upstream: str, listen: Listen, reports: Reports) -> None:
        self._upstream = upstream
        self._listen = listen
        self._reports = reports
        self._lock = asyncio.Lock()
        self._joining: list[Filter] = []
        self._held: Counter[Change] = Counter()
        self._asked = Filter()
        self._granted = Filter()
        self._stream: asyncio.Task[Outcome] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._ids = count(1)

    async def join(self, asked: Filter) -> Filter:
        """Begin to listen for what is asked; says what the server grants. Raises GatewayError."""
        self._joining.append(asked)
        try:
            async with self._lock:
                if self._stream is None or self._stream.done() or not asked <= self._asked:
                    await self._begin()
                granted = asked & self._granted
                self._held.update(granted.changes())
        finally:
            self._joining.remove(asked)
        if self._keeper is None:
            self._keeper = asyncio.get_running_loop().create_task(self._keep())
        return granted

    async def leave(self, granted: Filter) -> None:
        """A listener has gone; what it alone asked for is heard until the next stream, and told to nobody."""
        self._held.subtract(granted.changes())
        self._held = +self._held

    async def close(self) -> None:
        """End the stream."""
        tasks = [task for task in (self._keeper, self._stream) if task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # --- one stream, and its successors ---

    async def _begin(self) -> None:
        """Open a stream for all who are here or about to be, and end the one before once it is acknowledged.

        Raises:
            GatewayError: there is none to be had.
        """
        asked = Filter.of_changes(self._held)
        for joining in self._joining:
            asked |= joining
        collector = _Collector(self._reports.changed)
        stream = asyncio.get_running_loop().create_task(self._listen(self._request(asked), collector))
        stream.add_done_callback(_look_at)
        try:
            first: list[asyncio.Future[Any]] = [stream, collector.granted]
            await asyncio.wait(first, timeout=ACKNOWLEDGE_S, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            stream.cancel()
            raise
        if not collector.granted.done():
            raise await self._failure(stream)
        before, self._stream = self._stream, stream
        self._asked, self._granted = asked, collector.granted.result()
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
        return faults.nonsense(self._upstream, "did not acknowledge the subscription")

    async def _keep(self) -> None:
        """Whenever the stream ends while somebody listens, open another."""
        backoff = Backoff()
        while self._stream is not None:
            stream = self._stream
            backoff.opened()
            await asyncio.wait([stream])
            if stream is not self._stream:
                continue  # another took its place
            await asyncio.sleep(backoff.next_s())
            if (failure := await self._renew(backoff)) is not None:
                self._reports.lost(failure)
                return

    async def _renew(self, backoff: Backoff) -> GatewayError | None:
        """Open another stream, as soon as there is one to be had; says why if there will be none."""
        refusals = 0
        while self._held:
            try:
                async with self._lock:
                    if self._stream is None or self._stream.done():
                        await self._begin()
                break
            except GatewayError as error:
                reason = error.reason if isinstance(error, UpstreamError) else "refused"
                log.info("listening not renewed", upstream=self._upstream, reason=reason)
                refusals = refusals + 1 if reason in ("nonsense", "unauthorized", "refused") else 0
                if refusals >= PATIENCE:
                    return error
            await asyncio.sleep(backoff.next_s())
        if not Filter.of_changes(self._held) <= self._granted:
            return faults.nonsense(self._upstream, "no longer offers every subscription that it offered before")
        self._reports.missed()
        return None

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


def _look_at(stream: asyncio.Task[Outcome]) -> None:
    if not stream.cancelled():
        stream.exception()  # whatever ended it, it is opened again
