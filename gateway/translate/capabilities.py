"""What a client declares, request by request, and what a legacy server may therefore ask of it.

A modern client declares capabilities with every request, a legacy session has them once, from `initialize`. So a
session is opened with what the request declared, and its key contains the same.
"""

import json
from collections.abc import Iterable
from typing import Final

from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject

_ASKABLE: Final = ("elicitation", "sampling", "roots")
_SUB_CAPABILITIES_SINCE: Final = "2025-11-25"
_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def to_legacy_capabilities(client_capabilities: JsonObject, version: str) -> JsonObject:
    """Turn the declared capabilities into those of an `initialize`.

    Only `elicitation`, `sampling`, `roots` and `experimental` cross; `extensions`, `tasks` and whatever else do not,
    since the gateway could not keep what they promise. `roots.listChanged` does not either: 2026-07-28 has no
    notification to keep that promise with.

    Args:
        client_capabilities: `_meta["io.modelcontextprotocol/clientCapabilities"]`; not changed.
        version: the legacy version that `initialize` names; before 2025-11-25 there were no sub-capabilities.

    Returns:
        The `capabilities` of `initialize`.
    """
    legacy: JsonObject = {}
    has_parts = version >= _SUB_CAPABILITIES_SINCE  # versions are dates, and sort as such
    elicitation = _to_legacy_elicitation(client_capabilities.get("elicitation"), has_parts)
    if elicitation is not None:
        legacy["elicitation"] = elicitation
    sampling = client_capabilities.get("sampling")
    if isinstance(sampling, dict):
        legacy["sampling"] = sampling if has_parts else _without(sampling, "tools", "context")
    roots = client_capabilities.get("roots")
    if isinstance(roots, dict):
        legacy["roots"] = _without(roots, "listChanged")
    experimental = client_capabilities.get("experimental")
    if isinstance(experimental, dict):
        legacy["experimental"] = experimental
    return legacy


def _to_legacy_elicitation(declared: Json, has_parts: bool) -> JsonObject | None:
    if not isinstance(declared, dict):
        return None
    if has_parts:
        return declared or {"form": {}}
    # To an older server elicitation means forms, and nothing else.
    return _without(declared, "form", "url") if _has_mode(declared, "form") else None


def _without(value: JsonObject, *keys: str) -> JsonObject:
    return {key: kept for key, kept in value.items() if key not in keys}


def can_ask(capabilities: JsonObject) -> bool:
    """Whether a server that sees these capabilities may ask its client anything in mid-call."""
    return any(name in capabilities for name in _ASKABLE)


def canonical(capabilities: JsonObject) -> str:
    """Write capabilities as text that is equal for equal ones, whatever the order of their keys."""
    return _CANONICAL.encode(capabilities) if capabilities else "{}"


def missing_for(question_method: str, question_params: JsonObject | None, declared: JsonObject) -> JsonObject | None:
    """Name the capabilities that a question needs and the request did not declare.

    Sources: 2026-07-28, client/elicitation, client/sampling, client/roots ("Capabilities").

    Args:
        question_method: one of `gateway.wire.methods.QUESTIONS`.
        question_params: the parameters of the question.
        declared: the request's `clientCapabilities`.

    Returns:
        Exactly the missing ones, as `data.requiredCapabilities` of `-32021` wants them; None when nothing is missing.
    """
    params = question_params or {}
    if question_method == methods.ELICIT:
        return _missing_elicitation(params, declared.get("elicitation"))
    if question_method == methods.SAMPLE:
        return _missing_sampling(params, declared.get("sampling"))
    return None if isinstance(declared.get("roots"), dict) else {"roots": {}}


def _missing_elicitation(params: JsonObject, declared: Json) -> JsonObject | None:
    mode = params.get("mode")
    mode = mode if isinstance(mode, str) else "form"
    if isinstance(declared, dict) and _has_mode(declared, mode):
        return None
    return {"elicitation": {mode: {}}}


def _has_mode(elicitation: JsonObject, mode: str) -> bool:
    """An empty `elicitation` has always meant forms."""
    return isinstance(elicitation.get(mode), dict) or (mode == "form" and not elicitation)


def _missing_sampling(params: JsonObject, declared: Json) -> JsonObject | None:
    needed = []
    if params.get("tools") is not None or params.get("toolChoice") is not None:
        needed.append("tools")
    if params.get("includeContext") not in (None, "none"):
        needed.append("context")
    if not isinstance(declared, dict):
        return {"sampling": {part: {} for part in needed}}
    missing = [part for part in needed if not isinstance(declared.get(part), dict)]
    return {"sampling": {part: {} for part in missing}} if missing else None


def merge(parts: Iterable[JsonObject | None]) -> JsonObject | None:
    """Unite what several questions miss, so that one `-32021` names it all.

    Args:
        parts: answers of `missing_for`.

    Returns:
        One capabilities object, or None when every part was None.
    """
    united: JsonObject = {}
    for part in parts:
        for name, sub in (part or {}).items():
            united[name] = {**united.get(name, {}), **sub}
    return united or None
