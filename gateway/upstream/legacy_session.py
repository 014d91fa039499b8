"""One session with a legacy server: what is sent carries its id and version.

Rule: a request is sent once. If the server says that it does not know the session, it refused before executing, and
`SessionExpired` tells the caller that a new session may take the same request.
2025-11-25, basic/transports, "Session Management".
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from gateway.core import era
from gateway.core import session as facts
from gateway.core.incoming import is_response, is_response_to, split
from gateway.core.session import Negotiated, SessionKey
from gateway.errors import UpstreamError
from gateway.upstream.background import Background
from gateway.upstream.faults import no_answer
from gateway.upstream.hearing import GetStream, Hearing
from gateway.upstream.refusal import UpstreamRefused, refusal_of
from gateway.upstream.share import Share
from gateway.upstream.transport import Answer, Transport
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject, decode_message, encode, request

SESSION_ID: Final = "Mcp-Session-Id"
VERSION: Final = "MCP-Protocol-Version"

OnChange = Callable[[JsonObject, SessionKey], None]
"""Is told of a changed list or resource, and on whose session that was heard."""


_QUIET_STATUSES = (200, 202, 204)
_NOTE_TIMEOUT_S: Final = 5.0
_MOST_POSTS: Final = 32


class SessionExpired(Exception):  # noqa: N818 -- an event, not an error: the next session takes over
    """The server does not know the session any more; the request was not executed."""


class LegacySession:
    """A session that `initialize` opened.

    Args:
        http: the connections to the server.
        key: who may use the session.
        credentials: headers that every request of the session carries.
        session_id: what the server called it; None if it keeps no sessions.
        negotiated: what `initialize` settled.
        background: where work goes that nobody waits for.
        on_change: told of changed lists and resources.
        ask_timeout_s: for a request of the gateway's own.
    """

    def __init__(
        self,
        http: Transport,
        key: SessionKey,
        credentials: Mapping[str, str],
        session_id: str | None,
        negotiated: Negotiated,
        background: Background,
        on_change: OnChange,
        ask_timeout_s: float,
    ) -> None:
        self.http = http
        self.key = key
        self.id = session_id
        self.negotiated = negotiated
        self.log_level: str | None = None
        self.in_flight = 0
        self.idle_since_s = 0.0
        self.is_dead = False
        self.is_forgotten = False
        self.is_suspect = False
        self.is_exclusive = False
        self.is_suspended = False
        self.is_spent = False  # a token tells others of it: it serves no other call than the one that asked
        self.hears_notifications = False
        self.listener: GetStream | None = None
        self.share: Share | None = None
        self._credentials = credentials
        self._background = background
        self.hearing = Hearing(self.post_soon, lambda message: on_change(message, key))
        self._ask_timeout_s = ask_timeout_s
        self._has_served = False
        self._sequence = 0
        self._posting = 0
        self._headers = self._build_headers()

    @property
    def name(self) -> str:
        """The configured name of the upstream."""
        return self.http.name

    @property
    def headers(self) -> Mapping[str, str]:
        """What every request of the session carries."""
        return self._headers

    def renew_credentials(self, credentials: Mapping[str, str]) -> None:
        """Use the credentials of the latest caller: an older token may have expired meanwhile."""
        if credentials != self._credentials:
            self._credentials = credentials
            self._headers = self._build_headers()

    # --- sending ---

    async def request(self, message: JsonObject) -> JsonObject | Answer:
        """Send a request.

        Returns:
            The one message that answered it, or a stream that will.

        Raises:
            SessionExpired: the server does not know the session; nothing was executed.
            UpstreamRefused: 401 or 403.
            UpstreamError: unreachable, broken off, or no answer of any known kind.
        """
        reply = await self.http.post(encode(message), self._headers)
        self._learn_id(reply)
        if reply.status == 200 and reply.kind == "sse":
            self._has_served = True
            return reply
        answer = await self._read_answer(reply)
        if era.is_modern_refusal(reply.status, answer):
            self.is_dead = self.is_forgotten = True
            text = f"Upstream {self.name!r} refused the request as a server of another era does"
            raise UpstreamError(self.name, "nonsense", text, retryable=True)
        if await self._is_unknown(reply.status, answer, message):
            self.is_dead = True
            self.is_forgotten = reply.status != 401
            raise SessionExpired
        if reply.status in (401, 403):
            raise refusal_of(reply, answer, message["id"])
        if is_response(answer):
            self._has_served = self._has_served or reply.status == 200
            return answer
        raise no_answer(self.name, reply.status, reply.headers)

    async def post(self, message: JsonObject) -> None:
        """Send a notification or an answer; the reply's body is of no interest.

        Raises:
            SessionExpired: the server does not know the session.
            UpstreamError: it could not be delivered.
        """
        reply = await self.http.post(encode(message), self._headers)
        status = reply.status
        reply.finish()
        if self.id is not None and status in (404, 410):
            self.is_dead = self.is_forgotten = True
            raise SessionExpired
        if status not in _QUIET_STATUSES:
            raise UpstreamError(self.name, "nonsense", f"Upstream {self.name!r} refused a message with HTTP {status}")

    async def ask(self, method: str, params: JsonObject | None = None) -> Json:
        """Make a small request of the gateway's own and return its result.

        Raises:
            SessionExpired, UpstreamRefused, UpstreamError: as `request`; also if the server takes too long, or answers
                with an error.
        """
        try:
            async with asyncio.timeout(self._ask_timeout_s):
                message = await self._answer_to(method, params)
        except TimeoutError:
            text = f"Upstream {self.name!r} did not answer {method} within {self._ask_timeout_s:g} s"
            raise UpstreamError(self.name, "timeout", text) from None
        if "result" not in message:
            raise UpstreamError(self.name, "nonsense", f"Upstream {self.name!r} refused {method}")
        return message["result"]

    async def _answer_to(self, method: str, params: JsonObject | None = None) -> JsonObject:
        self._sequence += 1
        request_id = f"era-{id(self):x}-{self._sequence}"
        answer = await self.request(request(request_id, method, params))
        return answer if isinstance(answer, dict) else await self.read_response(answer, request_id)

    async def read_response(self, stream: Answer, request_id: str) -> JsonObject:
        """Read a stream up to the response, attending to whatever else is on it.

        Raises:
            UpstreamError: it ended without the response.
        """
        try:
            async for event in stream.events():
                for message in split(self.decode(event.data)):
                    if is_response_to(message, request_id):
                        return message
                    await self.hearing.hear(message)
        finally:
            stream.finish()
        raise UpstreamError(self.name, "nonsense", f"Upstream {self.name!r} ended its reply without a response")

    async def ping(self) -> bool:
        """Whether the session still answers; a server that does not know `ping` says so, and thereby answers."""
        try:
            async with asyncio.timeout(min(self._ask_timeout_s, _NOTE_TIMEOUT_S)):
                await self._answer_to(methods.PING)
        except (TimeoutError, SessionExpired, UpstreamRefused, UpstreamError):
            return False
        return True

    async def leave(self) -> None:
        """Stop listening, but leave the session to those who use it elsewhere."""
        self.is_dead = True
        if self.listener is not None:
            await self.listener.close()

    async def close(self) -> None:
        """Stop listening and DELETE the session; a server that does not allow it, or does not answer, is left alone."""
        await self.leave()
        if self.id is None or self.is_forgotten:
            return
        try:
            async with asyncio.timeout(_NOTE_TIMEOUT_S):
                (await self.http.delete(self._headers)).close()
        except (TimeoutError, UpstreamError):
            return

    def post_soon(self, messages: list[JsonObject]) -> None:
        """Send messages in order, without waiting; failures are of no consequence.

        A server that wants more answers at once than `_MOST_POSTS` does without the rest.
        """
        if self._posting < _MOST_POSTS:
            self._posting += 1
            self._background.run(self._post_all(messages))

    def decode(self, data: bytes) -> Json:
        """Decode a message.

        Raises:
            UpstreamError: it is not JSON.
        """
        try:
            return decode_message(data)
        except ValueError as error:
            raise UpstreamError(self.name, "nonsense", f"Upstream {self.name!r} sent what is not JSON") from error

    async def _post_all(self, messages: list[JsonObject]) -> None:
        try:
            async with asyncio.timeout(_NOTE_TIMEOUT_S):
                for message in messages:
                    await self.post(message)
        except (TimeoutError, SessionExpired, UpstreamError):
            return
        finally:
            self._posting -= 1

    async def _read_answer(self, reply: Answer) -> Json:
        """The decoded body; None if there is none, or it is not JSON in a reply that failed anyway."""
        if reply.kind == "sse":
            return await self._read_refusal(reply)
        body = await reply.read_message_bytes()
        if not body or reply.kind == "other":
            return None
        try:
            return decode_message(body)
        except ValueError:
            return None

    async def _read_refusal(self, stream: Answer) -> Json:
        """What a server that answers everything with a stream has to say to a refused request; None if nothing."""
        try:
            async for event in stream.events():
                message = self.decode(event.data)
                if is_response(message):
                    return message
        finally:
            stream.finish()
        return None

    async def _is_unknown(self, status: int, answer: Json, message: JsonObject) -> bool:
        """Whether the server does not know this session, and so refused a request before it executed anything."""
        if self.id is None:
            return False
        if status == 401:
            return self._has_served  # whether it was the credential, the next `initialize` tells
        if not facts.is_expired(status, answer, message["id"]):
            return False
        # An error in a 200 may be that of a tool which lost a session of its own, and ran: so the server is asked.
        return status != 200 or message["method"] == methods.PING or not await self.ping()

    def _learn_id(self, reply: Answer) -> None:
        """Some servers hand out the session id with a later response than that of `initialize`."""
        if self.id is None and reply.status < 300 and (session_id := reply.headers.get(SESSION_ID)):
            self.id = session_id
            self._headers = self._build_headers()

    def _build_headers(self) -> Mapping[str, str]:
        headers = {**self._credentials, VERSION: self.negotiated.version}
        if self.id is not None:
            headers[SESSION_ID] = self.id
        return headers
