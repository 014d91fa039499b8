"""The HTTP client of the data plane: sends a request to an upstream, and gives its answer back as it streams.

Rule: headers are built by allow-list (the operator's, the fixed ones, what the caller of a method names), never
copied from anybody's request. There is no deadline here but that of connecting: callers hold the others, and cancel.
"""

from collections.abc import Mapping
from io import BytesIO
from typing import Final

import aiohttp
from yarl import URL

from gateway import __version__
from gateway.errors import UpstreamError
from gateway.upstream import faults
from gateway.upstream.reply import Endings, Reply

__all__ = ["Reply", "UpstreamHttp"]

USER_AGENT: Final = f"era-gateway/{__version__}"

KEEP_ALIVE_S: Final = 4.0
"""How long an idle connection is kept: less than the 5 seconds after which uvicorn and Node close theirs.

A POST that meets a connection in the act of closing has an unknown outcome, so this must come first.
"""

_MAX_REDIRECTS = 5
_FOLLOWED = (307, 308)
_REDIRECTS = (300, 301, 302, 303, 305)
_GONE = (404, 405, 410)
_READ_AHEAD_BYTES = 65_536  # of an answer that its client is slow to take; aiohttp holds up to three times as much
_MAX_HEADER_BYTES = 65_536
_MAX_BYTES_BODY = 2**20  # aiohttp warns of a larger one, and would write it in one piece
_ACCEPT = {"Accept": "application/json, text/event-stream"}
_POST = {"Content-Type": "application/json", **_ACCEPT}
_GET = {"Accept": "text/event-stream"}
_FRAMING: Final = frozenset({"connection", "content-length", "expect", "keep-alive", "te", "trailer"}) | {
    "transfer-encoding",
    "upgrade",
    "accept-encoding",
}
"""Headers that describe a connection or a body: the client's own affair, whatever is configured."""


class UpstreamHttp:
    """Connections to one upstream.

    Args:
        name: the upstream's configured name; the only thing that error messages tell of it.
        url: its endpoint.
        headers: sent with every request; what a call passes wins.
        connect_timeout_s: for name resolution, TCP and TLS together.
        max_message_bytes: what one JSON body or one event may have, decompressed.

    Attributes:
        name: as above.
        has_headers: whether any headers are configured, a credential perhaps.
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        headers: Mapping[str, str],
        connect_timeout_s: float,
        max_message_bytes: int,
    ) -> None:
        self.name = name
        self.has_headers = bool(headers)
        self._configured = URL(url)
        self._target = self._configured
        self._headers = {
            "User-Agent": USER_AGENT,
            **_without_framing(headers),
            "Accept-Encoding": "gzip, deflate, br",
        }
        self._connect_timeout_s = connect_timeout_s
        self._max_message_bytes = max_message_bytes
        self._endings = Endings()
        self._session: aiohttp.ClientSession | None = None

    @property
    def url(self) -> str:
        """Where requests go: the configured URL, or where a redirect within its origin led."""
        return str(self._target)

    async def post(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """POST one message. Never sent twice: aiohttp repeats idempotent methods only.

        Args:
            body: JSON.
            headers: what this request needs beyond the configured ones, as `Mcp-Session-Id`.

        Raises:
            UpstreamError: `unreachable` (never sent), `outcome_unknown` (sent, then the connection broke), or
                `nonsense` (a redirect that is not followed, no HTTP).
        """
        return await self._send("POST", {**_POST, **headers}, body)

    async def get(self, headers: Mapping[str, str]) -> Reply:
        """Open a stream of server messages, or resume one. Raises like `post`."""
        return await self._send("GET", {**_GET, **headers}, None)

    async def delete(self, headers: Mapping[str, str]) -> Reply:
        """End a session. Raises like `post`."""
        return await self._send("DELETE", {**_ACCEPT, **headers}, None)

    async def close(self) -> None:
        """Close every connection; the next request would open new ones."""
        self._endings.close()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _send(self, method: str, headers: Mapping[str, str], body: bytes | None) -> Reply:
        try:
            response = await self._request(method, headers, body)
        except faults.FAILURES as error:
            raise faults.to_upstream_error(self.name, error) from error
        except ValueError as error:  # an id of a session or an event that it gave out, with characters of no header
            raise faults.nonsense(self.name, "gave out an id that no header can carry") from error
        return await Reply.open(self.name, response, self._max_message_bytes, self._endings)

    async def _request(self, method: str, headers: Mapping[str, str], body: bytes | None) -> aiohttp.ClientResponse:
        session = self._session or self._open_session()
        target = self._target
        for _ in range(_MAX_REDIRECTS + 1):
            data = BytesIO(body) if body is not None and len(body) > _MAX_BYTES_BODY else body
            response = await session.request(method, target, headers=headers, data=data, allow_redirects=False)
            if response.status < 300:
                self._target = target
                return response
            if response.status not in _FOLLOWED and response.status not in _REDIRECTS:
                # A remembered redirect may have been taken back: the next request asks the configured URL.
                self._target = self._configured if response.status in _GONE else target
                return response
            response.close()
            target = self._redirected(target, response)
        raise faults.nonsense(self.name, f"redirects more than {_MAX_REDIRECTS} times")

    def _redirected(self, target: URL, response: aiohttp.ClientResponse) -> URL:
        """Where a 307 or 308 leads, within the origin.

        Raises:
            UpstreamError: nowhere that a request may follow.
        """
        if response.status not in _FOLLOWED:
            raise self._refused(
                f"with {response.status}, which would change the request (only 307 and 308 are followed)"
            )
        try:
            location = target.join(URL(response.headers["Location"])).with_fragment(None)
            origin = location.origin()
        except (KeyError, ValueError):
            raise self._refused("to no usable Location") from None
        if origin != target.origin():
            raise self._refused("to another origin, where its credentials must not go")
        return location

    def _refused(self, how: str) -> UpstreamError:
        return faults.nonsense(self.name, f"redirects {how}")

    def _open_session(self) -> aiohttp.ClientSession:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S, ttl_dns_cache=30),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=None, connect=self._connect_timeout_s),
            trust_env=False,
            read_bufsize=_READ_AHEAD_BYTES,
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
        )
        return self._session


def _without_framing(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _FRAMING}
