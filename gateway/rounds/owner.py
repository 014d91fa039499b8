"""The side of a relay that has the suspended call: serves retries that landed on other replicas.

Rule: a retry is served once. If its relayer falls silent the call goes on, and its end is kept for a while: the client
sends the same retry again, to whatever replica, and is given the end of the call instead of a second call.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

import structlog

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller
from gateway.core.relay import (
    Cancel,
    Done,
    Ended,
    FromRelayer,
    Message,
    Serve,
    Still,
    Unknown,
    Working,
    end_of_error,
    end_of_outcome,
)
from gateway.core.request_state import refused
from gateway.errors import GatewayError, ProtocolError
from gateway.rounds.relayed import RelayedCall
from gateway.rounds.relayer import ClientStream, Send, unanswered
from gateway.store.down import StoreDown
from gateway.wire import codes
from gateway.wire.jsonrpc import JsonObject

log = structlog.get_logger()

_KEPT_S: Final = 30.0
_MOST_KEPT_BYTES: Final = 33_554_432
_PAUSE_S: Final = 0.25
"""Between attempts to reach a store that is down."""

ServeUpstream: TypeAlias = Callable[[str, InboundRequest, Caller, ClientStream], Awaitable[Outcome]]
"""Serves a request of an upstream by name. Raises GatewayError."""


class Owner:
    """The calls of this replica that others relay.

    Args:
        send: puts a message into a replica's inbox.
        serve: serves a request.
        run: runs work in the background.
        now_s: a monotonic clock.
    """

    def __init__(
        self,
        send: Send,
        serve: ServeUpstream,
        run: Callable[..., asyncio.Task[None]],
        now_s: Callable[[], float],
    ) -> None:
        self._send = send
        self._serve = serve
        self._run = run
        self._now_s = now_s
        self._calls: dict[str, RelayedCall] = {}
        self._by_handle: dict[str, RelayedCall] = {}
        self._attaching: set[str] = set()
        self._left: dict[str, float] = {}

    def __len__(self) -> int:
        """Those whose end is not known yet, or may not have been told."""
        return sum(not call.is_ended or not call.is_given_up for call in self._calls.values())

    def knows(self, handle: str) -> bool:
        """Whether a relayed retry has claimed a round, and its end may still be wanted."""
        return handle in self._by_handle

    def note_claimed(self, call: RelayedCall) -> None:
        """A relayed retry has claimed its round: every other copy of it is to have the same end."""
        if self._calls.get(call.relay) is call:
            self._by_handle[call.handle] = call

    def receive(self, message: FromRelayer) -> None:
        """Take in what a relayer says."""
        match message:
            case Serve():
                self._take(message)
            case Still():
                self._note_still(message)
            case Cancel():
                self._cancel(message.relay)
            case Done():
                for relay in message.relays:
                    self._forget(relay)

    def sweep(self) -> None:
        """Forget what has been kept for long enough, and the oldest of what is too much."""
        kept = [call for call in self._calls.values() if call.is_ended]
        size = sum(call.size for call in kept)
        for call in kept:
            if call.kept_s > _KEPT_S or size > _MOST_KEPT_BYTES:
                size -= call.size
                self._forget(call.relay)
        now_s = self._now_s()
        self._left = {relay: left_s for relay, left_s in self._left.items() if now_s - left_s < _KEPT_S}

    # --- what a relayer says ---

    def _take(self, serve: Serve) -> None:
        if serve.relay in self._left or serve.relay in self._attaching:
            return
        if (call := self._calls.get(serve.relay)) is not None:
            self._run(self._repeat(call))
        elif (call := self._by_handle.get(serve.handle)) is not None:
            self._attaching.add(serve.relay)
            self._run(self._attach(call, serve))
        else:
            self._begin(serve)

    def _begin(self, serve: Serve) -> None:
        try:
            call = RelayedCall(serve, self._send, self._now_s)
        except ValueError as error:
            log.warning("retry relayed by a gateway of another version", error=str(error))
            self._run(self._tell(Ended(serve.relay, end_of_error(unanswered())), serve.relayer))
            return
        self._calls[serve.relay] = call
        call.task = self._run(self._work(call))

    def _note_still(self, still: Still) -> None:
        call = self._calls.get(still.relay)
        if call is not None:
            call.note_still(still.taken, is_idle=still.is_idle)
            self._run(self._repeat(call))
        elif still.relay in self._attaching:
            self._run(self._tell(Working(still.relay), still.relayer))
        else:
            self._run(self._tell(Unknown(still.relay), still.relayer))

    def _cancel(self, relay: str) -> None:
        self._left[relay] = self._now_s()  # should its `Serve` come later, on another connection to the store
        call = self._calls.get(relay)
        if call is not None and call.task is not None:
            call.task.cancel()
            self._forget(relay)

    def _forget(self, relay: str) -> None:
        call = self._calls.pop(relay, None)
        if call is not None and self._by_handle.get(call.handle) is call:
            del self._by_handle[call.handle]

    # --- serving ---

    async def _work(self, call: RelayedCall) -> None:
        try:
            call.end_with(await self._end_of(call))
        except Exception:
            error_id = secrets.token_hex(8)
            log.exception("unforeseen failure", upstream=call.upstream, error_id=error_id)
            call.end_with(end_of_error(_unforeseen(error_id)))
        await self._report(call)

    async def _end_of(self, call: RelayedCall) -> JsonObject:
        try:
            return end_of_outcome(await self._serve(call.upstream, call.request, call.caller, call))
        except GatewayError as error:
            return end_of_error(error)

    async def _report(self, call: RelayedCall) -> None:
        """Send the end of a call, as long as its relayer may be waiting for it."""
        while not call.is_given_up:
            try:
                await self._send(call.ended(), call.relayer)
                return
            except StoreDown:
                await asyncio.sleep(_PAUSE_S)

    async def _repeat(self, call: RelayedCall) -> None:
        """Answer a relayer that shows itself: it may have missed something."""
        await self._tell(call.ended() if call.is_ended else Working(call.relay), call.relayer)

    async def _attach(self, call: RelayedCall, serve: Serve) -> None:
        """A second copy of a retry: it is a client that comes back if the first relayer has fallen silent."""
        try:
            is_free = await self._falls_silent(call)
        finally:
            self._attaching.discard(serve.relay)
        if serve.relay in self._left:
            return
        if not is_free:
            await self._tell(Ended(serve.relay, end_of_error(refused("used or expired"))), serve.relayer)
            return
        del self._calls[call.relay]
        call.attach(serve)
        self._calls[serve.relay] = call
        await self._repeat(call)

    async def _falls_silent(self, call: RelayedCall) -> bool:
        """Whether a call is given up by its relayer, and by whoever is given it next, who may have died as well."""
        relay, seen_s = call.relay, call.seen_s
        while not call.is_given_up:
            await asyncio.sleep(_PAUSE_S)
            if call.relay != relay:
                relay, seen_s = call.relay, call.since_s
            elif call.seen_s > seen_s:
                return False
        return self._calls.get(call.relay) is call

    async def _tell(self, message: Message, recipient: str) -> None:
        try:
            await self._send(message, recipient)
        except StoreDown:
            return  # the relayer asks again


def _unforeseen(error_id: str) -> ProtocolError:
    return ProtocolError(codes.INTERNAL_ERROR, "Internal error", {"errorId": error_id}, status=500, reason="unforeseen")
