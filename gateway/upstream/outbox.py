"""What a call sends to its server beside the request: answers, refusals, the cancellation; in order, and in sight."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.core.exchange_events import Post
from gateway.errors import UpstreamError
from gateway.upstream.background import Background
from gateway.upstream.legacy_session import LegacySession, SessionExpired
from gateway.wire.jsonrpc import JsonObject

LAST_WORDS_S: Final = 5.0
"""How long a server may take over the messages that end a call, before its session is ended in any case."""

MOST: Final = 32
"""How many messages of one call may be under way before nothing more of its stream is read."""


class Outbox:
    """The messages of one call that are under way.

    Args:
        session: where they go.
        timeout_s: how long the server may take over each.
        background: where they are sent from.
        on_failure: told when the server cannot be told.
    """

    def __init__(
        self,
        session: LegacySession,
        timeout_s: float,
        background: Background,
        on_failure: Callable[[UpstreamError], Awaitable[None]],
    ) -> None:
        self._session = session
        self._timeout_s = timeout_s
        self._background = background
        self._on_failure = on_failure
        self._sending: set[asyncio.Task[None]] | None = None
        self._has_failed = False

    @property
    def is_empty(self) -> bool:
        """Whether everything has been sent."""
        return not self._sending

    def send(self, messages: list[Post]) -> None:
        """Send messages in order, without waiting for it."""
        if self._sending is None:
            self._sending = set()
        task = self._background.run(self._send(messages))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def has_room(self) -> None:
        """Return when the server has taken enough of what it was sent to be sent more."""
        while self._sending is not None and len(self._sending) >= MOST:
            await asyncio.wait(self._sending, return_when=asyncio.FIRST_COMPLETED)

    async def emptied(self) -> None:
        """Return when everything has been sent, or would take too long."""
        if self._sending:
            await asyncio.wait(self._sending, timeout=LAST_WORDS_S)

    async def delivered(self) -> bool:
        """Return when nothing is under way any more; False if the server did not take what it must know."""
        while self._sending:
            await asyncio.wait(self._sending)
        return not self._has_failed

    async def _send(self, messages: list[Post]) -> None:
        for message in messages:
            failure = await self._post(message.message)
            if failure is not None and message.is_vital:
                self._has_failed = True
                await self._on_failure(failure)
                return

    async def _post(self, message: JsonObject) -> UpstreamError | None:
        """Send one message; says why it did not arrive."""
        name = self._session.name
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._session.post(message)
        except TimeoutError:
            return UpstreamError(name, "timeout", f"Upstream {name!r} did not take an answer")
        except SessionExpired:
            text = f"Upstream {name!r} forgot the session in the middle of the call"
            return UpstreamError(name, "session_lost", text)
        except UpstreamError as error:
            return error
        return None
