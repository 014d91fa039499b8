"""Hears the changes of a legacy server on a session of its own, and comes back when that breaks.

The session subscribes to each resource once, however many listeners want it. When it is lost, another takes its place,
subscribes again, and the listeners are told that something may have been missed.
2025-11-25, server/resources, "Subscriptions".
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from gateway.core.subscriptions import Filter, deliverable
from gateway.errors import UpstreamError
from gateway.upstream.legacy_session import LegacySession, SessionExpired
from gateway.upstream.listener import Listener
from gateway.upstream.refusal import UpstreamRefused
from gateway.upstream.watcher import ListWatcher
from gateway.wire import methods
from gateway.wire.jsonrpc import JsonObject

log = structlog.get_logger()

_BACKOFF_S: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_SUBSCRIBE_S: Final = 5.0
_FAILURES = (UpstreamError, UpstreamRefused, SessionExpired, TimeoutError)


class LegacySource:
    """The changes of one legacy server, for the listeners of one principal.

    Args:
        open_session: opens a session that nobody else uses, without a listener.
        watch_s: seconds between two looks at lists whose changes the server does not tell; None: never.
        on_change: told of changes that the gateway found by looking.
        on_gap: told when changes may have been missed.
    """

    def __init__(
        self,
        open_session: Callable[[], Awaitable[LegacySession]],
        watch_s: float | None,
        on_change: Callable[[JsonObject], None],
        on_gap: Callable[[], None],
    ) -> None:
        self._open_session = open_session
        self._on_gap = on_gap
        self._watcher = ListWatcher(watch_s, self.ask, on_change) if watch_s is not None else None
        self._session: LegacySession | None = None
        self._listener: Listener | None = None
        self._opening = asyncio.Lock()
        self._keeper: asyncio.Task[None] | None = None
        self._uris: Counter[str] = Counter()
        self._refused: set[str] = set()

    async def join(self, asked: Filter) -> Filter:
        """Begin to watch what is asked; says what can be watched.

        Raises:
            UpstreamRefused, UpstreamError: there is no session to be had.
        """
        async with self._opening:
            session = self._session
            if session is None or session.is_dead:
                session = await self._open()
            is_heard = self._listener is not None and self._listener.is_open
            granted = deliverable(
                asked, session.negotiated.capabilities, is_heard=is_heard, is_watched=self._watcher is not None
            )
            uris = await self._subscribe_all(session, granted.uris)
        if self._watcher is not None:
            self._watcher.watch(granted.lists)
        if is_heard and self._keeper is None:
            self._keeper = asyncio.get_running_loop().create_task(self._keep())
        return Filter(granted.lists, uris)

    async def leave(self, granted: Filter) -> None:
        """A listener has gone; nobody else may want what it wanted."""
        for uri in granted.uris:
            self._uris[uri] -= 1
            if self._uris[uri] <= 0:
                del self._uris[uri]
                await self._unsubscribe(uri)
        if self._watcher is not None:
            self._watcher.unwatch(granted.lists)

    async def close(self) -> None:
        """End the session."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
        if self._watcher is not None:
            await self._watcher.close()
        if self._session is not None:
            await self._session.close()

    async def ask(self, method: str, params: JsonObject | None) -> object:
        """Make a request on the session; opens another if the server has forgotten it. Raises one of its failures."""
        async with self._opening:
            session = self._session if self._session is not None and not self._session.is_dead else await self._open()
        return await session.ask(method, params)

    # --- the session, and its successors ---

    async def _open(self) -> LegacySession:
        session = await self._open_session()
        self._session = session
        if session.id is not None:
            self._listener = session.listener = Listener(session, self._on_gap)
            await self._listener.opened()
        return session

    async def _keep(self) -> None:
        """Whenever the stream is gone for good, begin again with a new session."""
        attempt = 0
        while True:
            if self._listener is not None:
                await self._listener.ended.wait()
            backoff_s = _BACKOFF_S[min(attempt, len(_BACKOFF_S) - 1)]
            await asyncio.sleep(backoff_s * (0.5 + random.random()))  # noqa: S311 -- spreads reconnections
            attempt = 0 if await self._renew() else attempt + 1

    async def _renew(self) -> bool:
        try:
            async with self._opening:
                if self._session is not None:
                    await self._session.close()
                session = await self._open()
                await asyncio.gather(*(self._subscribe(session, uri) for uri in self._uris))
        except _FAILURES as error:
            log.info("listening session not renewed", reason=type(error).__name__)
            return False
        if self._listener is None or not self._listener.is_open:
            return False
        self._on_gap()
        return True

    # --- resources ---

    async def _subscribe_all(self, session: LegacySession, uris: frozenset[str]) -> frozenset[str]:
        """Subscribe to what is not subscribed yet; what the server refuses is left out."""
        new = [uri for uri in uris if not self._uris[uri]]
        done = await asyncio.gather(*(self._subscribe(session, uri) for uri in new))
        refused = {uri for uri, is_done in zip(new, done, strict=True) if not is_done}
        granted = uris - refused
        self._uris.update(granted)
        return granted

    async def _subscribe(self, session: LegacySession, uri: str) -> bool:
        try:
            async with asyncio.timeout(_SUBSCRIBE_S):
                await session.ask(methods.SUBSCRIBE, {"uri": uri})
        except _FAILURES:
            return False
        return True

    async def _unsubscribe(self, uri: str) -> None:
        if self._session is None or self._session.is_dead:
            return
        try:
            async with asyncio.timeout(_SUBSCRIBE_S):
                await self._session.ask(methods.UNSUBSCRIBE, {"uri": uri})
        except _FAILURES:
            return
