"""Warm sessions of one upstream, each kept for the one key that may use it.

Rule: a session never serves two keys. Calls that can share a session run side by side on the one of their key; calls
that cannot have one each. A sticky key has exactly one session, whatever its calls can.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.core.session import SessionKey
from gateway.errors import UpstreamError
from gateway.upstream.background import Background
from gateway.upstream.legacy_session import LegacySession
from gateway.upstream.pool_limits import PoolLimits, no_room
from gateway.upstream.retirement import Ender, Retirement
from gateway.upstream.turns import Turns

Opener = Callable[[], Awaitable[LegacySession]]

_HANDOVER_S: Final = 1.0
"""How long a new session is kept for the call that it was opened for."""


class SessionPool:
    """The sessions of one upstream.

    Args:
        upstream: its configured name.
        limits: how many, and for how long.
        background: where sessions are ended.
        now_s: a monotonic clock.
        end: ends a session that the pool is done with.
    """

    def __init__(
        self, upstream: str, limits: PoolLimits, background: Background, now_s: Callable[[], float], end: Ender
    ) -> None:
        self._upstream = upstream
        self._limits = limits
        self._background = background
        self._now_s = now_s
        self._shared: dict[SessionKey, LegacySession] = {}
        self._opening: dict[SessionKey, asyncio.Task[LegacySession]] = {}
        self._idle: dict[SessionKey, list[LegacySession]] = {}
        self._sessions: set[LegacySession] = set()
        self._untaken: set[LegacySession] = set()
        self._handshakes: set[asyncio.Task[LegacySession]] = set()
        self._retirement = Retirement(background, end)
        self._is_closed = False
        self._reserved = self._suspended = 0
        self._turns = Turns()

    def __len__(self) -> int:
        return len(self._sessions)

    async def lease(self, key: SessionKey, opener: Opener, *, exclusive: bool, fresh: bool = False) -> LegacySession:
        """A session to make one call on; give it back with `release`.

        Args:
            key: who asks.
            opener: opens a session for this key.
            exclusive: whether the call must be alone on its session.
            fresh: not one that was idle: the server has just forgotten one, and probably the others.

        Raises:
            UpstreamError: `full`, or what the opener raises.
        """
        if self._limits.reuse == "none":
            return self._take(await self._open(key, opener), exclusive=True)
        if exclusive and self._limits.reuse == "pooled":
            session = None if fresh else self._pop_idle(key)
            return self._take(session or await self._open(key, opener, takes_idle=not fresh), exclusive=True)
        session = self._shared.get(key)
        if session is not None and not session.is_dead and not session.is_suspect:
            return self._take(session, exclusive=False)
        return await self._lease_shared(key, opener)

    def adopt(self, session: LegacySession) -> None:
        """Count a session that another process opened; it serves the one call that it was opened for, and no other."""
        session.in_flight, session.is_exclusive, session.is_spent = 1, True, True
        self._sessions.add(session)

    def release(self, session: LegacySession, *, clean: bool) -> None:
        """Give a session back.

        Args:
            session: the session.
            clean: whether the server is done with the call, as far as anybody can tell.
        """
        session.in_flight -= 1
        self.unsuspend(session)
        if session.is_exclusive:
            self._release_exclusive(session, clean)
        else:
            session.is_suspect = session.is_suspect or not clean
            session.idle_since_s = self._now_s()
            if session.is_dead and session.in_flight == 0:
                self._retire(session)
        self._turns.give()

    def suspend(self, session: LegacySession) -> None:
        """The call on this session waits for its client: it no longer counts among those at work."""
        if not session.is_suspended and not self._limits.is_scarce:
            session.is_suspended = True
            self._suspended += 1
            self._turns.give()

    def unsuspend(self, session: LegacySession) -> None:
        """The call goes on, or has ended."""
        if session.is_suspended:
            session.is_suspended = False
            self._suspended -= 1

    def sweep(self) -> None:
        """End what has been idle for too long."""
        now_s = self._now_s()
        for session in [s for s in self._sessions if s.in_flight == 0]:
            if session.idle_since_s <= now_s - self._limits.idle_for_s(is_spent=session.is_spent):
                self._retire(session)

    async def close(self) -> None:
        """End every session, those too that are being opened."""
        self._is_closed = True
        for task in self._opening.values():
            task.cancel()
        for handshake in self._handshakes:
            self._background.run(self._retirement.retire_after(handshake))  # the server may open its session yet
        for session in list(self._sessions):
            if session.is_spent and session.in_flight == 0:
                session.is_forgotten = True  # who comes by with its token may yet ask the server how the call ended
            self._retire(session)

    # --- shared sessions ---

    async def _lease_shared(self, key: SessionKey, opener: Opener) -> LegacySession:
        """Wait for the one session of this key; concurrent calls share one `initialize`."""
        task = self._opening.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._renew_shared(key, opener))
            self._opening[key] = task
            task.add_done_callback(lambda done: self._opened(key, done))
        # Shielded: a waiter that leaves must not take the handshake away from the others.
        session = await asyncio.shield(task)
        return self._take(session, exclusive=False)

    async def _renew_shared(self, key: SessionKey, opener: Opener) -> LegacySession:
        session = self._shared.get(key)
        if session is not None:
            if session.is_suspect and not session.is_dead and await session.ping():
                session.is_suspect = False
                return session
            self._drop_shared(session)
        session = await self._open(key, opener)
        self._shared[key] = session
        return session

    def _opened(self, key: SessionKey, task: asyncio.Task[LegacySession]) -> None:
        self._opening.pop(key, None)
        if not task.cancelled():
            task.exception()  # seen: whoever waited has it, and maybe nobody did

    def _drop_shared(self, session: LegacySession) -> None:
        session.is_dead = True
        if self._shared.get(session.key) is session:
            del self._shared[session.key]
        if session.in_flight == 0:
            self._retire(session)

    # --- exclusive sessions ---

    def _pop_idle(self, key: SessionKey) -> LegacySession | None:
        sessions = self._idle.get(key)
        while sessions:
            session = sessions.pop()
            if not session.is_dead:
                return session
            self._retire(session)
        return None

    def _release_exclusive(self, session: LegacySession, clean: bool) -> None:
        # After a cancellation the server may go on with the call for a while; what it then says without correlation
        # would look as if it belonged to the next call. So such a session serves nobody else.
        if session.is_dead or not clean or self._limits.reuse == "none" or self._is_closed:
            self._retire(session)
            return
        session.idle_since_s = self._now_s()
        if session.is_spent:
            self._background.run(session.leave())
        else:
            self._idle.setdefault(session.key, []).append(session)

    # --- all of them ---

    def _take(self, session: LegacySession, *, exclusive: bool) -> LegacySession:
        self._untaken.discard(session)
        session.in_flight += 1
        session.is_exclusive = exclusive
        return session

    async def _open(self, key: SessionKey, opener: Opener, *, takes_idle: bool = False) -> LegacySession:
        """Open a session, or take an idle one of the key, if that comes free before there is room for one more."""
        if (session := await self._reserve(key, takes_idle=takes_idle)) is not None:
            return session
        task = asyncio.get_running_loop().create_task(self._open_reserved(opener))
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # Cutting a handshake short would leave a session at the server that nobody knows of.
            task.add_done_callback(self._adopt)
            raise

    async def _open_reserved(self, opener: Opener) -> LegacySession:
        try:
            session = await self._open_or_make_room(opener)
        except BaseException:
            self._turns.give()
            raise
        finally:
            self._reserved -= 1
        session.idle_since_s = self._now_s()
        self._sessions.add(session)
        self._untaken.add(session)
        return session

    async def _open_or_make_room(self, opener: Opener) -> LegacySession:
        """Open a session; where each is a process, not before those have ended that make room for it."""
        if not self._limits.is_scarce:
            return await opener()
        await self._retirement.completed()
        try:
            return await opener()
        except UpstreamError as error:
            if error.reason != "full" or not self._evict_idle():
                raise
        await self._retirement.completed()
        return await opener()

    def _adopt(self, task: asyncio.Task[LegacySession]) -> None:
        """Nobody waits for this session any more; it is kept for the next call."""
        if not task.cancelled() and task.exception() is None:
            self._untaken.discard(task.result())
            self._release_exclusive(task.result(), clean=True)
            self._turns.give()

    async def _reserve(self, key: SessionKey, *, takes_idle: bool) -> LegacySession | None:
        """Make room for one more session: end an idle one of another key, or wait.

        Returns:
            An idle session that makes another one superfluous, instead of the room.

        Raises:
            UpstreamError: `full`, when nothing came free in time.
        """
        deadline_s = self._now_s() + self._limits.wait_s
        user = (key.principal, key.credentials)
        while len(self._sessions) + self._reserved - self._suspended >= self._limits.max_sessions:
            if takes_idle and (session := self._pop_idle(key)) is not None:
                return session
            if not self._evict_idle() and not await self._turns.wait(deadline_s - self._now_s(), user):
                raise no_room(self._upstream, self._limits)
        self._reserved += 1
        return None

    def _evict_idle(self) -> bool:
        idle = [session for session in self._sessions if session.in_flight == 0 and not self._is_awaited(session)]
        if not idle:
            return False
        self._retire(min(idle, key=lambda session: session.idle_since_s))
        return True

    def _is_awaited(self, session: LegacySession) -> bool:
        return session in self._untaken and self._now_s() - session.idle_since_s < _HANDOVER_S

    def _retire(self, session: LegacySession) -> None:
        """End a session, in the background."""
        if session not in self._sessions:
            return
        self._sessions.discard(session)
        self._untaken.discard(session)
        if self._shared.get(session.key) is session:
            del self._shared[session.key]
        if (idle := self._idle.get(session.key)) is not None:
            if session in idle:
                idle.remove(session)
            if not idle:
                del self._idle[session.key]
        self._retirement.retire(session)
        self._turns.give()
