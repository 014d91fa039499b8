"""Work that nobody waits for, kept in sight so that a shutdown can wait for it or end it."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

log = structlog.get_logger()


class Background:
    """The tasks of one upstream that outlive the request that started them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start work; what it raises is logged."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish)
        return task

    def __len__(self) -> int:
        return len(self._tasks)

    async def close(self, grace_s: float) -> None:
        """Wait for what is under way, at most `grace_s` seconds, then cancel the rest."""
        if not self._tasks:
            return
        _done, late = await asyncio.wait(self._tasks, timeout=grace_s)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("background work failed", error=type(error).__name__, exc_info=error)
