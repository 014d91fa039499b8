"""The exceptions of the gateway, and how each becomes a reply.

    GatewayError
      ProtocolError    the client's fault; its message is safe to put on the wire
      UpstreamError    an upstream is unreachable, timed out, speaks nonsense, or lost a session
      ConfigError      the operator's fault; lists every problem at once (gateway.config)
      ListenError      an address that the gateway cannot listen on

A JSON-RPC error that a server sent is data: it is translated, never raised. May import only `wire`.
"""

from dataclasses import dataclass
from typing import Final

from gateway.wire import codes
from gateway.wire.jsonrpc import Json, JsonObject, error_object


class GatewayError(Exception):
    """Any failure that the gateway foresees."""


class ProtocolError(GatewayError):
    """A request that the gateway refuses.

    Args:
        code: the JSON-RPC error code.
        message: goes on the wire as it is: what, where, and how to mend it; never a value from the request's arguments.
        data: the error's `data`, left out when None.
        status: the HTTP status; by default what `codes.STATUS` says of the code.
        reason: a word for the log when the wire must not tell; never on the wire.
        headers: extra response headers, lower-case names.
    """

    def __init__(
        self,
        code: int,
        message: str,
        data: Json = None,
        *,
        status: int | None = None,
        reason: str | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.status = codes.STATUS[code] if status is None else status
        self.reason = reason
        self.headers = headers


UPSTREAM_STATUS: Final = {
    "unreachable": 502,
    "nonsense": 502,
    "session_lost": 502,
    "outcome_unknown": 502,
    "too_large": 502,
    "unauthorized": 502,
    "timeout": 504,
    "full": 503,
}
"""Why an upstream failed, and the HTTP status that tells the client."""


class UpstreamError(GatewayError):
    """An upstream did not do its part.

    Args:
        upstream: its configured name (never its URL or address).
        reason: a key of `UPSTREAM_STATUS`.
        message: what happened, safe for the wire.
        retryable: whether the request certainly did not execute, so that sending it again is safe.
        retry_after_s: seconds for a `Retry-After` header.
    """

    def __init__(
        self, upstream: str, reason: str, message: str, *, retryable: bool = False, retry_after_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.upstream = upstream
        self.reason = reason
        self.message = message
        self.retryable = retryable
        self.retry_after_s = retry_after_s


class ListenError(GatewayError):
    """An address cannot be listened on; the message is one line that says which, why, and what to do."""


@dataclass(frozen=True, slots=True)
class ErrorReply:
    """An error, ready for the wire: HTTP status, JSON-RPC error object, extra headers (lower-case names)."""

    status: int
    error: JsonObject
    headers: tuple[tuple[str, str], ...] = ()


def to_reply(error: GatewayError) -> ErrorReply:
    """Turn a foreseen failure into what the client is told."""
    if isinstance(error, ProtocolError):
        return ErrorReply(error.status, error_object(error.code, error.message, error.data), error.headers)
    if isinstance(error, UpstreamError):
        return _upstream_reply(error)
    raise AssertionError(f"{type(error).__name__} never reaches a client")


def _upstream_reply(error: UpstreamError) -> ErrorReply:
    data = {"upstream": error.upstream, "reason": error.reason, "retryable": error.retryable}
    headers: tuple[tuple[str, str], ...] = ()
    if error.retry_after_s is not None:
        headers = (("retry-after", str(error.retry_after_s)),)
    return ErrorReply(UPSTREAM_STATUS[error.reason], error_object(codes.INTERNAL_ERROR, error.message, data), headers)
