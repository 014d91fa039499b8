"""Keys of `inputRequests`: what a question is called.

A legacy question has only a JSON-RPC id, mostly a number; a modern client sees a name, may show it, and may send an
answer to it ahead. So the name should be the same whenever the same tool asks the same thing.
"""

import re
from collections.abc import Collection, Sequence
from itertools import count
from typing import Final

from gateway.wire import methods
from gateway.wire.jsonrpc import JsonObject, RequestId

_MAX_LENGTH: Final = 64
_FALLBACKS: Final = {methods.ELICIT: "elicitation", methods.SAMPLE: "sampling", methods.LIST_ROOTS: "roots"}

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_HEX = re.compile(r"[0-9A-Fa-f]{8,}")
_SCATTERED_DIGITS = re.compile(r"(?=.{8}).*[0-9][A-Za-z]+[0-9]")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_WORD = re.compile(r"[\W_]+")


def name_of(
    method: str,
    params: JsonObject | None,
    *,
    request_id: RequestId,
    preferred: Sequence[str],
    taken: Collection[str],
) -> str:
    """Name a question, uniquely within its call.

    In this order: the next of the operator's names for the tool; the request id, if it is a string that reads as a
    name; the title of the form in snake case; `elicitation_1`, `sampling_1`, `roots_1` and so on.

    Args:
        method: one of `gateway.wire.methods.QUESTIONS`.
        params: the parameters of the question.
        request_id: the id that the server gave it.
        preferred: the operator's names for the tool.
        taken: the names of this call's earlier questions; not changed.

    Returns:
        A name that is not among `taken`.
    """
    for name in preferred:
        if name not in taken:
            return name
    own = _id_name(request_id) or _title_name(method, params or {})
    if own is None:
        return _numbered(_FALLBACKS[method], 1, taken)
    return own if own not in taken else _numbered(own, 2, taken)


def _numbered(stem: str, start: int, taken: Collection[str]) -> str:
    return next(name for number in count(start) if (name := f"{stem}_{number}") not in taken)


def _id_name(request_id: RequestId) -> str | None:
    if not isinstance(request_id, str) or len(request_id) > _MAX_LENGTH or not _NAME.fullmatch(request_id):
        return None
    return None if any(_is_random(part) for part in re.split(r"[-_]", request_id)) else request_id


def _is_random(part: str) -> bool:
    """A run of hex digits, or digits strewn among letters: of a UUID, a ULID, a nanoid; never the same twice."""
    return _HEX.fullmatch(part) is not None or _SCATTERED_DIGITS.match(part) is not None


def _title_name(method: str, params: JsonObject) -> str | None:
    schema = params.get("requestedSchema") if method == methods.ELICIT else None
    title = schema.get("title") if isinstance(schema, dict) else None
    return (_snake_case(title) or None) if isinstance(title, str) else None


def _snake_case(title: str) -> str:
    """`UserName`, `User name` and `user-name` are all `user_name`."""
    spaced = _CAMEL.sub("_", title[:_MAX_LENGTH])
    return _NOT_WORD.sub("_", spaced).strip("_").lower()
