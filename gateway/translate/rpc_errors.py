"""JSON-RPC errors, from a legacy server to a modern client (2026-07-28, basic/index, "Error Codes").

Some codes that are legal in the legacy revisions are forbidden or mean something else in 2026-07-28. Every other code
passes with its message and its data.
"""

import re
from typing import Final

from gateway.wire import codes, methods
from gateway.wire.jsonrpc import Json, JsonObject, error_object

_INT64: Final = range(-(2**63), 2**63)
"""What clients read a code into, if not into less."""

_NO_MESSAGE: Final = "The server gave no reason"
_OPEN_URL: Final = "Open this page to continue"
_NOT_FOUND: Final = re.compile(
    r"\bnot found\b|\bunknown (?:resource|prompt|uri|template|name)\b|\b(?:does not|doesn't) exist\b", re.IGNORECASE
)


def to_modern_error(method: str, params: JsonObject | None, error: Json) -> JsonObject:
    """Turn an error that a legacy server sent into one that a modern client may get.

    Args:
        method: the method of the request that failed.
        params: its parameters, for the name or URI that was not found.
        error: the `error` member of the response; not changed.

    Returns:
        An error with an integer code that 2026-07-28 lets a server send, and a message. A code that had to go is kept
        as `data.originalCode`.
    """
    if not isinstance(error, dict):
        return error_object(codes.INTERNAL_ERROR, _NO_MESSAGE)
    modern = dict(error)
    message = error.get("message")
    modern["message"] = message if isinstance(message, str) and message else _NO_MESSAGE
    _set_code(modern, method, params or {}, error.get("code"))
    return modern


def _set_code(modern: JsonObject, method: str, params: JsonObject, code: Json) -> None:
    says_something = type(code) is int and code != 0 and code in _INT64
    if _is_about_target(method, code if says_something else None, modern["message"]):
        modern["code"] = codes.INVALID_PARAMS
        if target := _target(method, params):
            modern["data"] = _with(modern.get("data"), **target)
    elif not says_something:
        modern["code"] = codes.INTERNAL_ERROR
    elif code == codes.RESOURCE_NOT_FOUND:
        modern["code"] = codes.INVALID_PARAMS
    elif code in codes.RESERVED:
        modern["code"] = codes.INTERNAL_ERROR
        modern["data"] = _with(modern.get("data"), originalCode=code)


def _is_about_target(method: str, code: int | None, message: str) -> bool:
    """Whether an error means that the named tool, prompt or resource is not there."""
    if code == codes.METHOD_NOT_FOUND:
        return method in methods.ASKING
    if code == codes.RESOURCE_NOT_FOUND:
        return method in (methods.RESOURCES_READ, methods.COMPLETE)
    if code == codes.INVALID_PARAMS:
        return method == methods.RESOURCES_READ and _NOT_FOUND.search(message) is not None
    # Code 0, or none at all, is all that some SDKs make of any exception; the message has to tell.
    is_look_up = method in (methods.RESOURCES_READ, methods.PROMPTS_GET)
    return code is None and is_look_up and _NOT_FOUND.search(message) is not None


def _target(method: str, params: JsonObject) -> JsonObject:
    """Say what was not found (2026-07-28, server/resources, "Error Handling")."""
    reference = params.get("ref")
    owner = reference if method == methods.COMPLETE and isinstance(reference, dict) else params
    member = methods.TARGET_PARAM.get(method, "uri")
    return {member: owner[member]} if isinstance(owner.get(member), str) else {}


def _with(data: Json, **members: Json) -> JsonObject:
    """Add members to an error's data, which may be any JSON value; what was there stays readable."""
    if isinstance(data, dict):
        return {**data, **members}
    return members if data is None else {"originalData": data, **members}


def is_url_round(error: Json) -> bool:
    """Whether an error is 2025-11-25's "URL elicitation required", with a URL to open; a modern client gets a round."""
    return (
        isinstance(error, dict) and error.get("code") == codes.URL_ELICITATION_REQUIRED and bool(url_questions(error))
    )


def url_questions(error: JsonObject) -> list[JsonObject]:
    """Read the elicitations of an error for which `is_url_round` holds.

    Args:
        error: the `error` member of the response; not changed.

    Returns:
        The parameters of one `elicitation/create` each, in order, with `mode` "url" and a message; `elicitationId` is
        still there, for whoever waits for its completion. Entries without a URL are left out.
    """
    data = error.get("data")
    entries = data.get("elicitations") if isinstance(data, dict) else None
    if not isinstance(entries, list):
        return []
    return [_to_question(entry, error) for entry in entries if _is_url_entry(entry)]


def _is_url_entry(entry: Json) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("url"), str) and entry.get("mode", "url") == "url"


def _to_question(entry: JsonObject, error: JsonObject) -> JsonObject:
    message = next((text for text in (entry.get("message"), error.get("message")) if isinstance(text, str)), _OPEN_URL)
    return {**entry, "mode": "url", "message": message}
