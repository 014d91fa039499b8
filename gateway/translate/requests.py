"""Requests, from a modern client to a legacy server.

Method names are the same in both eras; what differs is what stands around the parameters.
"""

from typing import Final

from gateway.translate import trace
from gateway.translate.metadata import without_protocol_keys
from gateway.wire import meta, methods
from gateway.wire.jsonrpc import Json, JsonObject

_NEEDS_PARAMS: Final = frozenset({*methods.TARGET_PARAM, methods.COMPLETE})
"""The requests whose `params` no legacy schema lets be absent."""


def to_legacy_request(method: str, params: JsonObject | None, progress_token: str | None) -> JsonObject | None:
    """Turn a modern request's parameters into what a legacy server expects.

    The envelope of 2026-07-28 goes (basic/index, "_meta"; basic/patterns/mrtr): every `io.modelcontextprotocol/*` key,
    `inputResponses`, `requestState`; so does `task` on `tools/call`, which would make a 2025-11-25 server answer with a
    task instead of a result. A null cursor is left out, an empty one is a cursor like any other (server/utilities/
    pagination). Trace keys that are malformed are left out.

    Args:
        method: the request's method.
        params: as the client sent them; not changed.
        progress_token: the gateway's own token for this call, or None when the client asked for no progress.

    Returns:
        New params, or None where the legacy schemas allow a request without any.
    """
    legacy = dict(params) if params else {}
    legacy.pop("inputResponses", None)
    legacy.pop("requestState", None)
    if method == methods.TOOLS_CALL:
        legacy.pop("task", None)
    elif method in methods.LIST_KEYS and legacy.get("cursor") is None:
        legacy.pop("cursor", None)
    kept = _to_legacy_meta(legacy.pop("_meta", None), progress_token)
    if kept:
        legacy["_meta"] = kept
    return legacy if legacy or method in _NEEDS_PARAMS else None


def _to_legacy_meta(value: Json, progress_token: str | None) -> JsonObject:
    kept = without_protocol_keys(value)
    kept.pop(meta.PROGRESS_TOKEN, None)
    for key in meta.TRACE_KEYS & kept.keys():
        if not trace.is_valid(key, kept[key]):
            del kept[key]
    if progress_token is not None:
        kept[meta.PROGRESS_TOKEN] = progress_token
    return kept
