"""Sorts what a legacy server sends into events of an exchange, and what concerns the session as a whole."""

from dataclasses import dataclass
from typing import Final, TypeAlias, TypeGuard

from gateway.core.exchange_events import Asked, Notified, Responded, Withdrew
from gateway.wire import meta, methods
from gateway.wire.jsonrpc import Json, JsonObject, RequestId, is_request_id


@dataclass(frozen=True, slots=True)
class Pinged:
    """The server wants to know whether anybody is there."""

    request_id: RequestId


@dataclass(frozen=True, slots=True)
class Changed:
    """The server says that a list or a resource is not what it was."""

    message: JsonObject


Incoming: TypeAlias = Responded | Asked | Notified | Withdrew | Pinged | Changed

_CHANGES: Final = frozenset(
    {methods.TOOLS_CHANGED, methods.PROMPTS_CHANGED, methods.RESOURCES_CHANGED, methods.RESOURCE_UPDATED}
)


def sort(message: Json, request_id: str | None, *, is_own_stream: bool) -> Incoming | None:
    """Say what a message of the server is; None if it means nothing here.

    Args:
        message: one decoded message.
        request_id: the id of the request that is in flight, None if there is none.
        is_own_stream: whether the message came in answer to that very request, so that an error without a readable
            id (many servers send one) can only be about it.
    """
    if not isinstance(message, dict):
        return None
    method = message.get("method")
    if isinstance(method, str):
        return _sort_request(message, method) if message.get("id") is not None else _sort_notification(message, method)
    if request_id is None:
        return None
    if message.get("id") == request_id and ("result" in message or "error" in message):
        return Responded(message)
    if is_own_stream and "error" in message and not is_foreign(message.get("id")):
        return Responded(message)
    return None


def _sort_request(message: JsonObject, method: str) -> Incoming | None:
    request_id = message["id"]
    if not is_request_id(request_id):
        return None
    return Pinged(request_id) if method == methods.PING else Asked(message)


def _sort_notification(message: JsonObject, method: str) -> Incoming | None:
    if method == methods.CANCELLED:
        params = message.get("params")
        withdrawn = params.get("requestId") if isinstance(params, dict) else None
        return Withdrew(withdrawn) if is_request_id(withdrawn) else None
    return Changed(message) if method in _CHANGES else Notified(message)


def is_foreign(request_id: Json) -> bool:
    """Whether an error's id is that of some other request; null and made-up words such as "server-error" are not."""
    return isinstance(request_id, int) and not isinstance(request_id, bool)


def split(decoded: Json) -> list[Json]:
    """The messages in a body: one, or a batch as 2025-03-26 allows."""
    return decoded if isinstance(decoded, list) else [decoded]


def is_response(message: Json) -> TypeGuard[JsonObject]:
    """Whether a body is a JSON-RPC response; proxies too have errors to tell, in JSON of their own."""
    return (
        isinstance(message, dict)
        and ("result" in message or "error" in message)
        and ("jsonrpc" in message or "id" in message)
    )


def is_response_to(message: Json, request_id: str) -> TypeGuard[JsonObject]:
    """Whether a message on the stream of a request is its response; some servers answer with a null id."""
    return (
        isinstance(message, dict)
        and "method" not in message
        and ("error" in message or "result" in message)
        and (message.get("id") == request_id or message.get("id") is None)
    )


def call_named_by(message: Json) -> str | None:
    """The id of the call that a message says it belongs to: a response, or progress."""
    if not isinstance(message, dict):
        return None
    if "method" not in message:
        named = message.get("id")
    else:
        params = message.get("params") if message["method"] == methods.PROGRESS else None
        named = params.get(meta.PROGRESS_TOKEN) if isinstance(params, dict) else None
    return named if isinstance(named, str) else None
