"""Rounds: a legacy server's question becomes an input request, a client's answer becomes a response.

Source: 2026-07-28, basic/patterns/mrtr; the questions themselves are client/elicitation, client/sampling and
client/roots in both eras.
"""

from typing import Final

from gateway.translate.forms import check_form
from gateway.translate.metadata import without_protocol_keys
from gateway.translate.question_names import name_of
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject

__all__ = ["check_answer", "name_of", "to_input_request", "to_legacy_answer"]

_LEGACY_ONLY: Final = frozenset({"elicitationId", "task", "_meta"})
_ACTIONS: Final = ("accept", "decline", "cancel")
_ROLES: Final = ("assistant", "user")


def to_input_request(method: str, params: JsonObject | None) -> JsonObject:
    """Turn a server's question into an entry of `inputRequests`.

    `elicitationId`, `task` and `_meta` go, and so do nulls, which no schema of a question has. A form without `mode`
    stays without, since an absent mode means a form in both eras. `roots/list` has no parameters left.

    Args:
        method: one of `gateway.wire.methods.QUESTIONS`.
        params: the parameters of the question; not changed.

    Returns:
        `{"method", "params"}`, without a JSON-RPC envelope.
    """
    if method == methods.LIST_ROOTS:
        return {"method": method, "params": {}}
    kept = {key: value for key, value in (params or {}).items() if value is not None and key not in _LEGACY_ONLY}
    return {"method": method, "params": kept}


def to_legacy_answer(answer: JsonObject) -> JsonObject:
    """Turn a client's answer into the `result` of the server's request.

    `resultType` and protocol keys of `_meta` go, and so does `content` that does not belong to an accepted form. A list
    of one content block becomes the block: only 2025-11-25 knows lists, and its SDKs only where tools are in play.

    Args:
        answer: one that `check_answer` let pass; not changed.
    """
    legacy = {key: value for key, value in answer.items() if key not in ("resultType", "_meta")}
    kept = without_protocol_keys(answer.get("_meta"))
    if kept:
        legacy["_meta"] = kept
    content = legacy.get("content")
    if "action" in legacy and (content is None or legacy["action"] != "accept"):
        legacy.pop("content", None)
    elif isinstance(content, list) and len(content) == 1:
        legacy["content"] = content[0]
    return legacy


def check_answer(question: JsonObject, answer: Json) -> None:
    """Check that an answer is one to this question.

    Args:
        question: the input request, as `to_input_request` built it.
        answer: what the client sent under the question's key in `inputResponses`.

    Raises:
        ValueError: it is not; the text names the field, never its value.
    """
    if not isinstance(answer, dict):
        raise ValueError("the answer must be an object")
    _CHECKS[question["method"]](question.get("params") or {}, answer)


def _check_elicitation(params: JsonObject, answer: JsonObject) -> None:
    """2026-07-28, client/elicitation, "Response Actions"."""
    if answer.get("action") not in _ACTIONS:
        raise ValueError("action must be accept, decline or cancel")
    content = answer.get("content")
    if content is not None and not isinstance(content, dict):
        raise ValueError("content must be an object")
    if answer["action"] == "accept" and params.get("mode", "form") == "form":
        check_form(params.get("requestedSchema"), content or {})
    elif content:
        raise ValueError("content is only for an accepted form")


def _check_sampling(_params: JsonObject, answer: JsonObject) -> None:
    """2026-07-28, client/sampling, "Creating Messages"."""
    if answer.get("role") not in _ROLES:
        raise ValueError("role must be assistant or user")
    content = answer.get("content")
    blocks = content if isinstance(content, list) else [content]
    if not blocks or not all(_is_block(block) for block in blocks):
        raise ValueError("content must be a content block or a list of them")
    if not isinstance(answer.get("model"), str):
        raise ValueError("model must be a string")
    if not isinstance(answer.get("stopReason", ""), str):
        raise ValueError("stopReason must be a string")


def _is_block(block: Json) -> bool:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        return False
    return block["type"] != "text" or isinstance(block.get("text"), str)


def _check_roots(_params: JsonObject, answer: JsonObject) -> None:
    """2026-07-28, client/roots, "Data Types"."""
    roots = answer.get("roots")
    if not isinstance(roots, list):
        raise ValueError("roots must be a list")
    for position, root in enumerate(roots):
        uri = root.get("uri") if isinstance(root, dict) else None
        if not isinstance(uri, str) or not uri.startswith("file://"):
            raise ValueError(f"roots[{position}].uri must be a file:// URI")
        if not isinstance(root.get("name", ""), str):
            raise ValueError(f"roots[{position}].name must be a string")


_CHECKS: Final = {
    methods.ELICIT: _check_elicitation,
    methods.SAMPLE: _check_sampling,
    methods.LIST_ROOTS: _check_roots,
}
