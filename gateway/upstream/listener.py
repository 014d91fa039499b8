"""Keeps the GET stream of a legacy session open, on which a server says what belongs to no reply.

It must be open before a call that may ask is sent: some servers ask on it, and drop the question if it is not there.
2025-11-25, basic/transports, "Listening for Messages from the Server".
"""

import asyncio
import random
from collections.abc import Callable
from typing import Final

from gateway.core.incoming import split
from gateway.errors import UpstreamError
from gateway.upstream.legacy_session import LegacySession
from gateway.upstream.reply import Reply
from gateway.wire.jsonrpc import decode

OPEN_TIMEOUT_S: Final = 1.0
"""How long a call waits for the stream of its new session; some servers send no headers before the first message."""

_BACKOFF_S: Final = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
_UNSUPPORTED: Final = frozenset({400, 401, 403, 404, 405, 406, 410, 501})


class Listener:
    """Reads the GET stream of one session for as long as the session lives.

    Args:
        session: whose stream.
        on_reopened: told when the stream is open again after it was not, so that something may have been missed.

    Attributes:
        is_open: whether the stream is open now.
        ended: done when there is no stream to be had, or none any more.
    """

    def __init__(self, session: LegacySession, on_reopened: Callable[[], None] = lambda: None) -> None:
        self.is_open = False
        self.ended = asyncio.Event()
        self._session = session
        self._on_reopened = on_reopened
        self._settled = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def opened(self) -> None:
        """Return when the stream is open, or is known not to be offered, or takes too long over it."""
        try:
            async with asyncio.timeout(OPEN_TIMEOUT_S):
                await self._settled.wait()
        except TimeoutError:
            self._settled.set()

    async def close(self) -> None:
        """Stop listening."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            await self._keep_open()
        finally:
            self._settled.set()
            self.ended.set()

    async def _keep_open(self) -> None:
        attempts, was_open = 0, False
        while not self._session.is_dead:
            reply = await self._get()
            if reply is not None and reply.status in _UNSUPPORTED:
                return
            retry_ms = None
            if reply is not None and reply.status == 200:
                if was_open:
                    self._on_reopened()
                was_open, attempts = True, 0
                retry_ms = await self._read(reply)
            self._settled.set()
            await asyncio.sleep(self._pause_s(attempts, retry_ms))
            attempts += 1

    async def _get(self) -> Reply | None:
        """The answer to a GET, closed unless it is a stream; None if there was none."""
        try:
            reply = await self._session.http.get(self._session.headers)
        except UpstreamError:
            return None
        if reply.status == 200 and reply.kind != "sse":
            reply.close()
            reply.status = 405  # a page, a greeting, anything: this server has no stream
        elif reply.status != 200:
            reply.close()
        return reply

    async def _read(self, reply: Reply) -> int | None:
        """Pass on what comes until the stream ends; say after how long the server wants to be asked again."""
        self.is_open = True
        self._settled.set()
        try:
            async for event in reply.events():
                try:
                    messages = split(decode(event.data))
                except ValueError:
                    continue
                for message in messages:
                    self._session.hears_notifications = True
                    await self._session.hear(message)
        except UpstreamError:
            pass  # a stream that broke is opened again like one that ended
        finally:
            self.is_open = False
            reply.close()
        return reply.retry_ms

    def _pause_s(self, failures: int, retry_ms: int | None) -> float:
        backoff = _BACKOFF_S[min(failures, len(_BACKOFF_S) - 1)]
        jittered = backoff * (0.5 + random.random())  # noqa: S311 -- spreads reconnections, guards nothing
        return max(jittered, (retry_ms or 0) / 1000)
