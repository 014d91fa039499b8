"""What of a server's answers may be kept, for whom, and what shows that it is out of date.

2026-07-28, server/utilities/caching.
"""

import json
import re
from collections.abc import Iterable
from typing import Final

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.request_state import digest
from gateway.core.subscriptions import LISTS, change_of, wholes
from gateway.wire import codes, meta, methods
from gateway.wire.jsonrpc import Json, JsonObject

CACHED: Final = frozenset({*methods.LIST_KEYS, methods.RESOURCES_READ})

_OF_ONE_REQUEST: Final = frozenset({meta.PROGRESS_TOKEN, *meta.TRACE_KEYS})
_SHOWS_STALE: Final = {
    methods.TOOLS_CALL: (methods.TOOLS_LIST,),
    methods.PROMPTS_GET: (methods.PROMPTS_LIST,),
    methods.RESOURCES_READ: (methods.RESOURCES_LIST, methods.RESOURCE_TEMPLATES_LIST),
    methods.COMPLETE: (methods.PROMPTS_LIST, methods.RESOURCE_TEMPLATES_LIST),
}
"""The lists that are doubted when a request for what stands in them is refused."""

_UNKNOWN_TOOL: Final = re.compile(
    r"\b(?:unknown|no such) tool\b|\btool\b.{0,200}\b(?:not found|does not exist|is unknown)\b",
    re.IGNORECASE | re.DOTALL,
)
_LONGEST_COMPLAINT: Final = 500
_LONGEST_URI: Final = 2048


def may_be_cached(request: InboundRequest) -> bool:
    """Whether the answer to a request can be one that is kept: not if it is part of a round."""
    return request.method in CACHED and request.request_state is None and not request.input_responses


def identity(request: InboundRequest) -> str:
    """A digest of all that an answer depends on, beside the method and the context."""
    about = {
        key: value
        for key, value in request.meta.items()
        if key not in _OF_ONE_REQUEST and not key.startswith(meta.PREFIX)
    }
    return digest(json.dumps([{**request.params, "_meta": about}], sort_keys=True))


def kept_for_s(outcome: Outcome) -> float:
    """How many seconds an answer may be kept; 0 for one that may not."""
    result = outcome.body.get("result")
    if not isinstance(result, dict) or result.get("resultType") != "complete":
        return 0.0
    ttl_ms: Json = result.get("ttlMs")
    return ttl_ms / 1000 if type(ttl_ms) is int and ttl_ms > 0 else 0.0


def is_public(outcome: Outcome) -> bool:
    """Whether the server says that everybody is told the same."""
    result = outcome.body.get("result")
    return isinstance(result, dict) and result.get("cacheScope") == "public"


def with_time_left(result: JsonObject, left_s: float) -> Outcome:
    """A kept answer, which is good for what is left of its time."""
    return Outcome.of_result({**result, "ttlMs": max(int(left_s * 1000), 0)})


def doubted_lists(request: InboundRequest, outcome: Outcome) -> Iterable[str]:
    """The lists that an answer shows to be out of date, as it refuses what a client found in them."""
    error = outcome.body.get("error")
    if isinstance(error, dict):
        return _SHOWS_STALE.get(request.method, ()) if error.get("code") in _REFUSALS else ()
    is_refusal = request.method == methods.TOOLS_CALL and _complains_of_tool(outcome.body["result"])
    return _SHOWS_STALE[methods.TOOLS_CALL] if is_refusal else ()


_REFUSALS: Final = (codes.INVALID_PARAMS, codes.METHOD_NOT_FOUND, codes.HEADER_MISMATCH)


def _complains_of_tool(result: JsonObject) -> bool:
    """Whether a tool's result says that there is no such tool, which is how most servers say it."""
    content = result.get("content")
    if result.get("isError") is not True or not isinstance(content, list) or not content:
        return False
    text = content[0].get("text") if isinstance(content[0], dict) else None
    return isinstance(text, str) and _UNKNOWN_TOOL.search(text[:_LONGEST_COMPLAINT]) is not None


def changed_lists(message: JsonObject) -> Iterable[str]:
    """The kept answers that a `list_changed` puts out of date, as methods."""
    lists = LISTS.get(message["method"], ())
    return (*lists, methods.RESOURCES_READ) if message["method"] == methods.RESOURCES_CHANGED else lists


def updated_resources(message: JsonObject) -> list[str] | None:
    """The resources that an update puts out of date: the one it names, and each that it may be a part of.

    Returns:
        None if it may be any.
    """
    uri = change_of(message)[1]
    return [uri, *wholes(uri)] if 0 < len(uri) <= _LONGEST_URI else None
