"""Results, from a legacy server to a modern client.

The work is in proportion to the top level of a result, never to its content; only lists are looked at entry by entry.
"""

from collections.abc import Callable
from typing import Final

from gateway.translate.entries import to_modern_entries
from gateway.wire import meta, methods
from gateway.wire.jsonrpc import Json, JsonObject, encode

_ARRAYS: Final = {**methods.LIST_KEYS, methods.PROMPTS_GET: "messages", methods.RESOURCES_READ: "contents"}
"""The array that a result cannot do without; `tools/call` has rules of its own."""

_NULLABLE: Final = {
    **dict.fromkeys(methods.LIST_KEYS, "nextCursor"),
    methods.TOOLS_CALL: "isError",
    methods.PROMPTS_GET: "description",
}
"""Optional members that some servers write as null and every schema wants absent."""

_SCOPES: Final = ("private", "public")


def to_modern_result(
    method: str,
    result: Json,
    *,
    server_info: JsonObject | None,
    ttl_ms: int = 0,
    cache_scope: str = "private",
    after_round: bool = False,
    on_warning: Callable[[str], None],
) -> JsonObject:
    """Turn a legacy server's result into a complete modern one.

    Sources: 2026-07-28, basic/index ("resultType", "_meta"), server/utilities/caching, and the page of each method.

    Args:
        method: the request's method.
        result: what the server sent; not changed.
        server_info: the server's identity, for `_meta`; None leaves it out.
        ttl_ms: the `ttlMs` of a cacheable result to which the server gave none of its own.
        cache_scope: likewise, its `cacheScope`.
        after_round: the result depends on what a user answered, so nobody may keep it, whatever the server says.
        on_warning: receives one text for each entry of a list that was mended or left out.

    Returns:
        A new result. Members that are not named here are the very objects of the old one.

    Raises:
        ValueError: the result is not usable; the text names the member and the fault.
    """
    if not isinstance(result, dict):
        raise ValueError("the result is not an object")
    modern = dict(result)
    modern["resultType"] = "complete"
    _mend(method, modern)
    if method in methods.LIST_KEYS:
        _translate_list(method, modern, on_warning)
    if method in methods.CACHEABLE:
        _add_cache_hints(modern, *((0, "private") if after_round else (ttl_ms, cache_scope)), force=after_round)
    _add_server_info(modern, server_info)
    return modern


def empty_list(method: str, *, server_info: JsonObject | None) -> JsonObject:
    """Build the result of a list that a server does not have although it said so.

    Args:
        method: one of `gateway.wire.methods.LIST_KEYS`.
        server_info: the server's identity, for `_meta`; None leaves it out.
    """
    modern: JsonObject = {"resultType": "complete", methods.LIST_KEYS[method]: []}
    modern.update(ttlMs=0, cacheScope="private")
    _add_server_info(modern, server_info)
    return modern


def _mend(method: str, modern: JsonObject) -> None:
    nullable = _NULLABLE.get(method)
    if nullable is not None and modern.get(nullable, True) is None:
        del modern[nullable]
    if method == methods.TOOLS_CALL:
        _mend_tool_result(modern)
    elif method == methods.COMPLETE:
        _mend_completion(modern)
    elif method in _ARRAYS:
        _require_array(modern, _ARRAYS[method])


def _require_array(owner: JsonObject, member: str) -> None:
    """Null counts as empty: it is how Go writes a list that was never filled."""
    if member in owner and owner[member] is None:
        owner[member] = []
    if not isinstance(owner.get(member), list):
        raise ValueError(f"{member} is missing or not an array")


def _mend_tool_result(modern: JsonObject) -> None:
    if isinstance(modern.get("content"), list):
        return
    if modern.get("content") is not None:
        raise ValueError("content is not an array")
    if isinstance(modern.get("task"), dict):
        raise ValueError("content is missing: the server made a task of the call")
    structured = modern.get("structuredContent")
    modern["content"] = [] if structured is None else [{"type": "text", "text": _to_text(structured)}]


def _to_text(value: Json) -> str:
    return encode(value).decode()


def _mend_completion(modern: JsonObject) -> None:
    completion = modern.get("completion")
    if not isinstance(completion, dict):
        raise ValueError("completion is missing or not an object")
    if not isinstance(completion.get("values"), list):
        modern["completion"] = completion = dict(completion)
        _require_array(completion, "values")


def _translate_list(method: str, modern: JsonObject, on_warning: Callable[[str], None]) -> None:
    key = methods.LIST_KEYS[method]
    modern[key] = to_modern_entries(method, modern[key], on_warning)
    # A cursor that cannot go out as it came would end the list early without anybody noticing.
    if not isinstance(modern.get("nextCursor", ""), str):
        raise ValueError("nextCursor is not a string")


def _add_cache_hints(modern: JsonObject, ttl_ms: int, cache_scope: str, *, force: bool) -> None:
    if force or not _is_ttl(modern.get("ttlMs")):
        modern["ttlMs"] = ttl_ms
    if force or modern.get("cacheScope") not in _SCOPES:
        modern["cacheScope"] = cache_scope


def _is_ttl(value: Json) -> bool:
    return type(value) is int and value >= 0


def _add_server_info(modern: JsonObject, server_info: JsonObject | None) -> None:
    own = modern.get("_meta")
    kept = own if isinstance(own, dict) else {}
    if server_info is not None:
        modern["_meta"] = {**kept, meta.SERVER_INFO: server_info}
    elif "_meta" in modern:
        modern["_meta"] = kept
