"""How every shell talks to a server, whatever carries the messages.

The words are those of Streamable HTTP: a message is POSTed and answered by a stream, a session has a name in a header,
GET opens a session's own stream, DELETE ends it. What is no HTTP (a process, the 2024-11-05 transport) puts on this
face, so that the shells know one transport.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Final, Literal, Protocol, TypeAlias

from gateway.wire.sse import SseEvent

Kind: TypeAlias = Literal["json", "sse", "empty", "other"]
"""What the body of an answer holds."""

SESSION_ID: Final = "Mcp-Session-Id"


class Answer(Protocol):
    """An answer whose head has arrived.

    Attributes:
        status: the HTTP status, or the one that says the same.
        headers: the response headers, to be read by their usual names.
        kind: "json": one message, for `read_message_bytes`. "sse": events, for `events` (which reads "json" too, as a
            single event). "empty": nothing. "other": something that is neither.
    """

    status: int

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def kind(self) -> Kind: ...

    @property
    def last_event_id(self) -> str | None:
        """The id after which `events` would have to be resumed, None if the stream gave none."""

    @property
    def retry_ms(self) -> int | None:
        """The reconnection time that the stream asked for."""

    async def read_message_bytes(self) -> bytes:
        """Read the whole body; `b""` if it is empty. Raises UpstreamError."""

    def events(self) -> AsyncIterator[SseEvent]:
        """Iterate over the events; the iterator is the same at every call. Iterating raises UpstreamError."""

    def finish(self) -> None:
        """Be done with an answer of which nothing more is wanted, though its end may still be on the way."""

    def close(self) -> None:
        """Give the answer up."""


class Transport(Protocol):
    """The way to one server.

    Attributes:
        name: the upstream's configured name; the only thing that error messages tell of it.
        has_headers: whether any headers are configured, a credential perhaps.
    """

    name: str
    has_headers: bool

    async def post(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send one message, never twice.

        Args:
            body: JSON.
            headers: what this message needs beyond the configured ones, as `Mcp-Session-Id`.

        Raises:
            UpstreamError: `unreachable` (never sent), `outcome_unknown` (sent, then the connection broke), or
                `nonsense` (no such conversation can be had with this server).
        """

    async def get(self, headers: Mapping[str, str]) -> Answer:
        """Open a stream of server messages, or resume one. Raises like `post`."""

    async def delete(self, headers: Mapping[str, str]) -> Answer:
        """End a session. Raises like `post`."""

    async def close(self) -> None:
        """End everything that is open."""
