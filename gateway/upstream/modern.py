"""A modern upstream: each request goes through by itself, and its answer streams back as it comes.

Rule: a request is sent once. There is nothing to resume: a stream that breaks has lost its request (2026-07-28,
basic/transports/streamable-http), and the client that leaves cancels it by the closing of the upstream's response.
"""

import asyncio
import itertools
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from gateway.core import era
from gateway.core.era import Modern
from gateway.core.inbound_request import InboundRequest
from gateway.core.modern_answer import (
    COMPLETE,
    INPUT_REQUIRED,
    Policy,
    result_type,
    to_error_outcome,
    to_result_outcome,
)
from gateway.core.modern_call import UNSERVED_EXTENSIONS, ModernCall
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller
from gateway.errors import UpstreamError
from gateway.upstream import faults
from gateway.upstream.era import CLIENT_INFO, read_answer
from gateway.upstream.refusal import UpstreamRefused
from gateway.upstream.transport import Answer, Transport
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject, decode, encode

log = structlog.get_logger()

_OVERLOADED: Final = (429, 503)


class ClientStream(Protocol):
    """Where notifications for the client go, while it is being served."""

    async def notify(self, notification: JsonObject) -> None:
        """Send a notification on the stream of the client's request."""


Seal = Callable[[InboundRequest, Caller, str | None], str]
"""Makes a token of the gateway's out of a server's `requestState` (None: it sent none), bound to request and caller."""

Unseal = Callable[[InboundRequest, Caller], str | None]
"""Gives the server's state back out of `request.request_state`; raises ProtocolError for a token that is not valid."""


@dataclass(frozen=True, slots=True)
class ModernOptions:
    """How one modern upstream is to be treated.

    Args:
        timeout_s: without any message from the server.
        max_duration_s: in all; subscriptions are exempt.
        passes_authorization: whether the credentials are the caller's own, so that a 401 or 403 is the caller's too.
        ttl_ms: the `ttlMs` of a cacheable result to which the server gave none.
        cache_scope: likewise, its `cacheScope`.
    """

    timeout_s: float = 60.0
    max_duration_s: float = 600.0
    passes_authorization: bool = False
    ttl_ms: int = 0
    cache_scope: str = "private"


class ModernUpstream:
    """An upstream that speaks 2026-07-28.

    Args:
        http: the connections to the server.
        credentials: the headers that carry the credential for a caller's request.
        seal: see `Seal`.
        unseal: see `Unseal`.
        doubt: called when an answer shows that the server is not modern, or no longer.
        options: how it is to be treated.
        discover_result: what the server told of itself, if it was asked already.
    """

    def __init__(
        self,
        http: Transport,
        *,
        credentials: Callable[[Caller], Awaitable[Mapping[str, str]]],
        seal: Seal,
        unseal: Unseal,
        doubt: Callable[[], object],
        options: ModernOptions,
        discover_result: JsonObject | None = None,
    ) -> None:
        self.name = http.name
        self._http = http
        self._credentials = credentials
        self._seal = seal
        self._unseal = unseal
        self._doubt = doubt
        self._options = options
        self._extensions = None if discover_result is None else _extensions_of(discover_result)
        self._prefix = f"era-{secrets.token_hex(6)}-"
        self._sequence = itertools.count(1)

    async def serve(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        """Take a request through. Cancelling this cancels it at the server.

        Raises:
            ProtocolError: its `requestState` is not valid.
            UpstreamError: the server is unreachable, too slow, broke off, or did not answer as a modern server does.
        """
        state = None if request.request_state is None else self._unseal(request, caller)
        call = ModernCall(request, f"{self._prefix}{next(self._sequence)}", state)
        headers = {**await self._credentials(caller), **call.headers()}
        try:
            message = await self._within_limits(call, headers, client)
            return await self._to_outcome(call, message, caller, headers)
        except UpstreamRefused as refused:
            return refused.to_outcome(request, self.name, is_callers=self._options.passes_authorization)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    # --- the way there and back ---

    async def _within_limits(self, call: ModernCall, headers: Mapping[str, str], client: ClientStream) -> JsonObject:
        """The response, in time."""
        clock = _Clock(self._options.timeout_s, self._options.max_duration_s)
        try:
            async with clock.timeout:
                reply = await self._send(call, headers)
                try:
                    message = await self._read(call, reply, client, clock)
                except BaseException:
                    reply.close()
                    raise
                reply.finish()
                return message
        except TimeoutError:
            if not clock.timeout.expired():
                raise
            raise UpstreamError(self.name, "timeout", f"Upstream {self.name!r} {clock.complaint}") from None

    async def _send(self, call: ModernCall, headers: Mapping[str, str]) -> Answer:
        """Send the request; a second time only if the server turned it away for the moment, and it is a mere look."""
        body = encode(call.message())
        reply = await self._http.post(body, headers)
        if reply.status in _OVERLOADED and call.request.method in methods.CACHEABLE:
            pause_s = faults.retry_after_s(reply.headers)
            if pause_s is not None and pause_s < self._options.timeout_s:
                reply.close()
                await asyncio.sleep(pause_s)
                reply = await self._http.post(body, headers)
        return reply

    async def _read(self, call: ModernCall, reply: Answer, client: ClientStream, clock: "_Clock") -> JsonObject:
        if reply.kind == "sse":
            message = await self._read_stream(call, reply, client, clock)
        else:
            message = await self._read_body(call, reply)
        if reply.status == 401 or (reply.status == 403 and (self._options.passes_authorization or message is None)):
            raise _refusal(reply, message)
        if era.is_foreign_refusal(reply.status, message, call.id):
            self._doubt()
            raise faults.nonsense(
                self.name, f"refused the request as a server of another era does (HTTP {reply.status})"
            )
        if message is None:
            raise faults.no_answer(self.name, reply.status, reply.headers)
        return message

    async def _read_body(self, call: ModernCall, reply: Answer) -> JsonObject | None:
        if reply.kind != "json":
            return None
        try:
            message: Json = decode(await reply.read_message_bytes())
        except ValueError:
            return None
        return message if call.is_response(message, is_alone=True) else None

    async def _read_stream(
        self, call: ModernCall, reply: Answer, client: ClientStream, clock: "_Clock"
    ) -> JsonObject | None:
        async for event in reply.events():
            try:
                message: Json = decode(event.data)
            except ValueError:
                raise faults.nonsense(self.name, "sent an event that is not JSON") from None
            if call.is_response(message):
                return message  # type: ignore[no-any-return]
            notification = call.relay(message)
            if notification is not None:
                clock.wait_for_client(is_endless=call.is_acknowledged)
                await client.notify(notification)
            clock.wait_for_server(is_endless=call.is_acknowledged)
        if reply.status == 200:
            raise faults.broken_stream(self.name)
        return None

    # --- the answer ---

    async def _to_outcome(
        self, call: ModernCall, message: JsonObject, caller: Caller, headers: Mapping[str, str]
    ) -> Outcome:
        result = message.get("result")
        if "error" in message:
            return to_error_outcome(call.request, message["error"])
        if not isinstance(result, dict):
            raise faults.nonsense(self.name, "sent a result that is not an object")
        if call.request.method == methods.DISCOVER:
            self._extensions = _extensions_of(result)
        if result_type(result) not in (COMPLETE, INPUT_REQUIRED) and not await self._share_extension(call, headers):
            raise faults.nonsense(self.name, "sent a result of a type that is not of 2026-07-28")
        try:
            return to_result_outcome(call.request, result, self._policy(call.request, caller))
        except ValueError as fault:
            if call.request.method == methods.DISCOVER:
                self._doubt()
            raise faults.nonsense(self.name, str(fault)) from fault

    def _policy(self, request: InboundRequest, caller: Caller) -> Policy:
        return Policy(
            ttl_ms=self._options.ttl_ms,
            cache_scope=self._options.cache_scope,
            seal=lambda state: self._seal(request, caller, state),
            warn=lambda text: log.warning("upstream list", upstream=self.name, warning=text),
        )

    async def _share_extension(self, call: ModernCall, headers: Mapping[str, str]) -> bool:
        """Whether client and server declared an extension in common: its results may be of types of its own."""
        declared = _extensions_of(call.request.capabilities)
        if not declared:
            return False
        if self._extensions is None:
            self._extensions = await self._ask_extensions(headers)
        return not declared.isdisjoint(self._extensions)

    async def _ask_extensions(self, headers: Mapping[str, str]) -> frozenset[str]:
        probe_headers, message = era.probe_request(CLIENT_INFO)
        try:
            async with asyncio.timeout(self._options.timeout_s):
                reply = await self._http.post(encode(message), {**headers, **probe_headers})
                try:
                    verdict = era.verdict(reply.status, reply.headers, await read_answer(reply))
                finally:
                    reply.finish()
        except (TimeoutError, UpstreamError):
            return frozenset()
        return _extensions_of(verdict.discover_result or {}) if isinstance(verdict, Modern) else frozenset()


class _Clock:
    """The two limits of a call in one timeout: silence, and the whole."""

    def __init__(self, timeout_s: float, max_duration_s: float) -> None:
        self._timeout_s = timeout_s
        self._max_duration_s = max_duration_s
        self._loop = asyncio.get_running_loop()
        self._ends_s = self._loop.time() + max_duration_s
        self.timeout = asyncio.timeout(min(timeout_s, max_duration_s))

    def wait_for_server(self, *, is_endless: bool) -> None:
        """The server said something, and is to say more."""
        self.timeout.reschedule(None if is_endless else min(self._loop.time() + self._timeout_s, self._ends_s))

    def wait_for_client(self, *, is_endless: bool) -> None:
        """It is no fault of the server that the client reads slowly."""
        self.timeout.reschedule(None if is_endless else self._ends_s)

    @property
    def complaint(self) -> str:
        """What the server did, after the timeout."""
        if self._loop.time() >= self._ends_s:
            return f"did not finish within {self._max_duration_s:g} s"
        return f"was silent for {self._timeout_s:g} s"


def _extensions_of(value: JsonObject) -> frozenset[str]:
    """The extensions that the gateway serves, of capabilities or of a discover result."""
    capabilities = value.get("capabilities", value)
    extensions = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    return frozenset(extensions) - UNSERVED_EXTENSIONS if isinstance(extensions, dict) else frozenset()


def _refusal(reply: Answer, message: JsonObject | None) -> UpstreamRefused:
    error = message.get("error") if message is not None else None
    challenge = reply.headers.get("WWW-Authenticate")
    return UpstreamRefused(reply.status, challenge, error if isinstance(error, dict) else None)
