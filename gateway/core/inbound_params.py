"""The shape of each method's own parameters: rung 13, after its `_meta` and its headers have passed.

Only what the schema of 2026-07-28 fixes; whether a tool likes its arguments is the tool's to say. Messages name the
member and never its value.
"""

import re
from collections.abc import Callable
from typing import Final

from gateway.core.inbound_request import InboundError, InboundRequest, invalid_params
from gateway.errors import ProtocolError
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject

MAX_SUBSCRIPTIONS: Final = 1000
"""Resource URIs of one `subscriptions/listen`."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_FLAGS: Final = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")


def check_params(request: InboundRequest) -> None:
    """Rung 13: the method's own parameters, and for a method that may ask the answers that come with it.

    Raises:
        InboundError: -32602 naming the member.
    """
    check = _CHECKS.get(request.method)
    if check is None:
        return
    try:
        check(request.params)
        if request.method in methods.ASKING:
            _check_round(request.params)
    except ProtocolError as error:
        raise InboundError(error, request.id) from None


def _check_list(params: JsonObject) -> None:
    cursor = params.get("cursor")
    if cursor is not None and not isinstance(cursor, str):
        raise invalid_params("params.cursor must be a string: the nextCursor of the page before")


def _check_call(params: JsonObject) -> None:
    _require_text(params, "params", "name")
    if not isinstance(params.get("arguments", {}), dict):
        raise invalid_params("params.arguments must be an object")


def _check_get_prompt(params: JsonObject) -> None:
    _require_text(params, "params", "name")
    if not _is_text_map(params.get("arguments", {})):
        raise invalid_params("params.arguments must map strings to strings")


def _check_read(params: JsonObject) -> None:
    if not _is_uri(params.get("uri")):
        raise invalid_params("params.uri must be an absolute URI, with a scheme")


def _check_complete(params: JsonObject) -> None:
    ref, argument, context = params.get("ref"), params.get("argument"), params.get("context", {})
    if not isinstance(ref, dict) or ref.get("type") not in ("ref/prompt", "ref/resource"):
        raise invalid_params("params.ref must be an object of type ref/prompt or ref/resource")
    _require_text(ref, "params.ref", "name" if ref["type"] == "ref/prompt" else "uri")
    if not isinstance(argument, dict) or not all(isinstance(argument.get(key), str) for key in ("name", "value")):
        raise invalid_params("params.argument must be an object with name and value, both strings")
    if not isinstance(context, dict) or not _is_text_map(context.get("arguments", {})):
        raise invalid_params("params.context must be an object whose arguments map strings to strings")


def _check_listen(params: JsonObject) -> None:
    wanted = params.get("notifications")
    if not isinstance(wanted, dict):
        raise invalid_params("params.notifications must be an object: what to listen for")
    for flag in _FLAGS:
        if not isinstance(wanted.get(flag, False), bool):
            raise invalid_params(f"params.notifications.{flag} must be true or false")
    uris = wanted.get("resourceSubscriptions", [])
    if not isinstance(uris, list) or len(uris) > MAX_SUBSCRIPTIONS or not all(map(_is_uri, uris)):
        raise invalid_params(
            f"params.notifications.resourceSubscriptions must be a list of at most {MAX_SUBSCRIPTIONS} absolute URIs"
        )


def _check_round(params: JsonObject) -> None:
    answers = params.get("inputResponses", {})
    if not isinstance(answers, dict) or not all(isinstance(answer, dict) for answer in answers.values()):
        raise invalid_params("params.inputResponses must map the keys of inputRequests to result objects")
    if not isinstance(params.get("requestState", ""), str):
        raise invalid_params("params.requestState must be the string that came with the inputRequests")


def _require_text(holder: JsonObject, where: str, member: str) -> None:
    value = holder.get(member)
    if not isinstance(value, str) or not value:
        raise invalid_params(f"{where}.{member} must be a non-empty string")


def _is_text_map(value: Json) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _is_uri(value: Json) -> bool:
    return isinstance(value, str) and _SCHEME.match(value) is not None


_CHECKS: Final[dict[str, Callable[[JsonObject], None]]] = {
    **dict.fromkeys(methods.LIST_KEYS, _check_list),
    methods.TOOLS_CALL: _check_call,
    methods.PROMPTS_GET: _check_get_prompt,
    methods.RESOURCES_READ: _check_read,
    methods.COMPLETE: _check_complete,
    methods.LISTEN: _check_listen,
}
