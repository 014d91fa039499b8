"""Tells the exchange of one call what happened, and carries out what it decides; the clock of the call is here too.

Rule: everything that is decided is decided in `core.exchange`. What the server is to hear is sent at once and in order.
"""

from collections.abc import Callable
from functools import cached_property

from gateway.core.exchange import Exchange
from gateway.core.exchange_events import (
    Broke,
    Command,
    Complete,
    Event,
    Fail,
    Gather,
    Post,
    Quieted,
    Relay,
    RequireInput,
    Responded,
    Resume,
)
from gateway.errors import UpstreamError
from gateway.upstream.background import Background
from gateway.upstream.call_clock import CallClock, CallLimits, QuietTime
from gateway.upstream.client_leg import ClientLeg
from gateway.upstream.legacy_session import LegacySession
from gateway.upstream.outbox import Outbox
from gateway.upstream.resumption import Resumption
from gateway.wire.jsonrpc import JsonObject


class CallDriver:
    """Drives the exchange of one call.

    Args:
        session: where the server hears what is said to it.
        exchange: what decides.
        leg: where the client is told things.
        resumption: what picks up a broken stream.
        limits: how long the call may take.
        background: where work goes that nobody waits for.

    Attributes:
        clock: limits the conversation with the server.
        has_responded: whether the server has answered the call.
        watch: told of each event before the exchange is, if anybody wants to know.
    """

    def __init__(
        self,
        session: LegacySession,
        exchange: Exchange,
        leg: ClientLeg,
        resumption: Resumption,
        limits: CallLimits,
        background: Background,
    ) -> None:
        self.clock = CallClock(limits)
        self.has_responded = False
        self.watch: Callable[[Event], None] | None = None
        self._session = session
        self._exchange = exchange
        self._leg = leg
        self._resumption = resumption
        self._limits = limits
        self._background = background
        self._quiet: QuietTime | None = None

    @cached_property
    def outbox(self) -> Outbox:
        """What goes to the server. Most calls do without, and without the cycle of references that it makes."""
        return Outbox(self._session, self._limits.timeout_s, self._background, self._break_off)

    @property
    def is_done(self) -> bool:
        """Whether there is nothing more to hear from the server."""
        return self.has_responded or self._exchange.is_closed

    async def on(self, event: Event) -> None:
        """Take in what happened, and do all that follows."""
        await self.carry_out(self.take_in(event))

    def take_in(self, event: Event, *, is_reader: bool = False) -> list[Command]:
        """Let the exchange decide, and send at once what the server is to hear; the rest is left to carry out.

        Args:
            event: what happened.
            is_reader: whether this is the reading of the call's stream itself, which knows when to stop.
        """
        if self.watch is not None:
            self.watch(event)
        self.has_responded |= isinstance(event, Responded)
        commands = self._exchange.receive(event)
        posts = [command for command in commands if isinstance(command, Post)]
        if posts:
            self.outbox.send(posts)
        if self.is_done and not is_reader:
            self.end_gathering()
            self.clock.stop()
        return commands

    async def carry_out(self, commands: list[Command]) -> None:
        """Do what the exchange decided, but for what `take_in` has sent."""
        for command in commands:
            await self._do(command)

    def touch(self) -> None:
        """The server gave a sign of life."""
        if not (self._exchange.awaits_client or self._exchange.is_closed):
            self.clock.touch()

    def end_gathering(self) -> None:
        """No further question is waited for."""
        if self._quiet is not None:
            self._quiet.cancel()

    async def _do(self, command: Command) -> None:
        match command:
            case Relay():
                await self._relay(command.notification)
            case Gather():
                self._gather()
            case Resume():
                self._resumption.wanted.set()
            case RequireInput():
                self.clock.pause()
                self._leg.end(command)
            case Complete() | Fail():
                self._leg.end(command)
            case Post():
                pass  # sent together, in order

    async def _relay(self, notification: JsonObject) -> None:
        if (client := self._leg.client) is not None:
            self.clock.wait_for_client()
            await client.notify(notification)
            self.touch()

    async def _break_off(self, error: UpstreamError) -> None:
        """The server cannot be told what it must know."""
        await self.on(Broke(resumable=False, error=error))

    def _gather(self) -> None:
        if self._quiet is None:
            self._quiet = QuietTime(self._limits, self._end_quiet)
        self._quiet.start()

    def _end_quiet(self) -> None:
        self._background.run(self.on(Quieted()))
