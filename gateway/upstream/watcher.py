"""Looks at a server's lists from time to time, so that their changes can be told though the server does not tell."""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Final

from gateway.core.subscriptions import LISTS
from gateway.errors import UpstreamError
from gateway.upstream.legacy_session import SessionExpired
from gateway.upstream.refusal import UpstreamRefused
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject, notification

_MAX_PAGES: Final = 100
_LOOK_S: Final = 10.0
_FAILURES: Final = (UpstreamError, UpstreamRefused, SessionExpired, TimeoutError)

Ask = Callable[[str, JsonObject | None], Awaitable[Json]]


class ListWatcher:
    """Polls the lists that somebody watches.

    Args:
        interval_s: seconds between two looks.
        ask: makes a request of the server.
        is_told: whether the server itself tells of a list's changes now, so that nobody need look.
        on_change: told of a list that is not what it was.
    """

    def __init__(
        self, interval_s: float, ask: Ask, is_told: Callable[[str], bool], on_change: Callable[[JsonObject], None]
    ) -> None:
        self._interval_s = interval_s
        self._ask = ask
        self._is_told = is_told
        self._on_change = on_change
        self._watched: Counter[str] = Counter()
        self._seen: dict[str, bytes] = {}
        self._task: asyncio.Task[None] | None = None

    async def watch(self, lists: Iterable[str]) -> None:
        """Begin to look at lists, named by the notification that tells of their change.

        Returns when each has been looked at, so that whatever changes from now on is found.
        """
        lists = tuple(lists)
        self._watched.update(lists)
        try:
            await asyncio.gather(*(self._look(changed) for changed in lists if changed not in self._seen))
        except BaseException:
            self.unwatch(lists)
            raise
        if self._watched and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def unwatch(self, lists: Iterable[str]) -> None:
        """Somebody no longer wants to know."""
        self._watched.subtract(lists)
        self._watched = +self._watched
        self._seen = {changed: seen for changed, seen in self._seen.items() if changed in self._watched}

    async def close(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            for changed in list(self._watched):
                await self._look(changed)

    async def _look(self, changed: str) -> None:
        if self._is_told(changed):
            self._seen.pop(changed, None)
            return
        try:
            async with asyncio.timeout(_LOOK_S):
                fingerprint = await self._fingerprint(changed)
        except _FAILURES:
            return  # nothing is known of the list now, and so nothing of a change
        before = self._seen.get(changed)
        if changed in self._watched:
            self._seen[changed] = fingerprint
        if before is not None and before != fingerprint:
            self._on_change(notification(changed))

    async def _fingerprint(self, changed: str) -> bytes:
        """What the lists hold, in whatever order: some servers keep none, and cursors may differ every time."""
        entries: list[bytes] = []
        for method in LISTS[changed]:
            entries += [_digest(entry) async for entry in self._entries(method)]
        return hashlib.sha256(b"".join(sorted(entries))).digest()

    async def _entries(self, method: str) -> AsyncIterator[Json]:
        cursor: Json = None
        for _ in range(_MAX_PAGES):
            try:
                page = await self._ask(method, None if cursor is None else {"cursor": cursor})
            except UpstreamError as error:
                if method == methods.RESOURCE_TEMPLATES_LIST and error.reason == "nonsense":
                    return  # many servers with resources do not know this method
                raise
            entries = page.get(methods.LIST_KEYS[method]) if isinstance(page, dict) else None
            for entry in entries if isinstance(entries, list) else ():
                yield entry
            before, cursor = cursor, page.get("nextCursor") if isinstance(page, dict) else None
            if not isinstance(cursor, str) or cursor == before:
                return


def _digest(entry: Json) -> bytes:
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).digest()
