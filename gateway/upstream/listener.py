"""Keeps the GET stream of a legacy session open, on which a server says what belongs to no reply.

It must be open before a call that may ask is sent: some servers ask on it, and drop the question if it is not there.
It is never resumed with `Last-Event-ID`: the event store that the SDKs' examples come with replays what was meant for
another session. What was missed counts as changed instead.
2025-11-25, basic/transports, "Listening for Messages from the Server".
"""

import asyncio
from collections.abc import Callable
from typing import Final

from gateway.core.incoming import split
from gateway.errors import UpstreamError
from gateway.upstream.backoff import Backoff
from gateway.upstream.legacy_session import LegacySession
from gateway.upstream.transport import Answer
from gateway.wire.jsonrpc import decode

OPEN_TIMEOUT_S: Final = 1.0
"""How long a call waits for the stream of its session; some servers send no headers before the first message."""

PAUSES_S: Final = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
_UNSUPPORTED: Final = frozenset({400, 401, 403, 404, 405, 406, 410, 501})
_TAKEN: Final = 409
_FORGOTTEN: Final = frozenset({400, 404, 410})


class Listener:
    """Reads the GET stream of one session for as long as the session lives.

    Args:
        session: whose stream.

    Attributes:
        is_open: whether the stream is open now.
        was_open: whether it ever was.
        is_taken: whether another replica has it, as it seems.
        ended: done when there is no stream to be had, or none any more.
        on_reopened: told when the stream is open again after it was not, so that something may have been missed.
    """

    def __init__(self, session: LegacySession) -> None:
        self.is_open = False
        self.was_open = False
        self.is_taken = False
        self.ended = asyncio.Event()
        self._session = session
        self.on_reopened: set[Callable[[], None]] = set()
        self._backoff = Backoff(PAUSES_S)
        self._settled = asyncio.Event()
        self._hurry = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def is_offered(self) -> bool:
        """Whether the server has such a stream: it was open, and was not refused since."""
        return self.was_open and not self.ended.is_set()

    async def opened(self) -> None:
        """Return when the stream is open, or is known not to be offered, or takes too long over it."""
        if self._settled.is_set():
            return
        self._hurry.set()
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
        while not self._session.is_dead:
            reply = await self._get()
            if reply is not None and reply.status in _UNSUPPORTED:
                self._note_refusal(reply.status)
                return
            is_refused = reply is not None and reply.status == _TAKEN
            self.is_taken = is_refused and self._session.share is not None
            if self.is_taken:
                self._settled.set()  # and another replica may have it for long
            retry_ms = None
            if reply is not None and reply.status == 200:
                retry_ms = await self._read(reply)
            await self._pause(retry_ms)

    async def _get(self) -> Answer | None:
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

    def _note_refusal(self, status: int) -> None:
        """A stream that was open and is refused now: the session is gone, or can no longer be asked on."""
        if self.was_open:
            self._session.is_dead = True
            self._session.is_forgotten = status in _FORGOTTEN

    async def _read(self, reply: Answer) -> int | None:
        """Pass on what comes until the stream ends; say after how long the server wants to be asked again."""
        self._open()
        try:
            async for event in reply.events():
                try:
                    messages = split(decode(event.data))
                except ValueError:
                    continue
                for message in messages:
                    self._session.hears_notifications = True
                    await self._session.hearing.hear(message)
        except UpstreamError:
            pass  # a stream that broke is opened again like one that ended
        finally:
            self.is_open = False
            reply.close()
        return reply.retry_ms

    def _open(self) -> None:
        self._backoff.opened()
        if self.was_open:
            for tell in tuple(self.on_reopened):
                tell()
        self.is_open = self.was_open = True
        self._settled.set()

    async def _pause(self, retry_ms: int | None) -> None:
        """Wait before the next attempt: less if a call wants the stream, but never less than the server asks for."""
        pause_s, least_s = self._backoff.next_s(), (retry_ms or 0) / 1000
        if self.was_open and self._backoff.is_first:
            self._settled.clear()  # the stream will be back in a moment, and calls had better wait for it
        self._hurry.clear()
        await asyncio.sleep(least_s)
        try:
            async with asyncio.timeout(max(0.0, pause_s - least_s)):
                await self._hurry.wait()
        except TimeoutError:
            return
