"""An upstream's 401 and 403: whose fault that is depends on whose credential it was."""

from typing import Final

from gateway.errors import ErrorReply, UpstreamError
from gateway.upstream.reply import Reply
from gateway.wire import codes
from gateway.wire.jsonrpc import Json, JsonObject, error_object

_TEXT: Final = {401: "The upstream requires authorization", 403: "The upstream forbids this request"}


class UpstreamRefused(Exception):  # noqa: N818 -- what the upstream did, to be judged by who owns the credential
    """An upstream answered 401 or 403.

    Args:
        status: the HTTP status.
        challenge: its `WWW-Authenticate`, None if there was none.
        error: the JSON-RPC error in its body, None if there was none.
    """

    def __init__(self, status: int, challenge: str | None, error: JsonObject | None) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.challenge = challenge
        self.error = error

    def to_client(self) -> ErrorReply:
        """What the client is told when the credential was its own: the same, with the challenge."""
        headers = (("www-authenticate", self.challenge),) if self.challenge else ()
        error = self.error or error_object(codes.INVALID_REQUEST, _TEXT[self.status])
        return ErrorReply(self.status, error, headers)

    def to_upstream_error(self, upstream: str) -> UpstreamError:
        """What the client is told when the credential was the gateway's: not its fault, and no challenge for it."""
        message = f"Upstream {upstream!r} does not accept the gateway's credentials (HTTP {self.status})"
        return UpstreamError(upstream, "unauthorized", message)


def refusal_of(reply: Reply, answer: Json) -> UpstreamRefused:
    """Read a 401 or 403."""
    error = answer.get("error") if isinstance(answer, dict) else None
    return UpstreamRefused(
        reply.status, reply.headers.get("WWW-Authenticate"), error if isinstance(error, dict) else None
    )
