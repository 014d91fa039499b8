"""One endpoint for modern clients, in front of one upstream: a raw ASGI application.

The order of a request: head, principal, body, ladder, upstream, reply. Every failure that is foreseen becomes a reply
in one place; any other is `-32603` with an id that is also in the log.
"""

import asyncio
import secrets
import time
from collections.abc import Sequence
from typing import Final, Protocol

import structlog
from starlette.types import Receive, Scope, Send

from gateway.core.affinity import affinity_of
from gateway.core.front_door import FrontDoor, Headers, body_too_large, check_head, cors_headers, preflight
from gateway.core.inbound import validate
from gateway.core.inbound_params import check_params
from gateway.core.inbound_request import InboundError, InboundNotification, InboundRequest, shown
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller, Principal
from gateway.errors import ErrorReply, GatewayError, ProtocolError, UpstreamError, to_reply
from gateway.server.gate import Gate
from gateway.server.replies import ClientReply, RawHeaders, ReplyTimes, send_empty, send_json, to_raw
from gateway.server.tally import Tally
from gateway.wire import codes, methods
from gateway.wire.jsonrpc import JsonObject, RequestId, encode, error_object, error_response

log = structlog.get_logger()

CLIENT_LEFT: Final = 499
"""The status in the log for a request whose client did not wait for the reply."""

STOPPING: Final = 503
"""Likewise, for one that was cut short because the gateway stops."""

_NOTHING: Final[dict[str, object]] = {}
_NAMED: Final = (methods.TOOLS_CALL, methods.PROMPTS_GET)
_AUTHORIZATION: Final = b"authorization"
_OPTIONS: Final = "OPTIONS"


class ClientStream(Protocol):
    """Where an upstream sends notifications while it serves a request."""

    async def notify(self, notification: JsonObject) -> None:
        """Send one to the client."""


class Upstream(Protocol):
    """What an endpoint stands in front of. Cancelling `serve` cancels the request upstream."""

    @property
    def name(self) -> str:
        """The configured name."""

    def admits(self, principal: Principal) -> bool:
        """Whether a principal may use it."""

    async def serve(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        """Serve one request. Raises GatewayError."""


class Authenticator(Protocol):
    """Names the principal of a request."""

    def authenticate(self, headers: Headers) -> Principal:
        """Raises ProtocolError with 401."""

    def takes_authorization(self, headers: Headers) -> bool:
        """Whether the `Authorization` of a request is for the gateway itself, so that nobody else gets it."""


class ClientGone(Exception):  # noqa: N818 -- not an error: there is nobody left to tell
    """The client closed the connection before its request was complete."""


class Endpoint:
    """An ASGI application for one path.

    Args:
        upstream: what it stands in front of.
        door: who may knock.
        authenticator: who is who.
        times: when to break the silence.
        gate: whether new requests are let in.
        affinity: the headers, in lower case, by which sessions of the upstream are chosen.

    Attributes:
        tally: what has been requested so far.
    """

    def __init__(
        self,
        upstream: Upstream,
        door: FrontDoor,
        authenticator: Authenticator,
        times: ReplyTimes,
        gate: Gate,
        affinity: Sequence[bytes] = (),
    ) -> None:
        self.tally = Tally()
        self._gate = gate
        self._upstream = upstream
        self._door = door
        self._authenticator = authenticator
        self._times = times
        self._affinity = affinity

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        started_s = time.perf_counter()
        headers = Headers(scope["headers"])
        method: str = scope["method"]
        request_id: RequestId | None = None
        cors = to_raw(cors_headers(headers, self._door))
        try:
            if method == _OPTIONS:
                await send_empty(send, 204, to_raw(preflight(headers, self._door)))
                return
            check_head(method, headers, self._door)
            principal = self._authenticate(headers)
            body = await self._read_body(receive)
            message = validate(headers, body)
            if isinstance(message, InboundNotification):
                await send_empty(send, 202, cors)
                self._log(started_s, 202, rpc_method=shown(message.method), principal=principal.name)
                return
            request_id = message.id
            check_params(message)
            self._gate.check(message)
            affinity = affinity_of(headers, self._affinity) if self._affinity else None
        except ClientGone:
            self._log(started_s, CLIENT_LEFT)
            return
        except ProtocolError as error:
            request_id = error.request_id if isinstance(error, InboundError) else request_id
            await self._refuse(send, error, request_id, cors, started_s)
            return
        caller = Caller(principal, self._authorization(headers), affinity)
        await self._serve(message, caller, ClientReply(message.id, receive, send, cors, self._times), started_s)

    async def _serve(self, request: InboundRequest, caller: Caller, reply: ClientReply, started_s: float) -> None:
        status, told = STOPPING, _NOTHING
        try:
            outcome, reason = await self._reply(request, caller, reply)
            status = 200 if reply.is_stream else outcome.status
            told = {**_told(outcome), "reason": reason}
        except asyncio.CancelledError:
            if not reply.has_left:
                await reply.finish(_cut_short())
                raise
            status, told = CLIENT_LEFT, _NOTHING
            _uncancel()
        finally:
            reply.close()
            about = {"rpc_method": request.method, "target": _loggable_target(request)}
            self._log(started_s, status, **about, principal=caller.principal.name, **told, stream=reply.is_stream)

    async def _reply(self, request: InboundRequest, caller: Caller, reply: ClientReply) -> tuple[Outcome, str | None]:
        outcome, reason = await self._outcome(request, caller, reply)
        try:
            await reply.finish(outcome)
        except ValueError:  # more can be read than can be written: the depth of nesting has two limits
            name = self._upstream.name
            error = UpstreamError(name, "nonsense", f"Upstream {name!r} sent a result that is nested too deeply")
            outcome, reason = Outcome.of_error(to_reply(error)), error.reason
            await reply.finish(outcome)
        return outcome, reason

    async def _outcome(self, request: InboundRequest, caller: Caller, reply: ClientReply) -> tuple[Outcome, str | None]:
        """What the request came to, and a word for the log if it failed on the gateway's side."""
        try:
            return await self._upstream.serve(request, caller, reply), None
        except GatewayError as error:
            return Outcome.of_error(to_reply(error)), getattr(error, "reason", None)
        except Exception:
            return Outcome.of_error(_unforeseen(self._upstream.name, request.method)), "unforeseen"

    def _authenticate(self, headers: Headers) -> Principal:
        principal = self._authenticator.authenticate(headers)
        if not self._upstream.admits(principal):
            raise ProtocolError(
                codes.INVALID_REQUEST,
                f"{principal.name} may not use upstream {self._upstream.name!r}",
                status=403,
                headers=(("www-authenticate", 'Bearer error="insufficient_scope"'),),
            )
        return principal

    def _authorization(self, headers: Headers) -> str | None:
        value = headers.get(_AUTHORIZATION)
        if value is None or headers.is_repeated(_AUTHORIZATION) or self._authenticator.takes_authorization(headers):
            return None
        return value.decode("latin-1")

    async def _read_body(self, receive: Receive) -> bytes:
        message = await receive()
        body: bytes = message.get("body", b"")
        if not message.get("more_body", False):
            if message["type"] == "http.disconnect":
                raise ClientGone
            if len(body) > self._door.max_body_bytes:
                raise body_too_large(self._door)
            return body
        chunks, size = [body], len(body)
        while message.get("more_body", False):
            if size > self._door.max_body_bytes:
                raise body_too_large(self._door)
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
        if size > self._door.max_body_bytes:
            raise body_too_large(self._door)
        return b"".join(chunks)

    async def _refuse(
        self, send: Send, error: ProtocolError, request_id: RequestId | None, cors: RawHeaders, started_s: float
    ) -> None:
        reply: ErrorReply = to_reply(error)
        body = encode(error_response(request_id, reply.error))
        await send_json(send, reply.status, body, [*cors, *to_raw(reply.headers)])
        self._log(started_s, reply.status, code=error.code, reason=error.reason or error.message)
        if error.code == codes.HEADER_MISMATCH and isinstance(error.data, dict):
            log.debug(
                "header mismatch", upstream=self._upstream.name, **error.data
            )  # a URI, perhaps: for debugging only

    def _log(self, started_s: float, status: int, **told: object) -> None:
        """The one line that the log has for a request; members that are None do not show."""
        ms = _elapsed_ms(started_s)
        self.tally.note(told.get("rpc_method"), status, ms, told.get("result"), is_error="code" in told)
        log.info("request", upstream=self._upstream.name, status=status, **told, ms=ms)


def _loggable_target(request: InboundRequest) -> str | None:
    """The name of a tool or prompt; a URI may hold what nobody should log."""
    return shown(request.target) if request.method in _NAMED else None


def _told(outcome: Outcome) -> dict[str, object]:
    """What the log tells of an outcome: the code of an error, or the kind of a result."""
    error, result = outcome.body.get("error"), outcome.body.get("result")
    if isinstance(error, dict):
        return {"code": error.get("code")}
    return {"result": shown(result.get("resultType"))} if isinstance(result, dict) else {}


def _elapsed_ms(started_s: float) -> float:
    return round((time.perf_counter() - started_s) * 1000, 2)


def _uncancel() -> None:
    """The cancellation did its work: it ended the request whose client has left."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


def _cut_short() -> Outcome:
    """What a client is told whose request takes longer than the gateway has at shutdown."""
    data = {"reason": "shutting_down", "retryable": False}
    text = "The gateway is shutting down: the outcome of the request is unknown"
    return Outcome({"error": error_object(codes.INTERNAL_ERROR, text, data)}, STOPPING)


def _unforeseen(upstream: str, method: str) -> ErrorReply:
    error_id = secrets.token_hex(8)
    log.exception("unforeseen failure", upstream=upstream, rpc_method=method, error_id=error_id)
    return ErrorReply(500, error_object(codes.INTERNAL_ERROR, "Internal error", {"errorId": error_id}))
