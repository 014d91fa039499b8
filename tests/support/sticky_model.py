"""A store of sticky sessions in memory, with a clock that the test winds, and sessions that a server knows or not."""

from collections.abc import Coroutine
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from gateway.core.session import Negotiated, SessionKey, negotiate
from gateway.core.sticky import Entry
from gateway.store.down import StoreDown
from gateway.upstream.legacy_session import LegacySession
from gateway.upstream.share import Share

NEGOTIATED = negotiate({"protocolVersion": "2025-11-25", "capabilities": {}})


@dataclass
class Clock:
    """Seconds."""

    now_s: float = 1000.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class _Row:
    stamp: str
    opener: object
    until_s: float
    data: bytes | None = None
    is_shared: bool = False


@dataclass
class ModelStore:
    """What all replicas share; `for_replica` is one replica's way to it.

    Attributes:
        is_down: whether nobody reaches it.
        commands: how often it was asked.
    """

    clock: Clock
    is_down: bool = False
    commands: int = 0
    rows: dict[str, _Row] = field(default_factory=dict)
    stamps: int = 0

    def for_replica(self) -> "ReplicaStore":
        """The way of another replica."""
        return ReplicaStore(self)

    def row(self, name: str) -> _Row | None:
        """What stands there now."""
        self.commands += 1
        if self.is_down:
            raise StoreDown
        row = self.rows.get(name)
        if row is not None and row.until_s <= self.clock():
            del self.rows[name]
            return None
        return row


class ReplicaStore:
    """See `gateway.store.sticky`, which this does in memory."""

    def __init__(self, store: ModelStore) -> None:
        self._store = store

    async def claim(self, name: str, *, dead: str, lock_s: float, keep_s: float) -> Entry:
        row = self._store.row(name)
        if row is None or row.stamp == dead:
            self._store.stamps += 1
            stamp = f"stamp-{self._store.stamps}"
            self._store.rows[name] = _Row(stamp, self, self._store.clock() + lock_s)
            return Entry(stamp, is_mine=True)
        if row.data is not None:
            row.is_shared = row.is_shared or row.opener is not self
            row.until_s = self._store.clock() + keep_s
        return self._entry(row)

    async def publish(self, name: str, stamp: str, data: bytes, *, keep_s: float) -> bool:
        row = self._store.row(name)
        if row is None or row.stamp != stamp or row.data is not None:
            return False
        row.data, row.until_s = data, self._store.clock() + keep_s
        return True

    async def release(self, name: str, stamp: str) -> None:
        row = self._store.row(name)
        if row is not None and row.stamp == stamp and row.data is None:
            del self._store.rows[name]

    async def touch(self, name: str, stamp: str, *, keep_s: float) -> Entry | None:
        row = self._store.row(name)
        if row is not None and row.stamp == stamp:
            row.until_s = self._store.clock() + keep_s
        return None if row is None else self._entry(row)

    async def end(self, name: str, stamp: str, *, left_s: float) -> float | None:
        row = self._store.row(name)
        if row is None or row.stamp != stamp:
            return None
        early_s = row.until_s - self._store.clock() - left_s
        if early_s > 0:
            return early_s
        del self._store.rows[name]
        return 0.0

    async def is_sole(self, name: str, stamp: str) -> bool:
        row = self._store.row(name)
        return row is not None and row.stamp == stamp and row.opener is self and not row.is_shared

    def _entry(self, row: _Row) -> Entry:
        return Entry(row.stamp, row.data, is_sole=row.opener is self and not row.is_shared)


@dataclass
class ModelServer:
    """The sessions that a server knows, and when each was used last.

    Attributes:
        ended: the sessions that were DELETEd, each with how long it had not been used.
    """

    clock: Clock
    sessions: dict[str, float] = field(default_factory=dict)
    ended: list[tuple[str, float]] = field(default_factory=list)
    opened: int = 0

    def open(self, key: SessionKey) -> LegacySession:
        """Open a session."""
        self.opened += 1
        session_id = f"sess-{self.opened}"
        self.sessions[session_id] = self.clock()
        return self.session(key, session_id, NEGOTIATED)

    def session(self, key: SessionKey, session_id: str, negotiated: Negotiated) -> LegacySession:
        """A session by its id."""
        return cast(LegacySession, ModelSession(self, key, session_id, negotiated))

    def use(self, session_id: str) -> bool:
        """A call in a session; False: a 404."""
        if session_id not in self.sessions:
            return False
        self.sessions[session_id] = self.clock()
        return True

    def end(self, session_id: str) -> None:
        """A DELETE."""
        if (used_s := self.sessions.pop(session_id, None)) is not None:
            self.ended.append((session_id, self.clock() - used_s))


@dataclass(eq=False)
class ModelSession:
    """As much of a session as a pool and its sharing look at."""

    server: ModelServer
    key: SessionKey
    id: str
    negotiated: Negotiated
    in_flight: int = 0
    idle_since_s: float = 0.0
    is_dead: bool = False
    is_forgotten: bool = False
    is_suspect: bool = False
    is_suspended: bool = False
    is_spent: bool = False
    is_exclusive: bool = False
    share: Share | None = None
    hearing: SimpleNamespace = field(default_factory=SimpleNamespace)

    async def leave(self) -> None:
        self.is_dead = True

    def close(self) -> Coroutine[Any, Any, None]:
        return self._close()

    async def _close(self) -> None:
        await self.leave()
        if not self.is_forgotten:
            self.server.end(self.id)
