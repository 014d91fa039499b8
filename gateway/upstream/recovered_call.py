"""A call that another process left when it died: it begins where the reading of the server's stream ended.

Rule: the answers of the retry are delivered unless the server has had them. Where nobody knows, it is heard first.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.core.exchange import Exchange
from gateway.core.exchange_events import Answered, Asked, Event, Leg, Responded
from gateway.core.recovery import RecoveryPoint
from gateway.upstream.background import Background
from gateway.upstream.call_clock import CallLimits
from gateway.upstream.client_leg import Ending
from gateway.upstream.client_stream import ClientStream
from gateway.upstream.legacy_call import LegacyCall
from gateway.upstream.legacy_session import LegacySession

HEARING_S: Final = 1.0
"""How long a server is heard that may have had its answers."""


class RecoveredCall(LegacyCall):
    """One call on an adopted session; `recover` goes on with it.

    Args:
        session: adopted for this call.
        exchange: as it was when the call began; it is put where the other process left it.
        point: where that is.
        limits: how long the rest may take.
        background: where work goes that nobody waits for.
        release: as for any call.
    """

    def __init__(
        self,
        session: LegacySession,
        exchange: Exchange,
        point: RecoveryPoint,
        limits: CallLimits,
        background: Background,
        release: Callable[[LegacyCall, bool], None],
    ) -> None:
        super().__init__(session, exchange, {}, limits, background, release)
        exchange.restore(point.standing)
        self.resumption.start_at(point.event_id, point.retry_ms)
        self._has_news = asyncio.Event()
        self._driver.watch = self._note_news

    @property
    def has_picked_up(self) -> bool:
        """Whether there was anything on a stream of the server that was picked up."""
        return self.resumption.has_heard

    async def recover(
        self, leg: Leg, client: ClientStream, on_posted: Callable[[], Awaitable[None]], *, is_posted: bool | None
    ) -> Ending:
        """Go on with the answers of a retry, already checked and claimed, and wait for the end of this leg.

        Args:
            leg: the retry.
            client: where notifications go.
            on_posted: called when the server has taken the answers.
            is_posted: whether it had taken them before. None: nobody knows; if it has, it may well have gone on since,
                so its stream is heard first, for `HEARING_S`.
        """
        self._leg.enter(leg, client)
        leg_ended = self._leg.ended()
        self._driver.clock.pause()
        self._running = self._background.run(self._run_detached())
        return await self._until_leg_ends(self._recover(leg, leg_ended, on_posted, is_posted))

    async def _recover(
        self,
        leg: Leg,
        leg_ended: asyncio.Future[Ending],
        on_posted: Callable[[], Awaitable[None]],
        is_posted: bool | None,
    ) -> Ending:
        if is_posted is None:
            is_posted = await self._has_gone_on()
        if leg_ended.done():
            return leg_ended.result()
        self._driver.clock.resume()
        return await self._go_on(Answered(leg, is_delivered=is_posted), leg_ended, on_posted)

    async def _has_gone_on(self) -> bool:
        """Whether the server has gone on since it asked what is open: it answered the call, asked more, or is gone."""
        self.resumption.wanted.set()
        try:
            async with asyncio.timeout(self.resumption.pause_s + HEARING_S):
                await self._has_news.wait()
        except TimeoutError:
            return False
        return True

    async def _run(self) -> None:
        try:
            await super()._run()
        finally:
            self._has_news.set()

    async def _converse(self) -> None:
        await self._reading().go_on()

    def _note_news(self, event: Event) -> None:
        """Take note of what shows that the server has gone on; it may report progress and logs while it waits."""
        if isinstance(event, Responded) or (isinstance(event, Asked) and not self.exchange.has_seen(event)):
            self._has_news.set()
