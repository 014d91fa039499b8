"""One endpoint for modern clients, in front of one upstream: a raw ASGI application.

The order of a request: head, principal, body, ladder, upstream, reply. Every failure that is foreseen becomes a reply
in one place; any other is `-32603` with an id that is also in the log.
"""

import asyncio
import secrets
import time
from typing import Final, Protocol

import structlog
from starlette.types import Receive, Scope, Send

from gateway.core.front_door import FrontDoor, Headers, body_too_large, check_head, cors_headers, preflight
from gateway.core.inbound import validate
from gateway.core.inbound_params import check_params
from gateway.core.inbound_request import InboundError, InboundNotification, InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller, Principal
from gateway.errors import ErrorReply, GatewayError, ProtocolError, to_reply
from gateway.server.replies import ClientReply, RawHeaders, ReplyTimes, send_empty, send_json, to_raw
from gateway.wire import codes
from gateway.wire.jsonrpc import JsonObject, RequestId, encode, error_object, error_response

log = structlog.get_logger()

CLIENT_LEFT: Final = 499
"""The status in the log for a request whose client did not wait for the reply."""

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


class ClientGone(Exception):  # noqa: N818 -- not an error: there is nobody left to tell
    """The client closed the connection before its request was complete."""


class Endpoint:
    """An ASGI application for one path.

    Args:
        upstream: what it stands in front of.
        door: who may knock.
        authenticator: who is who.
        times: when to break the silence.
    """

    def __init__(self, upstream: Upstream, door: FrontDoor, authenticator: Authenticator, times: ReplyTimes) -> None:
        self._upstream = upstream
        self._door = door
        self._authenticator = authenticator
        self._times = times

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        started_s = time.perf_counter()
        headers = Headers(scope["headers"])
        method: str = scope["method"]
        request_id: RequestId | None = None
        cors: RawHeaders = []
        try:
            if method == _OPTIONS:
                await send_empty(send, 204, to_raw(preflight(headers, self._door)))
                return
            check_head(method, headers, self._door)
            cors = to_raw(cors_headers(headers, self._door))
            principal = self._authenticate(headers)
            body = await self._read_body(receive)
            message = validate(headers, body)
            if isinstance(message, InboundNotification):
                await send_empty(send, 202, cors)
                return
            request_id = message.id
            check_params(message)
        except ClientGone:
            return
        except ProtocolError as error:
            request_id = error.request_id if isinstance(error, InboundError) else request_id
            await self._refuse(send, error, request_id, cors, started_s)
            return
        caller = Caller(principal, _authorization(headers))
        await self._serve(message, caller, ClientReply(message.id, receive, send, cors, self._times), started_s)

    async def _serve(self, request: InboundRequest, caller: Caller, reply: ClientReply, started_s: float) -> None:
        try:
            outcome = await self._outcome(request, caller, reply)
            await reply.finish(outcome)
            self._log(request, caller, reply, outcome, started_s)
        except asyncio.CancelledError:
            if not reply.has_left:
                raise
            _uncancel()
            left = Outcome({"error": {}}, CLIENT_LEFT)
            self._log(request, caller, reply, left, started_s)
        finally:
            reply.close()

    async def _outcome(self, request: InboundRequest, caller: Caller, reply: ClientReply) -> Outcome:
        try:
            return await self._upstream.serve(request, caller, reply)
        except GatewayError as error:
            if isinstance(error, ProtocolError) and error.reason is not None:
                log.info("refused", upstream=self._upstream.name, rpc_method=request.method, reason=error.reason)
            return Outcome.of_error(to_reply(error))
        except Exception:
            return Outcome.of_error(_unforeseen(self._upstream.name, request.method))

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
        log.info(
            "request refused",
            upstream=self._upstream.name,
            status=reply.status,
            code=error.code,
            reason=error.reason or error.message,
            ms=_elapsed_ms(started_s),
        )

    def _log(
        self, request: InboundRequest, caller: Caller, reply: ClientReply, outcome: Outcome, started_s: float
    ) -> None:
        result = outcome.body.get("result")
        error = outcome.body.get("error")
        log.info(
            "request",
            upstream=self._upstream.name,
            rpc_method=request.method,
            target=_loggable_target(request),
            principal=caller.principal.name,
            status=200 if reply.is_stream and outcome.status != CLIENT_LEFT else outcome.status,
            code=error.get("code") if isinstance(error, dict) else None,
            result=result.get("resultType") if isinstance(result, dict) else None,
            stream=reply.is_stream,
            ms=_elapsed_ms(started_s),
        )


def _loggable_target(request: InboundRequest) -> str | None:
    """The name of a tool or prompt; a URI may hold what nobody should log."""
    return request.target if "name" in request.params else None


def _authorization(headers: Headers) -> str | None:
    value = headers.get(_AUTHORIZATION)
    return None if value is None else value.decode("latin-1")


def _elapsed_ms(started_s: float) -> float:
    return round((time.perf_counter() - started_s) * 1000, 2)


def _uncancel() -> None:
    """The cancellation did its work: it ended the request whose client has left."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


def _unforeseen(upstream: str, method: str) -> ErrorReply:
    error_id = secrets.token_hex(8)
    log.exception("unforeseen failure", upstream=upstream, rpc_method=method, error_id=error_id)
    return ErrorReply(500, error_object(codes.INTERNAL_ERROR, "Internal error", {"errorId": error_id}))
