"""A server over HTTP whose transport nobody has named: Streamable HTTP, unless it turns out to be that of 2024-11-05.

Rule: when `initialize` is answered 400, 404 or 405, GET may have an event stream that names an endpoint; if so, that is
where sessions are opened from then on, until there is none any more.
2025-11-25, basic/transports, "Backwards Compatibility".
"""

import asyncio
from collections.abc import Mapping
from typing import Final

import structlog

from gateway.errors import UpstreamError
from gateway.upstream.piped import PipeTransport
from gateway.upstream.piped_answer import PipedAnswer
from gateway.upstream.transport import SESSION_ID, Answer, Transport
from gateway.wire import methods
from gateway.wire.jsonrpc import JsonObject, decode

log = structlog.get_logger()

LOOK_S: Final = 3.0
"""How long the endpoint is waited for: a server of the newer transport may keep its GET stream silent for ever."""

_INITIALIZE: Final = b'"initialize"'
_NOT_ALLOWED: Final = 405
_NO_STREAMABLE: Final = (400, 404, _NOT_ALLOWED)


class EitherHttp:
    """See the module; a `Transport`.

    Args:
        streamable: the transport of 2025-03-26 and later.
        sse: that of 2024-11-05, at the same URL and over the same connections.
    """

    def __init__(self, streamable: Transport, sse: PipeTransport) -> None:
        self.name = streamable.name
        self.has_headers = streamable.has_headers
        self._streamable = streamable
        self._sse = sse
        self._is_sse = False

    async def post(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send a message; see `Transport`."""
        if SESSION_ID in headers:
            return await self._post_in_session(body, headers)
        if not _is_initialize(body):
            return await self._streamable.post(body, headers)
        if self._is_sse:
            answer = await self._initialize_by_sse(body, headers)
            if answer is not None:
                return answer
        answer = await self._streamable.post(body, headers)
        if answer.status not in _NO_STREAMABLE:
            return answer
        found = await self._look(body, headers)
        if found is None:
            return answer
        answer.close()
        return found

    async def get(self, headers: Mapping[str, str]) -> Answer:
        """Open a stream; see `Transport`."""
        return await self._of(headers).get(headers)

    async def delete(self, headers: Mapping[str, str]) -> Answer:
        """End a session; see `Transport`."""
        return await self._of(headers).delete(headers)

    def is_tied(self, session_id: str) -> bool:
        """Whether a session is one of the older transport, which is its connection."""
        return self._sse.owns(session_id)

    async def close(self) -> None:
        """End everything that is open."""
        await self._sse.close()  # and with it the connections that both of them use

    async def _post_in_session(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        answer = await self._of(headers).post(body, headers)
        if answer.status == _NOT_ALLOWED and answer.kind != "json":
            # No word of the protocol: the server is of the other transport now, and has forgotten its sessions.
            answer.close()
            return PipedAnswer.bare(404)
        return answer

    def _of(self, headers: Mapping[str, str]) -> Transport:
        """The transport that a session is one of."""
        return self._sse if self._sse.owns(headers.get(SESSION_ID)) else self._streamable

    async def _look(self, body: bytes, headers: Mapping[str, str]) -> Answer | None:
        """Try the older transport; None if the server does not have it."""
        try:
            async with asyncio.timeout(LOOK_S):
                answer = await self._sse.post(body, headers)
        except (TimeoutError, UpstreamError):
            return None
        if answer.status != 200:
            answer.close()
            return None
        log.info("transport found", upstream=self.name, transport="sse")
        self._is_sse = True
        return answer

    async def _initialize_by_sse(self, body: bytes, headers: Mapping[str, str]) -> Answer | None:
        """Open another session of the older transport; None if the server does not have it any more."""
        try:
            answer = await self._sse.post(body, headers)
        except UpstreamError as error:
            if error.reason != "nonsense":
                raise
        else:
            if answer.status not in _NO_STREAMABLE:
                return answer
            answer.close()
        self._is_sse = False
        return None


def _is_initialize(body: bytes) -> bool:
    if _INITIALIZE not in body:  # nearly always, and then nothing need be decoded
        return False
    message: JsonObject = decode(body)
    return message.get("method") == methods.INITIALIZE
