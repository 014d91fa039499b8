"""Sticky sessions in the shared store: one entry for each, which says which session it is at present.

An entry begins with a stamp, then the replica that opened the session (asterisks once another one has come by it), then
what is sealed. A stamp and a replica alone are a lock: that replica is about to open one. Every change is one script on
one key, so that two replicas never open the same. An entry that nobody touches expires in the end; nothing is concluded
from one that is missing, since a store may lose everything.
"""

import secrets
from typing import Any, Final

from gateway.core.sticky import Entry
from gateway.core.tokens import Sealer
from gateway.store.connection import SharedStore

_STAMP: Final = 22
_HEAD: Final = 30
_SEVERAL: Final = b"*" * (_HEAD - _STAMP)

_CLAIM: Final = f"""
local found = redis.call('GET', KEYS[1])
if not found or string.sub(found, 1, {_STAMP}) == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2] .. ARGV[3], 'PX', ARGV[4])
  return false
end
if #found > {_HEAD} then
  if string.sub(found, {_STAMP + 1}, {_HEAD}) ~= ARGV[3] then
    redis.call('SETRANGE', KEYS[1], {_STAMP}, '{_SEVERAL.decode()}')
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
end
return found
"""
"""Take an entry that is there, or the lock if there is none, or only the one that is known to be dead."""

_PUBLISH: Final = f"""
local found = redis.call('GET', KEYS[1])
if not found or #found > {_HEAD} or string.sub(found, 1, {_STAMP}) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], found .. ARGV[2], 'PX', ARGV[3])
return 1
"""
"""Put a session where one's own lock still is."""

_RELEASE: Final = f"""
local found = redis.call('GET', KEYS[1])
if found and #found == {_HEAD} and string.sub(found, 1, {_STAMP}) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
"""

_TOUCH: Final = f"""
local found = redis.call('GET', KEYS[1])
if not found or string.sub(found, 1, {_STAMP}) ~= ARGV[1] then return found end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return string.sub(found, 1, {_HEAD})
"""

_END: Final = f"""
local found = redis.call('GET', KEYS[1])
if not found or string.sub(found, 1, {_STAMP}) ~= ARGV[1] then return -1 end
local early = redis.call('PTTL', KEYS[1]) - tonumber(ARGV[2])
if early > 0 then return early end
redis.call('DEL', KEYS[1])
return 0
"""
"""Take an entry out that has not been touched for long enough; else say how many milliseconds that is early."""


class StickyStore:
    """The sticky sessions that all replicas have with one upstream.

    Args:
        store: where they stand.
        sealer: seals what is kept there.
        upstream: its configured name.
    """

    def __init__(self, store: SharedStore, sealer: Sealer, upstream: str) -> None:
        self._store = store
        self._upstream = upstream
        self._sealer = sealer
        self._replica = secrets.token_urlsafe(6)

    async def claim(self, name: str, *, dead: str, lock_s: float, keep_s: float) -> Entry:
        """The entry of a session, or the right to open it. Raises StoreDown.

        Args:
            name: which.
            dead: the stamp of the entry that is known to be good no longer; "" if none is.
            lock_s: how long opening may take.
            keep_s: how long an entry stays that is not touched.
        """
        stamp = secrets.token_urlsafe(16)
        times = _ms(lock_s), _ms(keep_s)
        found = await self._run(_CLAIM, name, dead, stamp, self._replica, *times)
        return Entry(stamp, is_mine=True) if found is None else self._read(found)

    async def publish(self, name: str, stamp: str, data: bytes, *, keep_s: float) -> bool:
        """Tell the others of a session that was opened; False if the lock was lost meanwhile. Raises StoreDown."""
        sealed = self._sealer.seal_bytes(data)
        return bool(await self._run(_PUBLISH, name, stamp, sealed, _ms(keep_s)))

    async def release(self, name: str, stamp: str) -> None:
        """Let somebody else open the session. Raises StoreDown."""
        await self._run(_RELEASE, name, stamp)

    async def touch(self, name: str, stamp: str, *, keep_s: float) -> Entry | None:
        """Say that a session is in use; the entry that is there now, None if there is none. Raises StoreDown."""
        found = await self._run(_TOUCH, name, stamp, _ms(keep_s))
        return None if found is None else self._read(found)

    async def end(self, name: str, stamp: str, *, left_s: float) -> float | None:
        """Take an entry out unless it was touched since.

        Args:
            name: which.
            stamp: of the entry.
            left_s: how long it would still stay if nobody had touched it for long enough.

        Returns:
            Seconds to wait before one looks again; 0.0: it is out, and nobody uses the session. None: the entry is not
            there, so that nothing is known of who uses it.

        Raises:
            StoreDown: it is not known whether it was taken out.
        """
        early_ms: int = await self._run(_END, name, stamp, _ms(left_s))
        return None if early_ms < 0 else early_ms / 1000

    async def is_sole(self, name: str, stamp: str) -> bool:
        """Whether no other replica has come by a session of this one. Raises StoreDown."""
        head: bytes = await self._store.execute("GETRANGE", self._key(name), 0, _HEAD - 1)
        return head == f"{stamp}{self._replica}".encode()

    def _key(self, name: str) -> str:
        return self._store.key("sticky", self._upstream, name)

    def _read(self, found: bytes) -> Entry:
        stamp, replica, sealed = found[:_STAMP], found[_STAMP:_HEAD], found[_HEAD:]
        is_sole = replica == self._replica.encode()
        return Entry(stamp.decode("ascii", "replace"), self._open(sealed) if sealed else None, is_sole=is_sole)

    def _open(self, sealed: bytes) -> bytes:
        try:
            return self._sealer.open_bytes(sealed)
        except ValueError:
            return b""

    async def _run(self, script: str, name: str, *words: str | bytes | int) -> Any:
        return await self._store.execute("EVAL", script, 1, self._key(name), *words)


def _ms(seconds: float) -> int:
    return max(1, int(seconds * 1000))
