"""`server/discover`, answered from a legacy server's `initialize` (2026-07-28, server/discover)."""

from typing import Final

from gateway.translate.metadata import without_protocol_keys
from gateway.wire import meta, methods, versions
from gateway.wire.jsonrpc import Json, JsonObject

_METHODS: Final = {
    "tools": frozenset({methods.TOOLS_LIST}),
    "prompts": frozenset({methods.PROMPTS_LIST}),
    "resources": frozenset({methods.RESOURCES_LIST, methods.RESOURCE_TEMPLATES_LIST}),
    "completions": frozenset({methods.COMPLETE}),
    "logging": frozenset({methods.SET_LEVEL}),
}
"""What crosses, each with the methods that make good on it. `tasks` and `extensions` would have to be bridged."""

_LISTED: Final = frozenset({"tools", "prompts", "resources"})
_NOTIFIED: Final = ("listChanged", "subscribe")


def to_discover_result(
    initialize_result: JsonObject,
    *,
    absent: frozenset[str] = frozenset(),
    present: frozenset[str] = frozenset(),
    watchable: bool,
    polled: bool = False,
    ttl_ms: int = 0,
    cache_scope: str = "private",
) -> JsonObject:
    """Build the discover result of a server that only knows `initialize`.

    Args:
        initialize_result: what the server answered; not changed.
        absent: see `to_modern_capabilities`.
        present: see `to_modern_capabilities`.
        watchable: see `to_modern_capabilities`.
        polled: see `to_modern_capabilities`.
        ttl_ms: the result's `ttlMs`.
        cache_scope: the result's `cacheScope`.

    Returns:
        A complete result. Its `supportedVersions` are the gateway's own, since it is the gateway that the client talks
        to; the server's identity stands in `_meta`.
    """
    capabilities = to_modern_capabilities(
        initialize_result.get("capabilities"), absent=absent, present=present, watchable=watchable, polled=polled
    )
    result: JsonObject = {
        "resultType": "complete",
        "supportedVersions": list(versions.SUPPORTED),
        "capabilities": capabilities,
        "ttlMs": ttl_ms,
        "cacheScope": cache_scope,
    }
    instructions = initialize_result.get("instructions")
    if isinstance(instructions, str):
        result["instructions"] = instructions
    return _with_meta(result, initialize_result)


def _with_meta(result: JsonObject, initialize_result: JsonObject) -> JsonObject:
    kept = without_protocol_keys(initialize_result.get("_meta"))
    server_info = server_info_of(initialize_result)
    if server_info is not None:
        kept[meta.SERVER_INFO] = server_info
    return {**result, "_meta": kept} if kept else result


def server_info_of(initialize_result: JsonObject) -> JsonObject | None:
    """Read a server's identity, such that it may stand in the `_meta` of a result.

    Returns:
        The `serverInfo` without its nulls and with a version, which may be empty; None when it has no name.
    """
    info = initialize_result.get("serverInfo")
    if not isinstance(info, dict) or not isinstance(info.get("name"), str):
        return None
    kept = {key: value for key, value in info.items() if value is not None}
    return kept if isinstance(kept.get("version"), str) else {**kept, "version": ""}


def to_modern_capabilities(
    capabilities: Json,
    *,
    absent: frozenset[str] = frozenset(),
    present: frozenset[str] = frozenset(),
    watchable: bool,
    polled: bool = False,
) -> JsonObject:
    """Turn what a server declared into what the gateway can promise for it.

    Args:
        capabilities: of the `initialize` result; anything but an object counts as none.
        absent: what turned out to be missing: methods, or capabilities as a whole. A capability of several lists goes
            only with the last of them.
        present: capabilities that work although the server did not declare them.
        watchable: whether the gateway hears of changes (a session with a GET stream); if not, nothing is promised.
        polled: whether the gateway finds out by itself when a list has changed.

    Returns:
        New capabilities: tools, prompts, resources, completions, logging and experimental only.
    """
    declared = capabilities if isinstance(capabilities, dict) else {}
    modern: JsonObject = {}
    for name, served_by in _METHODS.items():
        value = declared.get(name)
        is_there = name in present or (value is not None and value is not False)
        if is_there and name not in absent and not served_by <= absent:
            modern[name] = _to_modern_capability(value, watchable)
            if polled and name in _LISTED:
                modern[name]["listChanged"] = True
    experimental = declared.get("experimental")
    if isinstance(experimental, dict):
        modern["experimental"] = {key: value for key, value in experimental.items() if isinstance(value, dict)}
    return modern


def _to_modern_capability(value: Json, watchable: bool) -> JsonObject:
    if not isinstance(value, dict):
        return {}
    return {key: kept for key, kept in value.items() if key not in _NOTIFIED or (watchable and kept is True)}
