"""The model's verdict in the operator's words: each pydantic error becomes a Problem with its line and remedy."""

import types
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from gateway.config.document import Document, KeyPath
from gateway.config.model import Settings
from gateway.config.problems import Problem
from gateway.wire.jsonrpc import Json, JsonObject

_STRUCTURE: Final = {
    "model_type": "not a mapping",
    "model_attributes_type": "not a mapping",
    "dict_type": "not a mapping",
    "mapping_type": "not a mapping",
    "tuple_type": "not a list",
    "frozen_set_type": "not a list",
    "string_type": "not text",
    "bool_type": "neither true nor false",
    "bool_parsing": "neither true nor false",
}
_ALLOWED: Final = {
    "not a mapping": "keys and values, indented below it",
    "not a list": "[ITEM, ...], or lines that start with -",
    "not text": "text",
    "neither true nor false": "true, false",
}
_LIMITS: Final = {
    "greater_than": ("gt", "more than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than_equal": ("le", "at most"),
}
_OTHER_NAMES: Final = {"mcpservers": "upstreams", "servers": "upstreams", "serverurl": "url", "endpoint": "url"}
"""What other programs call a key of ours."""
_LONGEST: Final = 80


def check(document: Document, tree: JsonObject, unknown: frozenset[KeyPath]) -> tuple[Settings | None, list[Problem]]:
    """Check a tree against the model.

    Args:
        document: where the tree comes from.
        tree: the values to check.
        unknown: paths whose values could not be told; what the model says of them is left out.

    Returns:
        The settings, or None and the problems.
    """
    try:
        return Settings.model_validate(tree), []
    except ValidationError as error:
        problems = [
            problem
            for detail in error.errors(include_url=False)
            if not _concerns(detail["loc"], unknown)
            for problem in _explain(document, detail)
        ]
        return None, problems


def _concerns(path: KeyPath, unknown: frozenset[KeyPath]) -> bool:
    return any(path[:length] in unknown for length in range(1, len(path) + 1))


def _explain(document: Document, detail: ErrorDetails) -> Iterator[Problem]:
    path = tuple(part for part in detail["loc"] if part != "[key]")
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "config_many":
        for error in context["errors"]:
            yield _parsed(document, path, detail["input"], error.message(), error.context or {})
    elif kind == "config":
        yield _parsed(document, path, detail["input"], detail["msg"], context)
    elif kind == "extra_forbidden":
        yield _unknown_key(document, path)
    elif kind == "missing":
        remedy = "write url: https://docs.example.com/mcp" if path[-1] == "url" else f"write {path[-1]}: ..."
        yield document.problem(path, "missing", remedy=remedy)
    else:
        yield _built_in(document, path, detail)


def _parsed(document: Document, path: KeyPath, value: Json, what: str, context: Mapping[str, Any]) -> Problem:
    """A fault that one of the configuration's own parsers found."""
    found = _shown(value) if context["found"] is None else context["found"]
    path = (*path, *context["at"])
    remedy = context["remedy"] or _default_remedy(document, path)
    return document.problem(path, what, found, context["allowed"], remedy)


def _built_in(document: Document, path: KeyPath, detail: ErrorDetails) -> Problem:
    """A fault that pydantic itself found."""
    kind, context, remedy = detail["type"], detail.get("ctx", {}), _default_remedy(document, path)
    if kind == "literal_error":
        allowed = context["expected"].replace("'", "").replace(" or ", ", ")
        return document.problem(path, "not one of its values", _shown(detail["input"]), allowed, remedy)
    if kind in _LIMITS:
        key, words = _LIMITS[kind]
        return document.problem(path, "out of range", _shown(detail["input"]), f"{words} {context[key]:g}", remedy)
    what = _STRUCTURE.get(kind, detail["msg"])
    return document.problem(path, what, _kind(detail["input"]), _ALLOWED.get(what, ""), remedy)


def _shown(value: Json) -> str:
    if not isinstance(value, str):
        return _kind(value) if isinstance(value, dict | list | None) else str(value)
    short = value if len(value) <= _LONGEST else f"{value[:_LONGEST]}..."
    return f'"{short if short.isprintable() else short.encode("unicode_escape").decode()}"'


def _kind(value: Json) -> str:
    """What sort of value it is: all that can be said of one that may be a secret in the wrong place."""
    kinds = {dict: "a mapping", list: "a list", type(None): "no value"}
    return kinds.get(type(value), "a single value")


def _unknown_key(document: Document, path: KeyPath) -> Problem:
    model = _model_at(path[:-1])
    names = [field.alias or name for name, field in model.model_fields.items()] if model else []
    nearest = _nearest(str(path[-1]), names)
    remedy = f"did you mean {nearest}?" if nearest else "remove it"
    return document.problem(path, "unknown key", allowed="" if nearest else ", ".join(names), remedy=remedy)


def _nearest(key: str, names: list[str]) -> str | None:
    """The name that was probably meant; case and underscores do not count."""
    asked = key.replace("_", "").replace("-", "").lower()
    if _OTHER_NAMES.get(asked) in names:
        return _OTHER_NAMES[asked]
    plain = {name.replace("_", ""): name for name in names}
    return next((plain[close] for close in get_close_matches(asked, plain, n=1)), None)


def _default_remedy(document: Document, path: KeyPath) -> str:
    """To write the key with its default, if that is a single value."""
    model = _model_at(path[:-1])
    if model is None:
        return ""
    for name, field in model.model_fields.items():
        if (field.alias or name) == path[-1] and isinstance(field.default, str | int):
            default = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
            return document.write(path, default)
    return ""


def _model_at(path: KeyPath) -> type[BaseModel] | None:
    """The section that the model keeps at a path."""
    current: Any = Settings
    for part in path:
        if isinstance(current, type) and issubclass(current, BaseModel):
            fields = {field.alias or name: field for name, field in current.model_fields.items()}
            current = fields[str(part)].annotation if part in fields else None
        else:
            current = _item_of(current)
        current = _bare(current)
    return current if isinstance(current, type) and issubclass(current, BaseModel) else None


def _bare(annotation: Any) -> Any:
    """An annotation without Annotated and without `| None`."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return _bare(get_args(annotation)[0])
    return annotation


def _item_of(annotation: Any) -> Any:
    """What a list or mapping holds."""
    arguments = get_args(annotation)
    if not arguments:
        return None
    return arguments[1] if get_origin(annotation) is Mapping else arguments[0]
