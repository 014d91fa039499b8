"""Sticky sessions that replicas share: one session for a key, whichever replica a call lands on.

Rule: a call on a session that is known costs no command. The store is asked when a key is first used here and when a
server has forgotten a session, and is told now and then that a session is in use. While it cannot be reached, a replica
goes on with the session that it knows, or with one of its own, until the store is back and says which one it is.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final, Protocol

import structlog

from gateway.core.session import Negotiated, SessionKey
from gateway.core.sticky import Entry, SharingTimes, decode_session, encode_session, name_of
from gateway.errors import UpstreamError
from gateway.store.down import StoreDown
from gateway.upstream.background import Background
from gateway.upstream.left_sessions import LeftSessions
from gateway.upstream.legacy_session import LegacySession
from gateway.upstream.share import Share

log = structlog.get_logger()

Opener = Callable[[], Awaitable[LegacySession]]
Reviver = Callable[[str, Negotiated], LegacySession]

_FIRST_LOOK_S: Final = 0.05
_LAST_LOOK_S: Final = 0.5
"""Between two looks for the session that another replica is about to open."""

_AGAIN_S: Final = 1.0
"""After which the store is told again, if it could not be reached or somebody is about to open a session."""

_FRESH_S: Final = 1.0
"""For how long it is believed that no other replica uses a session, where only a log message depends on it."""


class SharedSessions(Protocol):
    """What the store keeps of an upstream's sticky sessions: `gateway.store.sticky`. Each method raises StoreDown."""

    async def claim(self, name: str, *, dead: str, lock_s: float, keep_s: float) -> Entry:
        """The entry of a session, or the right to open it."""

    async def publish(self, name: str, stamp: str, data: bytes, *, keep_s: float) -> bool:
        """Tell the others of a session that was opened; False if the lock was lost meanwhile."""

    async def release(self, name: str, stamp: str) -> None:
        """Let somebody else open the session."""

    async def touch(self, name: str, stamp: str, *, keep_s: float) -> Entry | None:
        """Say that a session is in use; the entry that is there now."""

    async def end(self, name: str, stamp: str, *, left_s: float) -> float | None:
        """Take an entry out unless it was touched since; else say how long to wait."""

    async def is_sole(self, name: str, stamp: str) -> bool:
        """Whether no other replica has come by a session of this one."""


class StickySharing:
    """The sticky sessions of one upstream, as this replica shares them.

    Args:
        upstream: its configured name.
        server: where it is.
        store: what the replicas share.
        times: when they tell each other what.
        is_tied: whether a session cannot be gone on with over another connection, by its id.
        background: where work goes that nobody waits for.
        now_s: a monotonic clock.
    """

    def __init__(
        self,
        upstream: str,
        server: str,
        store: SharedSessions,
        times: SharingTimes,
        is_tied: Callable[[str], bool],
        background: Background,
        now_s: Callable[[], float],
    ) -> None:
        self._upstream = upstream
        self._server = server
        self._store = store
        self._times = times
        self._is_tied = is_tied
        self._background = background
        self._now_s = now_s
        self._is_closed = False
        self._latest: dict[SessionKey, LegacySession] = {}
        self._left = LeftSessions(store, times, background, now_s)

    async def obtain(self, key: SessionKey, opener: Opener, revive: Reviver) -> LegacySession:
        """The session that the replicas have for a key; opened here if they have none, or the one known is dead.

        Args:
            key: who may use it.
            opener: opens one.
            revive: makes one of an id that another replica opened.

        Raises:
            UpstreamRefused, UpstreamError: what the opener raises; `timeout` if another replica takes too long over it.
        """
        name, latest = name_of(self._server, key), self._latest.get(key)
        dead = latest.share.stamp if latest is not None and latest.is_dead and latest.share is not None else ""
        try:
            session = await self._find_or_open(name, dead, opener, revive)
        except StoreDown:
            log.info("sticky session opened without the store", upstream=self._upstream)
            session = self._keep(await opener(), name, "")
        if session.share is not None:
            self._latest[key] = session
        return session

    def note_use(self, session: LegacySession) -> None:
        """A call is made on a session; the store is told in the background, unless it was a short while ago."""
        share = session.share
        if share is not None and self._now_s() >= share.due_s:
            share.due_s = self._now_s() + _AGAIN_S
            self._background.run(self._tell(session, share))

    def end(self, session: LegacySession) -> Coroutine[Any, Any, None]:
        """Be done with a session here: one that others may use is only left, and ended when nobody does."""
        if self._latest.get(session.key) is session and not session.is_dead:
            del self._latest[session.key]
        if session.share is None or not session.share.stamp:
            return session.close()
        return self._left.take(session, session.share)

    def sweep(self) -> None:
        """What is done every few seconds: say that long calls go on, and end what nobody uses any more."""
        for key, session in list(self._latest.items()):
            if session.in_flight > 0:
                self.note_use(session)
            elif session.is_dead and session.share is not None and self._is_past(session.share):
                del self._latest[key]
        self._left.sweep()

    def close(self) -> None:
        """Wait for no other replica any more."""
        self._is_closed = True

    async def is_alone(self, session: LegacySession, is_question: bool) -> bool:
        """Whether the calls on a session here are all that there are on it."""
        share = session.share
        if share is None or share.is_doubtful:
            return share is None
        if share.stamp and (is_question or self._now_s() - share.asked_s > _FRESH_S):
            try:
                share.is_sole = await self._store.is_sole(share.name, share.stamp)
            except StoreDown:
                share.is_sole = False
            share.asked_s = self._now_s()
        return share.is_sole

    # --- finding and opening ---

    async def _find_or_open(self, name: str, dead: str, opener: Opener, revive: Reviver) -> LegacySession:
        pause_s, deadline_s = _FIRST_LOOK_S, self._now_s() + 2 * self._times.lock_s
        while self._now_s() < deadline_s and not self._is_closed:
            entry = await self._store.claim(name, dead=dead, lock_s=self._times.lock_s, keep_s=self._times.keep_s)
            if entry.is_mine:
                session = await self._open(name, entry.stamp, opener)
                if session is not None:
                    return session
            elif entry.data is None:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LAST_LOOK_S)
            elif (found := _read(name, entry.data)) is not None:
                self._left.forget(name)
                return self._keep(revive(*found), name, entry.stamp, is_sole=entry.is_sole)
            else:
                dead = entry.stamp  # sealed with keys that are gone, or not written by us
        message = f"Upstream {self._upstream!r} was not connected to in time by another replica"
        raise UpstreamError(self._upstream, "timeout", message, retryable=True)

    async def _open(self, name: str, stamp: str, opener: Opener) -> LegacySession | None:
        """Open a session for all replicas; None if another one was faster after all."""
        try:
            session = await opener()
        except BaseException:
            self._background.run(self._release(name, stamp))
            raise
        data = self._write(name, session)
        if data is None:
            self._background.run(self._release(name, stamp))
            return session
        try:
            is_published = await self._store.publish(name, stamp, data, keep_s=self._times.keep_s)
        except StoreDown:
            kept = self._keep(session, name, "")
            if kept.share is not None:
                kept.share.is_doubtful = True  # perhaps it came through; the store tells, later
            return kept
        if is_published:
            return self._keep(session, name, stamp)
        self._background.run(session.close())
        return None

    def _write(self, name: str, session: LegacySession) -> bytes | None:
        """What others are told of a session; None for one that they could not use."""
        if session.id is None or self._is_tied(session.id):
            return None
        try:
            return encode_session(name, session.id, session.negotiated)
        except ValueError:
            log.warning("sticky session not shared: the server says too much of itself", upstream=self._upstream)
            return None

    def _keep(self, session: LegacySession, name: str, stamp: str, *, is_sole: bool = True) -> LegacySession:
        now_s = self._now_s()
        due_s = now_s + self._times.touch_s if stamp else now_s
        if session.id is not None and not self._is_tied(session.id):
            session.share = Share(name, stamp, due_s, is_sole=is_sole, asked_s=now_s)
            session.hearing.is_alone = partial(self.is_alone, session)
        return session

    async def _release(self, name: str, stamp: str) -> None:
        try:
            await self._store.release(name, stamp)
        except StoreDown:
            return  # it expires

    # --- telling ---

    async def _tell(self, session: LegacySession, share: Share) -> None:
        """Say that a session is in use, and take note if the replicas have another one by now."""
        if session.is_dead:
            return
        times = self._times
        try:
            entry = await self._store.touch(share.name, share.stamp, keep_s=times.keep_s)
            if entry is None or entry.stamp != share.stamp:
                entry = await self._store.claim(share.name, dead="", lock_s=times.lock_s, keep_s=times.keep_s)
            if entry.is_mine:
                await self._offer(session, share, entry.stamp)
            elif entry.data is not None or entry.stamp == share.stamp:
                self._compare(session, share, entry)
        except StoreDown:
            return

    async def _offer(self, session: LegacySession, share: Share, stamp: str) -> None:
        """The store knows of no session, or has lost it: have it know of this one."""
        data = self._write(share.name, session)
        if data is not None and await self._store.publish(share.name, stamp, data, keep_s=self._times.keep_s):
            share.is_doubtful = share.is_doubtful or bool(share.stamp)  # who has come by it before?
            share.stamp = stamp
            share.due_s = self._now_s() + self._times.touch_s

    def _compare(self, session: LegacySession, share: Share, entry: Entry) -> None:
        if entry.stamp != share.stamp:
            found = _read(share.name, entry.data or b"")
            if found is None or found[0] != session.id:
                log.info("sticky session given up for that of the other replicas", upstream=self._upstream)
                session.is_dead = True  # calls on it go on, the next one is made on the other
                return
            share.stamp = entry.stamp
        share.is_sole, share.asked_s = entry.is_sole, self._now_s()
        share.due_s = self._now_s() + self._times.touch_s

    def _is_past(self, share: Share) -> bool:
        return self._now_s() - share.due_s > self._times.keep_s


def _read(name: str, data: bytes) -> tuple[str, Negotiated] | None:
    try:
        return decode_session(name, data)
    except ValueError:
        return None
