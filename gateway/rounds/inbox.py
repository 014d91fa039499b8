"""The inbox of a replica: a stream in the shared store, which everybody writes and its owner alone reads.

All that stands in it is sealed. A message that is too large for the stream is kept beside it, to be read once.
An inbox that nobody looks after goes away by itself, also one that is written to after its replica has died.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from typing import Any, Final

import structlog

from gateway.core.relay import Message, decode_message, encode_message
from gateway.core.tokens import Sealer
from gateway.store.connection import SharedStore
from gateway.store.down import StoreDown

log = structlog.get_logger()

_LARGEST: Final = 65_536
_KEPT_S: Final = 60
"""How long an inbox is kept that nobody looks after, and a body that nobody reads."""

_LIMITED_S: Final = 30.0
"""How often a sender sees to that."""

_BLOCK_S: Final = 10.0
_PAUSE_S: Final = 0.5
_MOST_AT_ONCE: Final = 64
_SEALED: Final = b"m"
_BESIDE: Final = b"b"
_FIRST: Final = b"0-0"


class Inbox:
    """Sends to other replicas, and reads what they send to this one.

    Args:
        store: where the inboxes are.
        replica: this one.
        sealer: seals what is sent.
        receive: told of every message, in order; must not wait.
    """

    def __init__(self, store: SharedStore, replica: str, sealer: Sealer, receive: Callable[[Message], None]) -> None:
        self._store = store
        self._replica = replica
        self._sealer = sealer
        self._receive = receive
        self._last_id = _FIRST
        self._limited: dict[str, float] = {}
        self._is_failing = False
        store.on_change(lambda _is_up: self._limited.clear())

    async def send(self, message: Message, recipient: str) -> None:
        """Put a message into a replica's inbox.

        Raises:
            StoreDown: it may be there or not.
            ValueError: it cannot be written.
        """
        sealed = self._sealer.seal_bytes(encode_message(message, recipient))
        if len(sealed) <= _LARGEST:
            await self._store.execute("XADD", self._key(recipient), "*", _SEALED, sealed)
        else:
            beside = secrets.token_urlsafe(16)
            await self._store.execute("SET", self._body(beside), sealed, "EX", _KEPT_S)
            await self._store.execute("XADD", self._key(recipient), "*", _BESIDE, beside)
        await self._limit(recipient)

    async def read(self) -> None:
        """Read until cancelled."""
        while True:
            try:
                await self._read_some()
                self._is_failing = False
            except StoreDown:
                self._last_id = _FIRST  # one that was emptied, or another, may count from an earlier time
                await asyncio.sleep(_PAUSE_S)
            except Exception:
                if not self._is_failing:  # once, not twice a second
                    log.exception("inbox cannot be read")
                self._is_failing = True
                await asyncio.sleep(_PAUSE_S)

    async def tidy(self) -> None:
        """Drop what has been read, and keep the inbox for a while. Raises StoreDown."""
        now_s = time.monotonic()
        self._limited = {replica: until_s for replica, until_s in self._limited.items() if now_s < until_s}
        key = self._key(self._replica)
        if self._last_id != _FIRST:
            await self._store.execute("XTRIM", key, "MINID", _after(self._last_id))
        await self._store.execute("EXPIRE", key, _KEPT_S)

    async def _limit(self, recipient: str) -> None:
        """Have an inbox go away in time whose replica is dead: writing to it may have made it anew."""
        if time.monotonic() >= self._limited.get(recipient, 0.0):
            await self._store.execute("EXPIRE", self._key(recipient), _KEPT_S)
            self._limited[recipient] = time.monotonic() + _LIMITED_S

    async def _read_some(self) -> None:
        wait = ("BLOCK", int(_BLOCK_S * 1000), "COUNT", _MOST_AT_ONCE)
        answer = await self._store.wait(_BLOCK_S, "XREAD", *wait, "STREAMS", self._key(self._replica), self._last_id)
        for entry_id, members in _entries(answer):
            self._last_id = entry_id
            if (message := await self._open(members)) is not None:
                self._receive(message)

    async def _open(self, members: dict[bytes, bytes]) -> Message | None:
        try:
            return decode_message(self._sealer.open_bytes(await self._sealed(members)), self._replica)
        except ValueError as error:
            log.warning("message of another replica is not readable", error=str(error))
            return None

    async def _sealed(self, members: dict[bytes, bytes]) -> bytes:
        if (sealed := members.get(_SEALED)) is not None:
            return sealed
        body: bytes | None = await self._store.execute("GETDEL", self._body(members.get(_BESIDE, b"").decode()))
        return body or b""

    def _key(self, replica: str) -> str:
        return self._store.key("inbox", replica)

    def _body(self, name: str) -> str:
        return self._store.key("body", name)


def _entries(answer: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """The entries of the one stream that was read; an answer is a list or a map of streams, or nothing."""
    if not answer:
        return []
    streams = list(answer.values()) if isinstance(answer, dict) else [stream[1] for stream in answer]
    entries = streams[0]
    return [entry for batch in entries for entry in (batch if isinstance(batch, list) else [batch])]


def _after(entry_id: bytes) -> str:
    milliseconds, _, number = entry_id.decode().partition("-")
    return f"{milliseconds}-{int(number) + 1}"
