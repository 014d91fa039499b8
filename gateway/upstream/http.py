"""The HTTP client of the data plane: sends a request to an upstream, and gives its answer back as it streams.

There is no deadline here but that of connecting: callers hold the others, and cancel. Why this is no library:
docs/decisions/015-our-own-http-client.md.
"""

from collections.abc import Mapping
from typing import Final

from yarl import URL

from gateway.errors import UpstreamError
from gateway.upstream import faults
from gateway.upstream.connections import Connections
from gateway.upstream.reply import Reply
from gateway.upstream.request_head import Method, RequestHead
from gateway.upstream.response import Response

__all__ = ["Reply", "UpstreamHttp"]

_MAX_REDIRECTS: Final = 5
_FOLLOWED: Final = (307, 308)
_REDIRECTS: Final = frozenset({300, 301, 302, 303, 305, *_FOLLOWED})
_GONE: Final = (404, 405, 410)


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
        self._fields = headers
        self._configured = self._head = RequestHead(URL(url), headers)
        self._max_message_bytes = max_message_bytes
        self.connections = Connections(name, self._head.url.origin(), connect_timeout_s)

    @property
    def url(self) -> str:
        """Where requests go: the configured URL, or where a redirect within its origin led."""
        return str(self._head.url)

    async def post(self, body: bytes, headers: Mapping[str, str]) -> Reply:
        """POST one message. Never sent twice.

        Args:
            body: JSON.
            headers: what this request needs beyond the configured ones, as `Mcp-Session-Id`.

        Raises:
            UpstreamError: `unreachable` (never sent), `outcome_unknown` (sent, then the connection broke), or
                `nonsense` (a redirect that is not followed, no HTTP).
        """
        return await self._send("POST", headers, body)

    async def get(self, headers: Mapping[str, str]) -> Reply:
        """Open a stream of server messages, or resume one. Raises like `post`."""
        return await self._send("GET", headers, None)

    async def delete(self, headers: Mapping[str, str]) -> Reply:
        """End a session. Raises like `post`."""
        return await self._send("DELETE", headers, None)

    async def close(self) -> None:
        """Close every connection; the next request would open new ones."""
        await self.connections.close()

    async def _send(self, method: Method, headers: Mapping[str, str], body: bytes | None) -> Reply:
        response = await self._ask(self._head, method, headers, body)
        if response.status in _REDIRECTS:
            response = await self._follow(response, method, headers, body)
        elif response.status in _GONE:
            # A remembered redirect may have been taken back: the next request asks the configured URL.
            self._head = self._configured
        reply = Reply(self.name, response, self._max_message_bytes)
        if not reply.is_ready:
            await reply.get_ready()
        return reply

    async def _ask(self, head: RequestHead, method: Method, headers: Mapping[str, str], body: bytes | None) -> Response:
        """Send a request once, and wait for the head of its answer."""
        try:
            written = head.write(method, headers, None if body is None else len(body))
        except ValueError as error:  # an id of a session or an event that it gave out, with characters of no header
            raise faults.nonsense(self.name, "gave out an id that no header can carry") from error
        connection = self.connections.take() or await self.connections.open()
        try:
            return await connection.ask(written, body or b"")
        except BaseException:  # it broke, or nobody waits any more
            connection.abort()
            raise

    async def _follow(
        self, response: Response, method: Method, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        """Go where a 307 or 308 leads, within the origin.

        Raises:
            UpstreamError: nowhere that a request may follow.
        """
        head = self._head
        for _ in range(_MAX_REDIRECTS):
            response.finish()
            head = RequestHead(self._redirected(head.url, response), self._fields)
            response = await self._ask(head, method, headers, body)
            if response.status not in _REDIRECTS:
                self._head = self._configured if response.status in _GONE else head
                return response
        response.finish()
        raise faults.nonsense(self.name, f"redirects more than {_MAX_REDIRECTS} times")

    def _redirected(self, target: URL, response: Response) -> URL:
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
