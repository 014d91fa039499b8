"""The answer of a modern server, on its way to the client.

Rule: it passes as it is. Changed is only what the gateway answers for: the versions it speaks, state that only it can
bind to a principal, cache hints that are missing, tools that no client could call.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.core.era import speaks_modern
from gateway.core.inbound_request import InboundRequest
from gateway.core.modern_call import without_unserved
from gateway.core.outcome import Outcome
from gateway.core.questions import undeclared
from gateway.errors import to_reply
from gateway.translate.capabilities import merge, missing_for
from gateway.translate.param_marks import marks_of
from gateway.translate.rpc_errors import to_modern_error
from gateway.wire import codes, meta, methods
from gateway.wire.jsonrpc import Json, JsonObject
from gateway.wire.versions import SUPPORTED

COMPLETE: Final = "complete"
INPUT_REQUIRED: Final = "input_required"

_SCOPES: Final = ("private", "public")
_OWN_FAULT: Final = {codes.HEADER_MISMATCH: 400, codes.MISSING_CAPABILITY: 400, codes.METHOD_NOT_FOUND: 404}
"""Errors that go out with the status that 2026-07-28 gives them; all others are the execution's, and go with 200."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator and the gateway add to a server's answers.

    Args:
        ttl_ms: the `ttlMs` of a cacheable result that has none.
        cache_scope: likewise, its `cacheScope`.
        seal: makes a token of the gateway's out of the server's `requestState` (None: it sent none).
        warn: receives one text for each tool that is left out.
    """

    ttl_ms: int
    cache_scope: str
    seal: Callable[[str | None], str]
    warn: Callable[[str], None]


def result_type(result: JsonObject) -> Json:
    """What kind of result this is; servers of an older revision do not say, and mean complete."""
    return result.get("resultType", COMPLETE)


def to_result_outcome(request: InboundRequest, result: JsonObject, policy: Policy) -> Outcome:
    """Pass a result on.

    Raises:
        ValueError: it is no answer to this request; the text says why.
    """
    if result_type(result) == INPUT_REQUIRED:
        return _to_round(request, result, policy)
    passed = {"resultType": COMPLETE, **result}
    if request.method == methods.DISCOVER:
        _discover(passed)
    elif request.method == methods.TOOLS_LIST:
        passed["tools"] = _callable_tools(passed.get("tools"), policy.warn)
    elif request.method == methods.LISTEN:
        passed["_meta"] = {**_object(passed.get("_meta")), meta.SUBSCRIPTION_ID: request.id}
    if request.method in methods.CACHEABLE:
        _add_cache_hints(request, passed, policy)
    return Outcome.of_result(passed)


def to_error_outcome(request: InboundRequest, error: Json) -> Outcome:
    """Pass an error on; codes that mean something else to a modern client are translated."""
    code = error.get("code") if isinstance(error, dict) else None
    if type(code) is int and code in _OWN_FAULT:
        message = error.get("message")
        return Outcome({"error": {**error, "message": message if isinstance(message, str) else ""}}, _OWN_FAULT[code])
    return Outcome.of_server_error(to_modern_error(request.method, request.params, error))


def _to_round(request: InboundRequest, result: JsonObject, policy: Policy) -> Outcome:
    """Pass a round on (2026-07-28, basic/patterns/mrtr).

    Its state becomes ours: with credentials that users share, only the gateway can tell whose it is.
    """
    questions = result.get("inputRequests")
    if request.method not in methods.ASKING:
        raise ValueError(f"asks for input in answer to {request.method}, which cannot ask")
    if not isinstance(questions, dict | None) or (questions is None and "requestState" not in result):
        raise ValueError("asks for input without saying which")
    missing = merge(_missing(question, request.capabilities) for question in (questions or {}).values())
    if missing is not None:
        return Outcome.of_error(to_reply(undeclared(missing)))
    state = result.get("requestState")
    if not isinstance(state, str | None):
        raise ValueError("sent a requestState that is not a string")
    return Outcome.of_result({**result, "requestState": policy.seal(state)})


def _missing(question: Json, declared: JsonObject) -> JsonObject | None:
    if not isinstance(question, dict) or question.get("method") not in methods.QUESTIONS:
        raise ValueError("asks for input of an unknown kind")
    return missing_for(question["method"], _object(question.get("params")), declared)


def _discover(passed: JsonObject) -> None:
    if not speaks_modern(passed.get("supportedVersions")):
        raise ValueError("no longer speaks the revision that it spoke")
    passed["supportedVersions"] = list(SUPPORTED)
    passed["capabilities"] = without_unserved(_object(passed.get("capabilities")))


def _callable_tools(tools: Json, warn: Callable[[str], None]) -> list[Json]:
    """Leave out tools with an invalid `x-mcp-header` (2026-07-28, server/tools, "x-mcp-header")."""
    if not isinstance(tools, list):
        raise ValueError("sent a tools list without tools")
    kept = []
    for tool in tools:
        try:
            marks_of(_object(tool))
        except ValueError as fault:
            name = _object(tool).get("name")
            warn(f"tool {name[:128] if isinstance(name, str) else '?'!r} is left out: {fault}")
            continue
        kept.append(tool)
    return kept


def _add_cache_hints(request: InboundRequest, passed: JsonObject, policy: Policy) -> None:
    """2026-07-28, server/utilities/caching. What a user's answer went into is nobody's to keep."""
    after_round = request.request_state is not None or bool(request.input_responses)
    ttl = passed.get("ttlMs")
    if after_round or type(ttl) is not int or ttl < 0:
        passed["ttlMs"] = 0 if after_round else policy.ttl_ms
    if after_round or passed.get("cacheScope") not in _SCOPES:
        passed["cacheScope"] = "private" if after_round else policy.cache_scope


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}
