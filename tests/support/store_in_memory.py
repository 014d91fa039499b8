"""A store in memory, for the parts that share one: the commands that the gateway sends, executed or lost.

store = StoreInMemory()
store.lose("XADD", executed=True)    # the next one is executed, and its answer lost
await store.execute("SET", "k", "v")
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway.store.connection import Argument
from gateway.store.down import StoreDown


@dataclass
class Stream:
    """Entries in order."""

    entries: list[tuple[bytes, dict[bytes, bytes]]]
    last: int = 0


class StoreInMemory:
    """As `SharedStore`, with a clock of its own.

    Attributes:
        now_s: its time, also for expiry.
        sent: the commands, in order.
    """

    def __init__(self) -> None:
        self.is_up = True
        self.now_s = 0.0
        self.sent: list[tuple[Argument, ...]] = []
        self._values: dict[str, Any] = {}
        self._until: dict[str, float] = {}
        self._lost: dict[str, bool] = {}
        self._told: list[Callable[[bool], None]] = []
        self._written = asyncio.Event()

    def key(self, *parts: str) -> str:
        return ":".join(("test", *parts))

    def on_change(self, told: Callable[[bool], None]) -> None:
        self._told.append(told)

    def turn(self, *, is_up: bool) -> None:
        """Go down, or come back."""
        self.is_up = is_up
        for told in self._told:
            told(is_up)

    def lose(self, command: str, *, executed: bool = False) -> None:
        """Lose the next such command, or its answer."""
        self._lost[command] = executed

    def keys(self) -> list[str]:
        """What is there."""
        return [key for key in list(self._values) if self._get(key) is not None]

    def left_s(self, key: str) -> float | None:
        """How long a key stays; None: for ever."""
        return self._until[key] - self.now_s if key in self._until else None

    def clear(self) -> None:
        """Forget everything."""
        self._values.clear()
        self._until.clear()

    async def execute(self, *command: Argument) -> Any:
        if not self.is_up:
            raise StoreDown
        self.sent.append(command)
        name = str(command[0])
        await asyncio.sleep(0)
        if (executed := self._lost.pop(name, None)) is False:
            raise StoreDown
        answer = getattr(self, f"_do_{name.lower()}")(*command[1:])
        if executed:
            raise StoreDown
        return answer

    async def probe(self, *command: Argument) -> Any:
        return await self.execute(*command)

    async def wait(self, _block_s: float, *command: Argument) -> Any:
        while not (answer := await self.execute(*command)):
            self._written.clear()
            await self._written.wait()
        return answer

    # --- commands ---

    def _get(self, key: str) -> Any:
        if key in self._until and self.now_s >= self._until[key]:
            del self._values[key], self._until[key]
        return self._values.get(key)

    def _do_set(self, key: str, value: str | bytes, *words: str | int) -> bytes | None:
        is_there = self._get(key) is not None
        if ("NX" in words and is_there) or ("XX" in words and not is_there):
            return None
        self._values[key] = value if isinstance(value, bytes) else value.encode()
        if "KEEPTTL" not in words:
            self._until.pop(key, None)
        for unit, factor in (("PX", 0.001), ("EX", 1.0)):
            if unit in words:
                self._until[key] = self.now_s + factor * float(words[words.index(unit) + 1])
        return b"OK"

    def _do_get(self, key: str) -> Any:
        return self._get(key)

    def _do_exists(self, key: str) -> int:
        return int(self._get(key) is not None)

    def _do_del(self, key: str) -> int:
        self._until.pop(key, None)
        return int(self._values.pop(key, None) is not None)

    def _do_getdel(self, key: str) -> Any:
        value = self._get(key)
        self._do_del(key)
        return value

    def _do_expire(self, key: str, seconds: int) -> int:
        if self._get(key) is None:
            return 0
        self._until[key] = self.now_s + seconds
        return 1

    def _do_eval(self, script: str, _keys: int, key: str, old: str, new: str = "") -> int:
        if self._get(key) != old.encode():
            return 0
        if "DEL" in script:
            return self._do_del(key)
        self._values[key] = new.encode()
        return 1

    def _do_xadd(self, key: str, _id: str, name: bytes, value: bytes | str) -> bytes:
        stream = self._get(key)
        if stream is None:
            stream = self._values[key] = Stream([])
        stream.last += 1
        entry = b"%d-0" % stream.last
        stream.entries.append((entry, {name: value if isinstance(value, bytes) else value.encode()}))
        self._written.set()
        return entry

    def _do_xread(self, *words: Any) -> Any:
        key, after = words[-2:]
        stream = self._get(key)
        entries = [] if stream is None else [entry for entry in stream.entries if _number(entry[0]) > _number(after)]
        return [[key.encode(), entries]] if entries else None

    def _do_xtrim(self, key: str, _minid: str, least: str) -> int:
        stream = self._get(key)
        if stream is None:
            return 0
        before = len(stream.entries)
        stream.entries = [entry for entry in stream.entries if _number(entry[0]) >= _number(least.encode())]
        return before - len(stream.entries)


def _number(entry: bytes) -> tuple[int, int]:
    milliseconds, _, number = entry.partition(b"-")
    return int(milliseconds), int(number)
