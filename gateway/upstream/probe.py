"""`era-gateway probe`: asks one server what it speaks, and says it in words.

This is the control plane: one question after the other, at a person's pace, by httpx. The order is that of the
gateway itself: `server/discover`, then `initialize`, then a GET for the 2024-11-05 transport.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

import httpx

from gateway import __version__
from gateway.core import era
from gateway.core import session as facts
from gateway.core.era import Modern, NoVerdict
from gateway.upstream.probe_report import (
    Answer,
    Description,
    ProbeFailed,
    explain,
    explain_status,
    of_legacy,
    of_modern,
)
from gateway.wire import headers, methods
from gateway.wire.jsonrpc import Json, JsonObject, decode, encode, notification, request
from gateway.wire.sse import SseEvent, SseOverflow, SseParser

__all__ = ["Description", "ProbeFailed", "describe"]

_CLIENT_INFO: Final[JsonObject] = {"name": "era-gateway", "version": __version__}
_INITIALIZE_ID: Final = "era-initialize"
_TIMEOUT_S: Final = 20.0
_DISCOVER_TIMEOUT_S: Final = 8.0
_MAX_BYTES: Final = 4 * 2**20
_NO_STREAMABLE: Final = (400, 404, 405)
_FOLLOWED: Final = (307, 308)


async def describe(url: str, request_headers: Mapping[str, str]) -> Description:
    """Ask a server over HTTP. A session that this opens is ended again.

    Args:
        url: its endpoint.
        request_headers: sent with every request.

    Raises:
        ProbeFailed: it cannot be reached, refuses, or is no MCP server.
    """
    try:
        async with asyncio.timeout(_TIMEOUT_S), _Prober(url, request_headers) as prober:
            return await prober.describe()
    except TimeoutError:
        raise ProbeFailed(f"No answer within {_TIMEOUT_S:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ProbeFailed(explain(error)) from error
    except SseOverflow as error:
        raise ProbeFailed(f"The server sent an event over the limit: {error}") from error


class _Prober:
    def __init__(self, url: str, request_headers: Mapping[str, str]) -> None:
        self._url = httpx.URL(url)
        self._has_credential = bool(request_headers)
        self._client = httpx.AsyncClient(
            headers={"User-Agent": f"era-gateway/{__version__}", **request_headers},
            timeout=httpx.Timeout(_TIMEOUT_S),
            trust_env=False,
        )
        self._notes: list[str] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def describe(self) -> Description:
        found = await self._describe_by_discover() or await self._describe_by_initialize()
        return replace(found, notes=(*self._notes, *found.notes))

    async def _describe_by_discover(self) -> Description | None:
        """The modern way; None if the server may be a legacy one.

        Raises:
            ProbeFailed: it refuses.
        """
        probe_headers, message = era.probe_request(_CLIENT_INFO)
        try:
            async with asyncio.timeout(_DISCOVER_TIMEOUT_S):
                answer = await self._post(message, probe_headers)
        except TimeoutError:
            self._notes.append("leaves server/discover unanswered")
            return None
        except (httpx.ReadError, httpx.RemoteProtocolError):
            self._notes.append("hangs up on server/discover")
            return None
        found = era.verdict(answer.status, answer.headers, answer.body, has_credential=self._has_credential)
        if isinstance(found, Modern):
            return of_modern(found.discover_result)
        if isinstance(found, NoVerdict):
            if not found.try_initialize:
                raise ProbeFailed(explain_status(answer))
            self._notes.append(f"refuses server/discover with HTTP {answer.status}")
        return None

    async def _describe_by_initialize(self) -> Description:
        message = request(_INITIALIZE_ID, methods.INITIALIZE, facts.initialize_params({}, _CLIENT_INFO))
        answer = await self._post(message, {})
        if answer.message.get("id") == _INITIALIZE_ID and "result" in answer.message:
            session_id = answer.headers.get(headers.SESSION_ID)
            found = of_legacy(answer.message["result"], "streamable-http", has_sessions=bool(session_id))
            await self._take_leave(found.version, session_id)
            return found
        if answer.status in _NO_STREAMABLE:
            found_sse = await self._describe_by_sse(message)
            if found_sse is not None:
                return found_sse
        error = answer.message.get("error")
        if isinstance(error, dict):
            raise ProbeFailed(f"The server refuses initialize: {error.get('message')} (code {error.get('code')})")
        raise ProbeFailed(explain_status(answer))

    async def _take_leave(self, version: str, session_id: str | None) -> None:
        """Complete the handshake and end the session; what the server makes of it is of no interest."""
        about = {headers.PROTOCOL_VERSION: version} | ({headers.SESSION_ID: session_id} if session_id else {})
        with contextlib.suppress(httpx.HTTPError):
            await self._post(notification(methods.INITIALIZED), about)
            if session_id is not None:
                await self._client.delete(self._url, headers=about)

    async def _post(self, message: JsonObject, extra: Mapping[str, str]) -> Answer:
        """POST a message and read its answer, following redirects as the gateway does."""
        about = {headers.CONTENT_TYPE: headers.JSON, headers.ACCEPT: headers.BOTH, **extra}
        for _ in range(5):
            async with self._client.stream("POST", self._url, content=encode(message), headers=about) as response:
                if not response.has_redirect_location:
                    return Answer(response.status_code, response.headers, await _read(response, message.get("id")))
            self._redirect(response)
        raise ProbeFailed("The server redirects in circles")

    def _redirect(self, response: httpx.Response) -> None:
        target = self._url.join(response.headers["Location"])
        is_same = (target.scheme, target.host, target.port) == (self._url.scheme, self._url.host, self._url.port)
        if response.status_code not in _FOLLOWED or not is_same:
            raise ProbeFailed(
                f"The server redirects with HTTP {response.status_code} to {target}, which the gateway does not "
                f"follow; if that is the right endpoint, use its URL"
            )
        self._url = target
        self._notes.append(f"redirects to {target}")

    # --- the transport of 2024-11-05 ---

    async def _describe_by_sse(self, initialize: JsonObject) -> Description | None:
        """GET an event stream whose first event tells where to POST; answers come on the stream."""
        async with self._client.stream("GET", self._url, headers={headers.ACCEPT: headers.EVENT_STREAM}) as stream:
            if stream.status_code != 200 or not headers.is_event_stream(stream.headers.get("Content-Type", "")):
                return None
            events = _events(stream)
            async for event in events:
                if event.event != "endpoint":
                    return None
                endpoint = self._url.join(event.data.decode("utf-8", "replace").strip())
                if endpoint.host != self._url.host or endpoint.port != self._url.port:
                    raise ProbeFailed("The server's SSE transport wants messages on another origin")
                return await self._initialize_by_sse(endpoint, initialize, events)
        return None

    async def _initialize_by_sse(
        self, endpoint: httpx.URL, initialize: JsonObject, events: AsyncIterator[SseEvent]
    ) -> Description:
        posted = await self._client.post(endpoint, content=encode(initialize), headers=_JSON)
        if posted.status_code >= 400:
            raise ProbeFailed(f"The server's SSE transport refuses initialize with HTTP {posted.status_code}")
        async for event in events:
            message = _response(event.data, _INITIALIZE_ID)
            if message is not None and "result" in message:
                await self._client.post(endpoint, content=encode(notification(methods.INITIALIZED)), headers=_JSON)
                return of_legacy(message["result"], "sse", has_sessions=True)
        raise ProbeFailed("The server's SSE transport ended without an answer to initialize")


_JSON: Final = {headers.CONTENT_TYPE: headers.JSON}


async def _read(response: httpx.Response, request_id: Json) -> bytes:
    """The response to a request, out of a body or an event stream; what came instead, if there is none."""
    if headers.is_event_stream(response.headers.get("Content-Type", "")):
        async for event in _events(response):
            if _response(event.data, request_id) is not None:
                return event.data
        return b""
    body = b""
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > _MAX_BYTES:
            raise ProbeFailed(f"The server answers with more than {_MAX_BYTES} bytes")
    return body


async def _events(response: httpx.Response) -> AsyncIterator[SseEvent]:
    parser = SseParser(_MAX_BYTES)
    async for chunk in response.aiter_bytes():
        for event in parser.feed(chunk):
            yield event
    for event in parser.close():
        yield event


def _response(data: bytes, request_id: Json) -> JsonObject | None:
    try:
        message = decode(data)
    except ValueError:
        return None
    is_answer = isinstance(message, dict) and "method" not in message and message.get("id") in (request_id, None)
    return message if is_answer else None
