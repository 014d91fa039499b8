"""What the validation ladder hands on: a request, a notification, or a refusal that knows whose it is."""

from dataclasses import dataclass, field
from typing import Final

from gateway.errors import ProtocolError
from gateway.wire import codes
from gateway.wire.jsonrpc import Json, JsonObject, RequestId

_LONGEST_SHOWN: Final = 256


@dataclass(slots=True)
class InboundRequest:
    """A valid request of revision 2026-07-28. Never changed; not frozen, since that costs each request 3 microseconds.

    Attributes:
        id: as the client wrote it, string or integer.
        method: one of `methods.MODERN_REQUESTS`.
        params: as received; never changed, since other parts of the gateway read it.
        meta: `params._meta`.
        capabilities: what the client can do, for this request alone.
        client_info: who the client says it is, for the log; None if it does not say.
        log_level: the least severe log message that it wants; None: none at all.
        progress_token: None: no progress wanted.
        target: the name or URI that `Mcp-Name` mirrors, or would if it were a string.
        param_headers: the `Mcp-Param-*` headers of a `tools/call`, by lower-case suffix.
        input_responses: answers to questions, of a method that may ask.
        request_state: the token of the round that they answer.
    """

    id: RequestId
    method: str
    params: JsonObject
    meta: JsonObject
    capabilities: JsonObject
    client_info: JsonObject | None = None
    log_level: str | None = None
    progress_token: str | int | None = None
    target: str | None = None
    param_headers: dict[str, bytes] = field(default_factory=dict)
    input_responses: JsonObject | None = None
    request_state: str | None = None


@dataclass(frozen=True, slots=True)
class InboundNotification:
    """A notification: 202, whatever it says."""

    method: str
    params: JsonObject


class InboundError(ProtocolError):
    """A refused request, with the id that its reply must carry (None: it could not be read)."""

    def __init__(self, error: ProtocolError, request_id: RequestId | None) -> None:
        super().__init__(
            error.code,
            error.message,
            error.data,
            status=error.status,
            reason=error.reason,
            headers=error.headers,
        )
        self.request_id = request_id


def invalid_params(message: str) -> ProtocolError:
    """-32602; the message names the member and what it must be, never its value."""
    return ProtocolError(codes.INVALID_PARAMS, message)


def header_mismatch(message: str, header: bytes | str | None, body: Json) -> ProtocolError:
    """-32020 with both values in `data`, cut to a length that fits a log line."""
    return ProtocolError(codes.HEADER_MISMATCH, message, {"header": shown(header), "body": shown(body)})


def shown(value: Json) -> str | None:
    """A value from the client as text for an error's `data`: at most 256 characters; None for what is no text."""
    if isinstance(value, bytes):
        value = value[:_LONGEST_SHOWN].decode("ascii", "backslashreplace")
    return value[:_LONGEST_SHOWN] if isinstance(value, str) else None
