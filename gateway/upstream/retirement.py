"""Sessions on their way out: ended in the background, and in sight, since a process must be gone to make room."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from gateway.upstream.background import Background
from gateway.upstream.legacy_session import LegacySession

Ender: TypeAlias = Callable[[LegacySession], Coroutine[Any, Any, None]]
"""Ends a session that the pool is done with."""


class Retirement:
    """Ends sessions.

    Args:
        background: where.
        end: ends one.
    """

    def __init__(self, background: Background, end: Ender) -> None:
        self._background = background
        self._end = end
        self._ending: set[asyncio.Task[None]] = set()

    def retire(self, session: LegacySession) -> None:
        """End a session, without waiting for it."""
        task = self._background.run(self._end(session))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def retire_after(self, handshake: asyncio.Task[LegacySession]) -> None:
        """End a session that is still being opened, if it comes about."""
        await asyncio.wait([handshake])
        if not handshake.cancelled() and handshake.exception() is None:
            await self._end(handshake.result())

    async def completed(self) -> None:
        """Return when every session has ended that was to."""
        if self._ending:
            await asyncio.wait(self._ending)
