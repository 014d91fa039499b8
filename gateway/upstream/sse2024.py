"""Pipes over the HTTP+SSE transport of 2024-11-05: GET is an event stream that first names the endpoint to POST to.

The session is the stream: when that ends, so does what was asked on it. Messages go to the stream's own origin only,
since credentials go with them.
2024-11-05, basic/transports, "HTTP with SSE".
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

from yarl import URL

from gateway.errors import UpstreamError
from gateway.upstream.faults import nonsense
from gateway.upstream.http import UpstreamHttp
from gateway.upstream.pipe import Hearer, Refused
from gateway.upstream.transport import SESSION_ID, Answer
from gateway.wire import headers as names
from gateway.wire.sse import SseEvent

_ENDPOINT: Final = "endpoint"
_MESSAGE: Final = "message"
_OF_OTHER_TRANSPORTS: Final = frozenset({SESSION_ID, names.PROTOCOL_VERSION})


class SsePipes:
    """Opens the streams of one server; an `Opener`.

    Args:
        http: the connections to the URL that GET opens a stream at.
        connect: makes connections to an endpoint.
        timeout_s: for a stream to name its endpoint.
    """

    def __init__(self, http: UpstreamHttp, connect: Callable[[str], UpstreamHttp], timeout_s: float) -> None:
        self._http = http
        self._connect = connect
        self._timeout_s = timeout_s

    async def __call__(self, hearer: Hearer, headers: Mapping[str, str]) -> "SsePipe":
        """Open a stream.

        Raises:
            Refused: the server has none.
            UpstreamError: it cannot be reached, or what it has is no stream of this transport.
        """
        stream = await self._http.get(_credentials(headers))
        if stream.status != 200:
            raise Refused(stream)
        try:
            events = stream.events(of_any_type=True)
            endpoint = await self._read_endpoint(stream, events)
        except BaseException:
            stream.close()
            raise
        return SsePipe(self._http.name, hearer, stream, events, self._connect(endpoint))

    async def _read_endpoint(self, stream: Answer, events: AsyncIterator[SseEvent]) -> str:
        first = await self._read_first(events) if stream.kind == "sse" else None
        if first is None or first.event != _ENDPOINT:
            raise nonsense(self._http.name, "does not say where to send messages, as HTTP+SSE servers do")
        try:
            base = URL(self._http.url)
            endpoint = base.join(URL(first.data.decode().strip())).with_fragment(None)
            is_same = endpoint.origin() == base.origin()
        except ValueError:
            raise nonsense(self._http.name, "names an endpoint for messages that is no URL") from None
        if not is_same:
            raise nonsense(self._http.name, "wants messages on another origin, where its credentials must not go")
        return str(endpoint)

    async def _read_first(self, events: AsyncIterator[SseEvent]) -> SseEvent | None:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await anext(events, None)
        except TimeoutError:
            return None


class SsePipe:
    """A stream, and the endpoint beside it; see `Pipe`."""

    def __init__(
        self, name: str, hearer: Hearer, stream: Answer, events: AsyncIterator[SseEvent], endpoint: UpstreamHttp
    ) -> None:
        self._name = name
        self._hearer = hearer
        self._stream = stream
        self._events = events
        self._endpoint = endpoint
        self._reading = asyncio.get_running_loop().create_task(self._read())

    async def send(self, message: bytes, headers: Mapping[str, str]) -> Answer | None:
        """POST a message; see `Pipe`. The answer to a request comes on the stream."""
        reply = await self._endpoint.post(message, _credentials(headers))
        if reply.status >= 300:
            return reply
        if reply.kind == "json":  # no server should, some do
            self._hearer.hear(await reply.read_message_bytes())
        reply.finish()
        return None

    async def close(self) -> None:
        """Close the stream; see `Pipe`."""
        self._reading.cancel()
        await asyncio.wait([self._reading])
        self._stream.close()
        await self._endpoint.close()

    async def _read(self) -> None:
        how, reason = "closed its stream", "outcome_unknown"
        try:
            async for event in self._events:
                if event.event == _MESSAGE:
                    self._hearer.hear(event.data)
        except UpstreamError as error:
            reason = error.reason
            how = "sent a message over the limit" if reason == "too_large" else "broke its stream"
        finally:
            self._hearer.end(how, reason)


def _credentials(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in _OF_OTHER_TRANSPORTS}
