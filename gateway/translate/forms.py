"""A form's content against its `requestedSchema` (2026-07-28, client/elicitation, "Requested Schema").

The flat subset of JSON Schema that elicitation allows, and no more: keywords outside of it are the server's to check.
Messages name the field, never its value.
"""

import re
from collections.abc import Callable, Iterator
from datetime import date, datetime
from typing import Final, TypeGuard

from gateway.wire.jsonrpc import Json, JsonObject

_NAME_LENGTH = 64
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s.][^@\s]{0,254}")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!#-;=?-\[\]_a-z~\u0080-\U0010ffff]+")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DATE_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt](\d{2}:\d{2}:)(\d{2})(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)", re.ASCII
)


def check_form(schema: Json, content: JsonObject) -> None:
    """Check the content of an accepted form.

    Args:
        schema: the `requestedSchema` of the question; whatever in it is malformed is not checked.
        content: the fields as the client sent them. Fields that the schema does not know are allowed, unless its
            `additionalProperties` is false.

    Raises:
        ValueError: a field is missing, unknown or wrong; the text names it.
    """
    if not isinstance(schema, dict):
        return
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    for name in _strings(schema.get("required")):
        if name not in content:
            raise ValueError(f"{_field(name)} is required")
    for name, value in content.items():
        if name in properties:
            _check_field(_field(name), properties[name], value)
        elif schema.get("additionalProperties") is False:
            raise ValueError(f"{_field(name)} is not a field of the form")


def _field(name: str) -> str:
    return f"content.{name[:_NAME_LENGTH]}"


def _strings(value: Json) -> list[str]:
    return [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []


def _check_field(field: str, schema: Json, value: Json) -> None:
    fault = next(_faults(schema, value), None) if isinstance(schema, dict) else None
    if fault is not None:
        raise ValueError(f"{field} {fault}")


def _faults(schema: JsonObject, value: Json) -> Iterator[str]:
    if not _is_of_type(schema.get("type"), value):
        yield f"must be {_TYPES[schema['type']][0]}"
    elif not _is_allowed(_choices(schema), value):
        yield "must be one of the choices"
    elif isinstance(value, str):
        yield from _string_faults(schema, value)
    elif isinstance(value, list):
        yield from _selection_faults(schema, value)
    elif _is_number(value):
        yield from _limit_faults(schema, "minimum", "maximum", value, "be {}")


def _string_faults(schema: JsonObject, value: str) -> Iterator[str]:
    yield from _limit_faults(schema, "minLength", "maxLength", len(value), "have {} characters")
    wanted = schema.get("format")
    if isinstance(wanted, str) and wanted in _FORMATS and not _FORMATS[wanted](value):
        yield f"must be in the format {wanted}"


def _selection_faults(schema: JsonObject, value: list[Json]) -> Iterator[str]:
    yield from _limit_faults(schema, "minItems", "maxItems", len(value), "have {} choices")
    items = schema.get("items")
    choices = _choices(items) if isinstance(items, dict) else None
    if not all(isinstance(entry, str) and _is_allowed(choices, entry) for entry in value):
        yield "must be a list of the choices"


def _limit_faults(schema: JsonObject, least: str, most: str, size: float, what: str) -> Iterator[str]:
    low, high = schema.get(least), schema.get(most)
    if _is_number(low) and size < low:
        yield "must " + what.format(f"at least {low}")
    if _is_number(high) and size > high:
        yield "must " + what.format(f"at most {high}")


def _choices(schema: JsonObject) -> list[Json] | None:
    """The values that an enum admits, in either of its spellings; None for what is not an enum."""
    if isinstance(schema.get("enum"), list):
        return list(schema["enum"])
    for spelling in ("oneOf", "anyOf"):
        options = schema.get(spelling)
        if isinstance(options, list) and options and all(isinstance(o, dict) and "const" in o for o in options):
            return [option["const"] for option in options]
    return None


def _is_allowed(choices: list[Json] | None, value: Json) -> bool:
    # JSON's true is not its 1, Python's is.
    is_bool = isinstance(value, bool)
    return choices is None or any(choice == value and isinstance(choice, bool) is is_bool for choice in choices)


def _is_of_type(declared: Json, value: Json) -> bool:
    return not isinstance(declared, str) or declared not in _TYPES or _TYPES[declared][1](value)


def _is_number(value: Json) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Json) -> bool:
    return _is_number(value) and value == value // 1


_TYPES: Final[dict[str, tuple[str, Callable[[Json], bool]]]] = {
    "string": ("a string", lambda value: isinstance(value, str)),
    "number": ("a number", _is_number),
    "integer": ("an integer", _is_integer),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "array": ("a list", lambda value: isinstance(value, list)),
}


def _is_date(value: str) -> bool:
    return _DATE.fullmatch(value) is not None and _parses(date.fromisoformat, value)


def _is_date_time(value: str) -> bool:
    """RFC 3339: an offset is required, and a leap second is a second."""
    match = _DATE_TIME.fullmatch(value)
    if match is None:
        return False
    seconds = "59" if match[3] == "60" else match[3]
    return _parses(datetime.fromisoformat, f"{match[1]}T{match[2]}{seconds}")


def _parses(parse: Callable[[str], object], value: str) -> bool:
    try:
        parse(value)
    except ValueError:
        return False
    return True


_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "email": lambda value: _EMAIL.fullmatch(value) is not None,
    "uri": lambda value: _URI.fullmatch(value) is not None,
    "date": _is_date,
    "date-time": _is_date_time,
}
