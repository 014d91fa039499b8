"""The `x-mcp-header` marks of a tool (2026-07-28, basic/transports/streamable-http, "Custom Headers").

A mark asks clients to mirror an argument into an `Mcp-Param-*` header. Rule: a mark counts only where a chain of
`properties` leads from the root of `inputSchema`; anywhere else nobody could say which argument it means, and then the
whole tool is invalid.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from gateway.wire.jsonrpc import Json, JsonObject, encode

KEYWORD: Final = "x-mcp-header"

MarkType: TypeAlias = Literal["string", "integer", "boolean"]

_TYPES: Final[dict[str, MarkType]] = {name: name for name in get_args(MarkType)}
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NEEDLE = b'"x-mcp-header"'

_SUBSCHEMAS: Final = frozenset(
    {
        *("items", "prefixItems", "contains", "additionalItems", "unevaluatedItems"),
        *("additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema"),
        *("allOf", "anyOf", "oneOf", "not", "if", "then", "else"),
    }
)
"""Keywords that hold a schema or a list of them. What stands at others (`default`, `enum`) is data, never a mark."""

_SUBSCHEMA_MAPS: Final = frozenset({"patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"})


@dataclass(frozen=True, slots=True)
class ParamMark:
    """One argument that clients mirror into a header.

    Args:
        header: the part of the header's name after `Mcp-Param-`, as the tool wrote it.
        path: the property names that lead to the argument from `arguments`.
        type: how the value is written and compared.
    """

    header: str
    path: tuple[str, ...]
    type: MarkType


@dataclass(frozen=True, slots=True)
class _Place:
    schema: Json
    path: tuple[str, ...]
    is_reachable: bool


def marks_of(tool: JsonObject) -> tuple[ParamMark, ...]:
    """Collect the marks of a tool.

    Args:
        tool: an entry of a tools list.

    Returns:
        The marks, those nearest to the root first; empty for nearly every tool there is.

    Raises:
        ValueError: a mark is invalid, and with it the tool; the text names the place and the fault.
    """
    schema = tool.get("inputSchema")
    if not _may_have_marks(schema):
        return ()
    marks: dict[str, ParamMark] = {}
    for place in _places(schema):
        if isinstance(place.schema, dict) and KEYWORD in place.schema:
            mark = _to_mark(place)
            if mark.header.lower() in marks:
                raise ValueError(f"{_name(place)}: {KEYWORD} repeats a header name")
            marks[mark.header.lower()] = mark
    return tuple(marks.values())


def _may_have_marks(schema: Json) -> bool:
    # Encoding and searching costs a hundredth of walking, and schemas with marks are rare.
    try:
        return _NEEDLE in encode(schema)
    except ValueError:
        return True


def _to_mark(place: _Place) -> ParamMark:
    header, type_ = place.schema[KEYWORD], place.schema.get("type")
    if not place.is_reachable or not place.path:
        raise ValueError(f"{_name(place)}: {KEYWORD} is not reached through properties alone")
    if not isinstance(header, str) or _TOKEN.fullmatch(header) is None:
        raise ValueError(f"{_name(place)}: {KEYWORD} is not a header name")
    if not isinstance(type_, str) or type_ not in _TYPES:
        raise ValueError(f"{_name(place)}: {KEYWORD} needs the type string, integer or boolean")
    return ParamMark(header, place.path, _TYPES[type_])


def _name(place: _Place) -> str:
    return ".".join(("inputSchema", *place.path))


def _places(root: Json) -> Iterator[_Place]:
    """Every schema within a schema, level by level; no recursion, since depth is the server's choice."""
    level = [_Place(root, (), True)]
    while level:
        yield from level
        level = [child for place in level for child in _children(place)]


def _children(place: _Place) -> Iterator[_Place]:
    if isinstance(place.schema, list):
        yield from (_Place(child, place.path, False) for child in place.schema)
    if not isinstance(place.schema, dict):
        return
    for keyword, value in place.schema.items():
        if keyword == "properties" and isinstance(value, dict):
            for name, child in value.items():
                yield _Place(child, (*place.path, name), place.is_reachable)
        elif keyword in _SUBSCHEMAS:
            yield _Place(value, place.path, False)
        elif keyword in _SUBSCHEMA_MAPS and isinstance(value, dict):
            yield from (_Place(child, place.path, False) for child in value.values())
