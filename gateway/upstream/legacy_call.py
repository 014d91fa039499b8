"""One call on a legacy session: the legs in which its clients wait for it, and its conversation with the server.

Strategy: `_run` sends the call and reads the server's stream to the end. On a session that is shared by calls it runs
inside the client's own request. On an exclusive one it is a task of its own, since it outlives the client's request
when the server asks something: `begin` and `answer` then wait for the end of one leg each.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import Final

from gateway.core.exchange import Exchange
from gateway.core.exchange_events import (
    Answered,
    Broke,
    ClientLeft,
    Expired,
    Leg,
    Notified,
    Overtaken,
    Responded,
    TimedOut,
)
from gateway.core.incoming import Changed, Incoming, Pinged
from gateway.errors import GatewayError, UpstreamError
from gateway.upstream.aside import Aside
from gateway.upstream.background import Background
from gateway.upstream.call_clock import CallLimits
from gateway.upstream.call_driver import CallDriver
from gateway.upstream.client_leg import ClientLeg, Ending
from gateway.upstream.client_stream import ClientStream
from gateway.upstream.faults import nonsense
from gateway.upstream.legacy_session import LegacySession, SessionExpired
from gateway.upstream.reading import Reading
from gateway.upstream.refusal import UpstreamRefused
from gateway.upstream.resumption import Resumption
from gateway.wire.jsonrpc import Json, JsonObject

LINGER_S: Final = 0.02
"""How long a result waits for logs and progress that travel on another stream than itself."""


class LegacyCall:
    """One call on one session, from sending it to the last leg.

    Args:
        session: leased for this call.
        exchange: what decides.
        message: the request to send.
        limits: how long it may take.
        background: where work goes that nobody waits for.
        release: called once, with this call and whether the server is done with it, when the session is free.
    """

    def __init__(
        self,
        session: LegacySession,
        exchange: Exchange,
        message: JsonObject,
        limits: CallLimits,
        background: Background,
        release: Callable[["LegacyCall", bool], None],
    ) -> None:
        self.session = session
        self.exchange = exchange
        self._message = message
        self.holds_session = True
        self.resumption = Resumption(session)
        self._background = background
        self._release = release
        self._leg = ClientLeg()
        self._driver = CallDriver(session, exchange, self._leg, self.resumption, limits, background)
        self._was_notified = False
        self._running: asyncio.Task[None] | None = None

    @cached_property
    def _aside(self) -> Aside:
        """Most calls do without, and without the cycle of references that it makes."""
        return Aside(self._take, self._background)

    # --- the legs of a call ---

    async def run(self, leg: Leg, client: ClientStream) -> Ending:
        """Make the whole call within the client's request, on a session where nothing can be asked.

        Raises:
            SessionExpired: nothing was executed; make the call on another session.
            UpstreamRefused: 401 or 403.
        """
        self._leg.enter(leg, client)
        await self._run()
        ending = self._leg.take()
        assert ending is not None  # noqa: S101 -- an exchange that closes says how
        return ending

    async def begin(self, leg: Leg, client: ClientStream) -> Ending:
        """Start the call in a task of its own, and wait for the end of the first leg. Raises like `run`."""
        self._leg.enter(leg, client)
        leg_ended = self._leg.ended()
        self._running = self._background.run(self._run_detached())
        return await self._until_leg_ends(leg_ended)

    async def answer(self, leg: Leg, client: ClientStream, on_posted: Callable[[], Awaitable[None]]) -> Ending:
        """Go on with the answers of a retry, already checked and claimed, and wait for the end of this leg.

        Args:
            leg: the retry.
            client: where notifications go.
            on_posted: called when the server has taken the answers.
        """
        self._leg.enter(leg, client)
        self._driver.clock.resume()
        return await self._until_leg_ends(self._go_on(Answered(leg), self._leg.ended(), on_posted))

    async def _go_on(
        self, answered: Answered, leg_ended: asyncio.Future[Ending], on_posted: Callable[[], Awaitable[None]]
    ) -> Ending:
        await self._driver.on(answered)
        if not (answered.is_delivered or self.exchange.is_closed):
            self._background.run(self._tell_posted(on_posted))
        self._driver.touch()
        return await leg_ended

    async def _tell_posted(self, on_posted: Callable[[], Awaitable[None]]) -> None:
        if await self._driver.outbox.delivered():
            await on_posted()

    async def drop(self, error: GatewayError) -> None:
        """Let go of the call and of its session without a word to the server: another replica goes on with both.

        Args:
            error: what a client is told that waits for it here.
        """
        if self.holds_session or self.session.is_spent:
            self.session.is_dead = self.session.is_forgotten = True
        await self._driver.on(Overtaken(error))
        self._leg.fail(error)
        if self._running is not None:
            self._running.cancel()

    async def expire(self) -> None:
        """Nobody will answer: tell the server, wait until it has heard, and let go of the session."""
        self._driver.take_in(Expired())
        await self._driver.outbox.emptied()

    async def _until_leg_ends(self, leg_end: Awaitable[Ending]) -> Ending:
        try:
            ending = await leg_end
        except asyncio.CancelledError:
            if self.exchange.awaits_client:
                # It left in the very moment in which its questions were ready: nobody has the token to come back with.
                self._driver.take_in(Expired())
            self._client_left()
            raise
        self._leg.take()
        return ending

    def _client_left(self) -> None:
        self._leg.client = None
        if not self.exchange.awaits_client:
            self._driver.take_in(ClientLeft())

    # --- the conversation with the server ---

    async def _run_detached(self) -> None:
        """`_run` as a task: what it raises belongs to the client that waits."""
        try:
            await self._run()
        except (SessionExpired, UpstreamRefused) as error:
            self._leg.fail(error)
        except Exception as error:
            if not self._leg.fail(error):
                self._driver.take_in(Broke(resumable=False, error=self.resumption.unfinished()))
                raise

    async def _run(self) -> None:
        try:
            with self._driver.clock:
                await self._converse()
        except TimeoutError:
            if not (self.exchange.is_closed or self.exchange.awaits_client):
                await self._driver.on(TimedOut(self._driver.clock.complaint(self.session.name)))
        except UpstreamError as error:
            await self._driver.on(Broke(resumable=False, error=error))
        except asyncio.CancelledError:
            self._client_left()
            raise
        finally:
            self._driver.end_gathering()
            self.holds_session = False
            self.session.is_suspect |= not self._driver.has_responded
            if self._driver.has_responded or self._driver.outbox.is_empty:
                self._release(self, self._driver.has_responded)
            else:
                self._background.run(self._release_after_posts())

    async def _release_after_posts(self) -> None:
        """The session of a call that was cut short will be ended: not before the server has heard why."""
        await self._driver.outbox.emptied()
        self._release(self, False)

    async def _converse(self) -> None:
        answer = await self.session.request(self._take_message())
        if isinstance(answer, dict):
            await self._hear(answer)
            if not self._driver.is_done:
                raise nonsense(self.session.name, "answered some other request than the one that was sent")
            return
        await self._reading().read(answer)

    def _reading(self) -> Reading:
        return Reading(self.session, self._driver, self.resumption, self._hear)

    def _take_message(self) -> JsonObject:
        """The request, which is sent once: a suspended call must not hold on to arguments of megabytes."""
        message, self._message = self._message, {}
        return message

    async def _hear(self, message: Json, *, is_repeated: bool = False) -> None:
        """Take a message from the call's own stream; a notification only once, whatever a resumed stream repeats."""
        is_own_stream = not self.resumption.has_begun
        incoming = self.session.hearing.sort(message, self.exchange.request_id, is_own_stream=is_own_stream)
        if isinstance(incoming, Responded):
            await self._linger()
            await self._driver.carry_out(self._driver.take_in(incoming, is_reader=True))
            return
        self._driver.touch()
        if incoming is not None and not (is_repeated and isinstance(incoming, Notified)):
            await self._take(incoming)

    async def hear_aside(self, incoming: Incoming) -> None:
        """Take a message that came on the session's GET stream while this call holds the session."""
        self._driver.touch()
        if self.session.is_exclusive or not isinstance(incoming, Notified):
            await self._take(incoming)
        else:
            self._aside.put(incoming)

    async def _take(self, incoming: Incoming) -> None:
        if isinstance(incoming, (Pinged, Changed)):
            return
        if isinstance(incoming, Responded):
            await self._linger()
        else:
            self._was_notified = True
        await self._driver.on(incoming)
        await self._driver.outbox.has_room()  # a flood of questions is answered at the pace at which answers are taken

    async def _linger(self) -> None:
        """Give notifications on the GET stream, which are not ordered with the result, a moment to arrive."""
        listener = self.session.listener
        if not self._leg.wants_notifications or listener is None or not listener.is_open:
            return
        if self.session.hears_notifications or not self._was_notified:
            self._driver.touch()
            await asyncio.sleep(LINGER_S)
