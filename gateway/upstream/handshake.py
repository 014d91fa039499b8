"""Opens a legacy session: `initialize`, then `notifications/initialized`.

2025-11-25, basic/lifecycle, "Initialization".
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from gateway.core import session as facts
from gateway.core.incoming import is_response, is_response_to
from gateway.core.session import Negotiated, SessionKey
from gateway.errors import UpstreamError
from gateway.upstream.background import Background
from gateway.upstream.faults import no_answer, unreachable
from gateway.upstream.legacy_session import SESSION_ID, LegacySession, OnChange
from gateway.upstream.refusal import refusal_of
from gateway.upstream.transport import Answer, Transport
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject, decode, encode, notification, request, response

log = structlog.get_logger()

_REQUEST_ID: Final = "era-initialize"
_ACKNOWLEDGE_S: Final = 5.0
"""How long a server may take over `notifications/initialized`; some never complete that POST, and are ready."""


@dataclass(frozen=True, slots=True)
class Introduction:
    """What the gateway says of itself and of the client at `initialize`.

    Args:
        capabilities: what this client declared, in legacy terms.
        client_info: who is there: the gateway, or the client where it is passed on.
        credentials: headers that every request of the session carries.
    """

    capabilities: JsonObject
    client_info: JsonObject
    credentials: Mapping[str, str]


class Handshake:
    """Opens sessions with one server.

    Args:
        http: the connections to the server.
        background: where work goes that nobody waits for.
        on_change: told of changed lists and resources.
        timeout_s: for the whole handshake, and for each small request of the gateway's own in the session.
    """

    def __init__(self, http: Transport, background: Background, on_change: OnChange, timeout_s: float) -> None:
        self._http = http
        self._background = background
        self._on_change = on_change
        self._timeout_s = timeout_s

    async def open(self, key: SessionKey, introduction: Introduction) -> LegacySession:
        """Open a session.

        Raises:
            UpstreamRefused: 401 or 403.
            UpstreamError: unreachable, too slow, or no legacy server; `retryable`, since no request was sent yet.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                reply, negotiated = await self._initialize(introduction)
        except TimeoutError:
            name = self._http.name
            message = f"Upstream {name!r} did not complete initialize within {self._timeout_s:g} s"
            raise UpstreamError(name, "timeout", message, retryable=True) from None
        except UpstreamError as error:
            raise self._before_any_request(error) from error
        session = LegacySession(
            self._http,
            key,
            introduction.credentials,
            reply.headers.get(SESSION_ID) or None,
            negotiated,
            self._background,
            self._on_change,
            self._timeout_s,
        )
        await self._acknowledge(session)
        return session

    def revive(
        self, key: SessionKey, credentials: Mapping[str, str], session_id: str, negotiated: Negotiated
    ) -> LegacySession:
        """A session that another process has opened."""
        return LegacySession(
            self._http, key, credentials, session_id, negotiated, self._background, self._on_change, self._timeout_s
        )

    async def _initialize(self, introduction: Introduction) -> tuple[Answer, Negotiated]:
        params = facts.initialize_params(introduction.capabilities, introduction.client_info)
        message = request(_REQUEST_ID, methods.INITIALIZE, params)
        reply = await self._http.post(encode(message), introduction.credentials)
        try:
            return reply, await self._read_answer(reply, introduction.credentials)
        except BaseException:
            self._background.run(self._delete(reply, introduction.credentials))
            raise

    async def _read_answer(self, reply: Answer, credentials: Mapping[str, str]) -> Negotiated:
        if reply.status == 200 and reply.kind == "sse":
            answer = await self._read_stream(reply, credentials)
        else:
            answer = await self._read_body(reply)
        if reply.status in (401, 403):
            raise refusal_of(reply, answer)
        if not is_response(answer):
            raise no_answer(self._http.name, reply.status, reply.headers)
        return self._negotiate(answer)

    async def _read_body(self, reply: Answer) -> Json:
        body = await reply.read_message_bytes()
        try:
            return decode(body) if body else None
        except ValueError:
            return None

    async def _read_stream(self, reply: Answer, credentials: Mapping[str, str]) -> Json:
        """Read up to the result; a ping that comes before it must be answered even now."""
        try:
            async for event in reply.events():
                message = decode(event.data)
                if is_response_to(message, _REQUEST_ID):
                    return message
                if isinstance(message, dict) and message.get("method") == methods.PING and "id" in message:
                    self._background.run(self._pong(reply, credentials, message))
        except ValueError:
            return None
        finally:
            reply.finish()
        return None

    async def _pong(self, reply: Answer, credentials: Mapping[str, str], ping: JsonObject) -> None:
        try:
            (await self._http.post(encode(response(ping["id"], {})), _headers(reply, credentials))).finish()
        except UpstreamError:
            return

    async def _delete(self, reply: Answer, credentials: Mapping[str, str]) -> None:
        """End a session that the server opened although its handshake came to nothing."""
        if not reply.headers.get(SESSION_ID):
            return
        try:
            async with asyncio.timeout(self._timeout_s):
                (await self._http.delete(_headers(reply, credentials))).close()
        except (TimeoutError, UpstreamError):
            return

    def _before_any_request(self, error: UpstreamError) -> UpstreamError:
        """What a failure means for the request at hand, which was not sent yet."""
        if error.reason == "outcome_unknown":
            return unreachable(self._http.name, "the connection broke during initialize")
        return UpstreamError(
            error.upstream, error.reason, error.message, retryable=True, retry_after_s=error.retry_after_s
        )

    def _negotiate(self, answer: JsonObject) -> Negotiated:
        name = self._http.name
        if "result" not in answer:
            # What it says is for the operator: a server may well quote the credential that it does not like.
            error = answer["error"]
            log.debug("initialize refused", upstream=name, error=error)
            code = error.get("code") if isinstance(error, dict) else None
            told = f" (code {code})" if isinstance(code, int) else ""
            raise UpstreamError(name, "nonsense", f"Upstream {name!r} refused initialize{told}")
        try:
            return facts.negotiate(answer["result"])
        except ValueError as error:
            raise UpstreamError(name, "nonsense", f"Upstream {name!r} cannot be used: {error}") from error

    async def _acknowledge(self, session: LegacySession) -> None:
        """Tell the server that the session is in use, and wait until it has taken note.

        A server that refuses or drops the notification is given its first request all the same.
        """
        try:
            async with asyncio.timeout(min(self._timeout_s, _ACKNOWLEDGE_S)):
                reply = await self._http.post(encode(notification(methods.INITIALIZED)), session.headers)
            reply.finish()
            fault = f"HTTP {reply.status}" if reply.status >= 400 else None
        except (TimeoutError, UpstreamError) as error:
            fault = str(error) or "no answer in time"
        if fault is not None:
            log.info("initialized was not acknowledged", upstream=self._http.name, fault=fault)


def _headers(reply: Answer, credentials: Mapping[str, str]) -> Mapping[str, str]:
    """What a message carries while the handshake is under way."""
    session_id = reply.headers.get(SESSION_ID)
    return {**credentials, SESSION_ID: session_id} if session_id else credentials
