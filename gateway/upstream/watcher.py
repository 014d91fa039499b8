"""Looks at a server's lists from time to time, so that their changes can be told though the server does not tell."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from gateway.core.subscriptions import LISTS
from gateway.errors import UpstreamError
from gateway.upstream.legacy_session import SessionExpired
from gateway.upstream.refusal import UpstreamRefused
from gateway.wire.jsonrpc import JsonObject, encode, notification

_MAX_PAGES: Final = 100

Ask = Callable[[str, JsonObject | None], Awaitable[object]]


class ListWatcher:
    """Polls the lists that somebody watches.

    Args:
        interval_s: seconds between two looks.
        ask: makes a request of the server.
        on_change: told of a list that is not what it was.
    """

    def __init__(self, interval_s: float, ask: Ask, on_change: Callable[[JsonObject], None]) -> None:
        self._interval_s = interval_s
        self._ask = ask
        self._on_change = on_change
        self._watched: Counter[str] = Counter()
        self._seen: dict[str, bytes] = {}
        self._task: asyncio.Task[None] | None = None

    def watch(self, lists: Iterable[str]) -> None:
        """Begin to look at lists, named by the notification that tells of their change."""
        self._watched.update(lists)
        if self._watched and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def unwatch(self, lists: Iterable[str]) -> None:
        """Somebody no longer wants to know."""
        self._watched.subtract(lists)
        self._watched = +self._watched

    async def close(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            for changed in list(self._watched):
                await self._look(changed)
            await asyncio.sleep(self._interval_s)

    async def _look(self, changed: str) -> None:
        try:
            fingerprint = await self._fingerprint(changed)
        except (UpstreamError, UpstreamRefused, SessionExpired):
            return  # nothing is known of the list now, and so nothing of a change
        before = self._seen.get(changed)
        self._seen[changed] = fingerprint
        if before is not None and before != fingerprint:
            self._on_change(notification(changed))

    async def _fingerprint(self, changed: str) -> bytes:
        digest = hashlib.sha256()
        for method in LISTS[changed]:
            cursor: object = None
            for _ in range(_MAX_PAGES):
                page = await self._ask(method, None if cursor is None else {"cursor": cursor})
                digest.update(encode(page))
                before, cursor = cursor, page.get("nextCursor") if isinstance(page, dict) else None
                if not isinstance(cursor, str) or cursor == before:
                    break
        return digest.digest()
