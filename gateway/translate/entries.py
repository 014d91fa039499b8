"""The entries of lists, from a legacy server to a modern client.

Rule: one bad entry never hides the others. Where the meaning of a fault is plain the entry is mended, else it is left
out, and either way one warning names it. Warnings name members, never their values.
"""

from collections.abc import Callable
from typing import Final

from gateway.translate.param_marks import marks_of
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject

_NOUNS: Final = {
    methods.TOOLS_LIST: "tool",
    methods.PROMPTS_LIST: "prompt",
    methods.RESOURCES_LIST: "resource",
    methods.RESOURCE_TEMPLATES_LIST: "resource template",
}
_IDENTIFIERS: Final = {
    methods.TOOLS_LIST: "name",
    methods.PROMPTS_LIST: "name",
    methods.RESOURCES_LIST: "uri",
    methods.RESOURCE_TEMPLATES_LIST: "uriTemplate",
}
_OPTIONAL: Final[dict[str, type]] = {
    "title": str,
    "description": str,
    "icons": list,
    "annotations": dict,
    "_meta": dict,
}
_OPTIONAL_OF: Final[dict[str, dict[str, type]]] = {
    methods.TOOLS_LIST: _OPTIONAL,
    methods.PROMPTS_LIST: {"title": str, "description": str, "icons": list, "arguments": list, "_meta": dict},
    methods.RESOURCES_LIST: {**_OPTIONAL, "mimeType": str, "size": int},
    methods.RESOURCE_TEMPLATES_LIST: {**_OPTIONAL, "mimeType": str},
}
_ARTICLES: Final = {str: "a string", list: "a list", dict: "an object", int: "an integer"}
_TYPE_NAMES: Final = frozenset({"null", "boolean", "object", "array", "number", "string", "integer"})
_LABEL_LENGTH = 128


def to_modern_entries(method: str, entries: list[Json], on_warning: Callable[[str], None]) -> list[JsonObject]:
    """Translate the entries of a list, each for itself.

    Args:
        method: one of `gateway.wire.methods.LIST_KEYS`.
        entries: what stood in the list; not changed.
        on_warning: receives one text for every entry that was mended or left out.

    Returns:
        The entries that a modern client can use, in their order.
    """
    kept: dict[str, JsonObject] = {}
    for position, entry in enumerate(entries, 1):
        repairs: list[str] = []
        try:
            identifier = _identifier(method, entry)
            if identifier in kept:
                raise ValueError("an earlier entry has the same name")
            kept[identifier] = _to_modern_entry(method, entry, repairs)
        except ValueError as fault:
            on_warning(f"{_label(method, entry, position)} is left out: {fault}")
            continue
        if repairs:
            on_warning(f"{_label(method, entry, position)} is mended: {', '.join(repairs)}")
    return list(kept.values())


def _label(method: str, entry: Json, position: int) -> str:
    identifier = entry.get(_IDENTIFIERS[method]) if isinstance(entry, dict) else None
    name = repr(identifier[:_LABEL_LENGTH]) if isinstance(identifier, str) else f"number {position}"
    return f"{_NOUNS[method]} {name}"


def _identifier(method: str, entry: Json) -> str:
    if not isinstance(entry, dict):
        raise ValueError("it is not an object")
    identifier = entry.get(_IDENTIFIERS[method])
    if not isinstance(identifier, str) or not identifier:
        raise ValueError(f"it has no {_IDENTIFIERS[method]}")
    return identifier


def _to_modern_entry(method: str, entry: JsonObject, repairs: list[str]) -> JsonObject:
    modern = _to_modern_tool(entry, repairs) if method == methods.TOOLS_LIST else dict(entry)
    for member, wanted in _OPTIONAL_OF[method].items():
        if member in modern and type(modern[member]) is not wanted:
            del modern[member]
            repairs.append(f"{member} was not {_ARTICLES[wanted]}")
    if not isinstance(modern.get("name"), str):
        modern["name"] = entry[_IDENTIFIERS[method]]
        repairs.append("it had no name")
    return modern


def _to_modern_tool(entry: JsonObject, repairs: list[str]) -> JsonObject:
    """Translate a tool (2026-07-28, server/tools, "Tool").

    Raises:
        ValueError: no modern client could call it.
    """
    execution = entry.get("execution")
    if isinstance(execution, dict) and execution.get("taskSupport") == "required":
        raise ValueError("it can only be called as a task")
    modern = {member: value for member, value in entry.items() if member != "execution"}
    modern["inputSchema"] = _to_input_schema(modern.get("inputSchema"), repairs)
    if "outputSchema" in modern and not _is_output_schema(modern["outputSchema"]):
        del modern["outputSchema"]
        repairs.append("outputSchema was not a schema object")
    marks_of(modern)
    return modern


def _to_input_schema(schema: Json, repairs: list[str]) -> JsonObject:
    """Make sure of what clients insist on: an object whose `type` is "object" (servers exist that omit it)."""
    if not isinstance(schema, dict):
        repairs.append("inputSchema was missing or not an object")
        return {"type": "object"}
    mended: JsonObject = {}
    if schema.get("type") != "object":
        mended["type"] = _to_object_type(schema.get("type"))
        repairs.append("inputSchema was not of type object")
    if not schema.get("properties", True) and not isinstance(schema["properties"], dict):
        mended["properties"] = {}  # null, or the empty array that PHP makes of an empty map
        repairs.append("inputSchema.properties was not an object")
    if not isinstance(schema.get("$schema", ""), str):
        raise ValueError("inputSchema.$schema is not a string")
    return {**schema, **mended} if mended else schema


def _to_object_type(declared: Json) -> str:
    if declared is None or (isinstance(declared, list) and "object" in declared):
        return "object"
    raise ValueError("inputSchema is of a type that arguments cannot have")


def _is_output_schema(schema: Json) -> bool:
    if not isinstance(schema, dict) or not isinstance(schema.get("$schema", ""), str):
        return False
    declared = schema.get("type", "object")
    names = declared if isinstance(declared, list) else [declared]
    return all(isinstance(name, str) and name in _TYPE_NAMES for name in names)
