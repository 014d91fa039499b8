"""Notifications, from a legacy server to a modern client.

Sources: 2026-07-28, basic/patterns/progress, server/utilities/logging, basic/patterns/subscriptions.
"""

from typing import Final

from gateway.translate.metadata import without_protocol_keys
from gateway.wire import meta
from gateway.wire.jsonrpc import Json, JsonObject

_NULLABLE: Final = ("total", "message", "logger")


def to_modern_progress(params: JsonObject, token: str | int) -> JsonObject:
    """Give progress the token that the client chose.

    Args:
        params: of the server's notification, with the gateway's own token; not changed.
        token: the client's, of the type that the client sent.
    """
    return {**_cleaned(params), meta.PROGRESS_TOKEN: token}


def progress_of(params: Json) -> int | float | None:
    """Read how far a call is; None when a notification does not say so with a number, and so must not go out."""
    value = params.get("progress") if isinstance(params, dict) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def passes(level: str | None, params: Json) -> bool:
    """Whether a log message may go to a client.

    Args:
        level: the request's own `logLevel`; None lets nothing pass.
        params: of the server's `notifications/message`.
    """
    if level is None or not isinstance(params, dict):
        return False
    rank = _rank(params.get("level"))
    return rank is not None and rank >= meta.LOG_RANK[level]


def _rank(level: Json) -> int | None:
    return meta.LOG_RANK.get(level) if isinstance(level, str) else None


def to_modern_message(params: JsonObject) -> JsonObject:
    """Clean the parameters of a log message that passes; `data` is there even if the server sent none."""
    cleaned = _cleaned(params)
    cleaned.setdefault("data", None)
    return cleaned


def to_modern_change(params: JsonObject | None, subscription_id: str | int) -> JsonObject:
    """Tag a `list_changed` or `updated` with the listen request that it goes to.

    Args:
        params: of the server's notification, if it had any; not changed.
        subscription_id: the id of the client's `subscriptions/listen`, of the type that the client sent.
    """
    cleaned = _cleaned(params or {})
    cleaned["_meta"] = {**cleaned.get("_meta", {}), meta.SUBSCRIPTION_ID: subscription_id}
    return cleaned


def _cleaned(params: JsonObject) -> JsonObject:
    """Copy without nulls that mean absent, and without protocol keys that only the gateway may set."""
    cleaned = {key: value for key, value in params.items() if value is not None or key not in _NULLABLE}
    kept = without_protocol_keys(cleaned.pop("_meta", None))
    if kept:
        cleaned["_meta"] = kept
    return cleaned
