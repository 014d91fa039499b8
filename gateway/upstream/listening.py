"""Hears the changes of a legacy server on a session of its own, and comes back when that breaks.

The session subscribes to each resource once, however many listeners want it. When it is lost, another takes its place,
subscribes again, and the listeners are told that something may have been missed.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import structlog

from gateway.core.subscriptions import Filter, deliverable, is_told
from gateway.errors import UpstreamError
from gateway.upstream import faults
from gateway.upstream.background import Background
from gateway.upstream.backoff import Backoff
from gateway.upstream.legacy_session import LegacySession, SessionExpired
from gateway.upstream.listener import Listener
from gateway.upstream.refusal import UpstreamRefused
from gateway.upstream.resource_subscriptions import ResourceSubscriptions
from gateway.upstream.subscriptions import Reports
from gateway.upstream.watcher import ListWatcher
from gateway.wire.jsonrpc import Json, JsonObject

log = structlog.get_logger()

PATIENCE: Final = 8
"""How often in a row a server may refuse a new session, as one of another era or for another credential would."""

LOOK_S: Final = 30.0
"""How often a session that others use as well is looked at, lest it was given up though its stream is open."""


@dataclass(frozen=True, slots=True)
class ListeningSessions:
    """Where sessions to listen on come from.

    Args:
        open: opens one; nobody listens on it yet, though its stream may be read already.
        end: takes one back.
    """

    open: Callable[[], Awaitable[LegacySession]]
    end: Callable[[LegacySession], Awaitable[None]]


class LegacySource:
    """The changes of one legacy server, for the listeners of one principal.

    Args:
        name: of the server, as configured.
        sessions: where the session comes from.
        watch_s: seconds between two looks at lists whose changes the server does not tell; None: never.
        on_change: told of changes that the gateway found by looking.
        reports: told of gaps, and of the end.
        background: where sessions are ended.
    """

    def __init__(
        self,
        name: str,
        sessions: ListeningSessions,
        watch_s: float | None,
        on_change: Callable[[JsonObject], None],
        reports: Reports,
        background: Background,
    ) -> None:
        self._name = name
        self._sessions = sessions
        self._reports = reports
        self._background = background
        self._watcher = ListWatcher(watch_s, self.ask, self._is_told, on_change) if watch_s is not None else None
        self._resources = ResourceSubscriptions(self.ask, background)
        self._session: LegacySession | None = None
        self._listener: Listener | None = None
        self._opening: asyncio.Task[LegacySession] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._is_closed = False

    async def join(self, asked: Filter) -> Filter:
        """Begin to watch what is asked; says what can be watched.

        Raises:
            UpstreamRefused, UpstreamError: there is no session to be had.
        """
        session = await self._healthy_session()
        if self._listener is not None:
            await self._listener.opened()
        granted = deliverable(
            asked, session.negotiated.capabilities, is_heard=self._is_heard, is_watched=self._watcher is not None
        )
        uris = await self._resources.hold(granted.uris)
        try:
            if self._watcher is not None:
                await self._watcher.watch(granted.lists)
        except BaseException:
            self._resources.let_go(uris)
            raise
        if self._is_heard and self._keeper is None:
            self._keeper = asyncio.get_running_loop().create_task(self._keep())
        return Filter(granted.lists, uris)

    async def leave(self, granted: Filter) -> None:
        """A listener has gone; nobody else may want what it wanted."""
        self._resources.let_go(granted.uris)
        if self._watcher is not None:
            self._watcher.unwatch(granted.lists)

    async def close(self) -> None:
        """End the session."""
        self._is_closed = True
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
        if self._watcher is not None:
            await self._watcher.close()
        if self._opening is not None:
            await asyncio.wait([self._opening])
        if self._session is not None:
            if not self._session.is_dead:
                await self._resources.close()
            await self._end(self._session)

    async def ask(self, method: str, params: JsonObject | None) -> Json:
        """Make a request on the session; on another if the server has forgotten it. Raises one of its failures."""
        session = await self._healthy_session()
        try:
            return await session.ask(method, params)
        except SessionExpired:
            return await (await self._healthy_session()).ask(method, params)

    # --- the session, and its successors ---

    @property
    def _is_heard(self) -> bool:
        """Whether the server has a stream on which it can tell, though it may be about to be opened again."""
        return self._listener is not None and self._listener.is_offered

    @property
    def _is_taken(self) -> bool:
        """Whether another replica reads the session's stream now, since this one lost it."""
        return self._listener is not None and self._listener.is_taken

    def _is_told(self, list_changed: str) -> bool:
        return (
            self._is_heard
            and self._session is not None
            and is_told(self._session.negotiated.capabilities, list_changed)
        )

    async def _healthy_session(self) -> LegacySession:
        """The session, or its successor. All who want one share one attempt, which outlives those who leave."""
        if self._session is not None and not self._session.is_dead and not self._is_taken:
            return self._session
        if self._is_closed:
            raise SessionExpired
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._open())
            self._opening.add_done_callback(self._opened)
        return await asyncio.shield(self._opening)

    def _opened(self, opening: asyncio.Task[LegacySession]) -> None:
        self._opening = None
        if not opening.cancelled():
            opening.exception()  # whoever waited has it, and maybe nobody did

    async def _open(self) -> LegacySession:
        session = await self._sessions.open()
        before, self._session, self._listener = self._session, session, None
        if session.id is not None:
            self._listener = session.listener if isinstance(session.listener, Listener) else Listener(session)
            session.listener = self._listener
            self._listener.on_reopened.add(self._reports.missed)
            await self._listener.opened()
        if before is not None:
            self._background.run(self._end(before))
            await self._resources.renew(session.ask)
            if self._listener is not None and not self._listener.ended.is_set():
                self._reports.missed()
        return session

    async def _end(self, session: LegacySession) -> None:
        if isinstance(session.listener, Listener):
            session.listener.on_reopened.discard(self._reports.missed)
        await self._sessions.end(session)

    async def _keep(self) -> None:
        """Whenever the stream is gone for good, begin again with a new session."""
        backoff = Backoff()
        while self._listener is not None:
            backoff.opened()
            await self._lost(self._listener)
            await asyncio.sleep(backoff.next_s())
            if (failure := await self._renew(backoff)) is not None:
                self._reports.lost(failure)
                return

    async def _lost(self, listener: Listener) -> None:
        """Return when the stream is gone for good, or the session: another may have given that up."""
        while not (listener.ended.is_set() or listener.is_taken or self._session is None or self._session.is_dead):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await listener.ended.wait()

    async def _renew(self, backoff: Backoff) -> UpstreamError | UpstreamRefused | None:
        """Open another session, as soon as there is one to be had; says why if there will be none."""
        refusals = 0
        while True:
            try:
                session = await self._healthy_session()
                break
            except (UpstreamError, UpstreamRefused) as error:
                reason = error.reason if isinstance(error, UpstreamError) else "unauthorized"
                log.info("listening session not renewed", upstream=self._name, reason=reason)
                refusals = refusals + 1 if reason in ("nonsense", "unauthorized") else 0
                if refusals >= PATIENCE:
                    return error
            await asyncio.sleep(backoff.next_s())
        if self._listener is None or (self._listener.ended.is_set() and not self._listener.was_open):
            return faults.nonsense(session.name, "no longer offers a stream on which it could tell of changes")
        return None
