"""What holds for every translation, whatever a server or a client sends."""

import copy
import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.translate import (
    capabilities,
    discovery,
    forms,
    input_rounds,
    notifications,
    param_marks,
    requests,
    results,
    rpc_errors,
)
from gateway.wire import codes, meta, methods
from gateway.wire.jsonrpc import Json, JsonObject, encode

QUICK = settings(max_examples=20, deadline=None)
THOROUGH = settings(max_examples=80, deadline=None)
INFO: JsonObject = {"name": "u", "version": "1"}

# Member names that mean something to a translator, so that chance finds the branches.
KNOWN = [
    *("_meta", "content", "structuredContent", "task", "tools", "prompts", "resources", "nextCursor", "isError"),
    *("name", "uri", "uriTemplate", "inputSchema", "outputSchema", "type", "properties", "x-mcp-header", "items"),
    *("$schema", "execution", "taskSupport", "mode", "requestedSchema", "title", "required", "enum", "oneOf", "const"),
    *("action", "role", "model", "roots", "code", "message", "data", "elicitations", "url", "cursor", "level"),
    *("progress", "progressToken", "traceparent", "tracestate", "baggage", "inputResponses", "requestState"),
    *("elicitation", "sampling", "experimental", "listChanged", "form", "completion", "values", "serverInfo"),
    *("minimum", "maxLength", "format", "additionalProperties", "ttlMs", "cacheScope", "messages", "contents"),
    meta.SERVER_INFO,
]
TEXTS = st.sampled_from(["", "object", "string", "integer", "array", "accept", "url", "date", "private", "a", "ż"])
SCALARS = st.none() | st.booleans() | st.integers(-40000, 40000) | st.floats(allow_nan=False, width=16) | TEXTS
VALUES: st.SearchStrategy[Json] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KNOWN) | TEXTS, inner, max_size=4),
    max_leaves=6,
)
OBJECTS: st.SearchStrategy[JsonObject] = st.dictionaries(st.sampled_from(KNOWN) | TEXTS, VALUES, max_size=6)
METHODS = st.sampled_from(sorted(methods.MODERN_REQUESTS))
QUESTIONS = st.sampled_from(sorted(methods.QUESTIONS))


def ignore(_text: str) -> None: ...


def modern_result(method: str, value: Json) -> JsonObject:
    return results.to_modern_result(method, value, server_info=INFO, on_warning=ignore)


TRANSLATORS: dict[str, Callable[[str, str, JsonObject], object]] = {
    "request": lambda method, _, value: requests.to_legacy_request(method, value, "gw"),
    "result": lambda method, _, value: modern_result(method, value),
    "error": lambda method, _, value: rpc_errors.to_modern_error(method, value, value),
    "url round": lambda _, __, value: rpc_errors.url_questions(value),
    "capabilities": lambda _, __, value: capabilities.to_legacy_capabilities(value, "2025-06-18"),
    "missing": lambda _, question, value: capabilities.missing_for(question, value, value),
    "discover": lambda _, __, value: discovery.to_discover_result(value, watchable=True),
    "progress": lambda _, __, value: notifications.to_modern_progress(value, 1),
    "message": lambda _, __, value: notifications.to_modern_message(value),
    "change": lambda _, __, value: notifications.to_modern_change(value, 1),
    "question": lambda _, question, value: input_rounds.to_input_request(question, value),
    "answer": lambda _, __, value: input_rounds.to_legacy_answer(value),
    "check": lambda _, question, value: input_rounds.check_answer({"method": question, "params": value}, value),
    "form": lambda _, __, value: forms.check_form(value, value),
    "marks": lambda _, __, value: param_marks.marks_of({"inputSchema": value}),
}


@given(translator=st.sampled_from(sorted(TRANSLATORS)), method=METHODS, question=QUESTIONS, value=OBJECTS)
@THOROUGH
def test_input_is_never_changed_and_never_refused_but_by_a_value_error(
    translator: str, method: str, question: str, value: JsonObject
) -> None:
    before = copy.deepcopy(value)
    try:
        TRANSLATORS[translator](method, question, value)
    except ValueError as refusal:
        assert str(refusal)
    assert value == before


UNKNOWN = st.dictionaries(st.sampled_from(["com.example.a", "vendor", "ż"]), VALUES, max_size=3)
IDS = st.integers() | st.sampled_from(["ask", "ask_2", "a b", "", "elicitation_1", "f47ac10b-58cc", "ż"])


@given(unknown=UNKNOWN)
@QUICK
def test_unknown_members_pass_untouched(unknown: JsonObject) -> None:
    tool = {"name": "t", "inputSchema": {"type": "object", **unknown}, **unknown}
    page = modern_result(methods.TOOLS_LIST, {"tools": [tool], **unknown, "_meta": unknown})
    assert page["tools"] == [tool]
    passed = [
        page,
        {key: value for key, value in page["_meta"].items() if key != meta.SERVER_INFO},
        requests.to_legacy_request(methods.TOOLS_CALL, unknown, None),
        rpc_errors.to_modern_error(methods.TOOLS_CALL, None, {"code": -32021, "data": unknown, **unknown}),
        input_rounds.to_legacy_answer(unknown),
        notifications.to_modern_progress(unknown, 1),
    ]
    for whole in passed:
        assert whole is not None
        assert {key: whole[key] for key in unknown} == unknown


@given(method=METHODS, params=OBJECTS, token=st.none() | st.just("gw"))
@QUICK
def test_nothing_of_the_modern_era_reaches_a_legacy_server(method: str, params: JsonObject, token: str | None) -> None:
    legacy = requests.to_legacy_request(method, params, token) or {}
    kept = legacy.get("_meta", {})
    assert not {"inputResponses", "requestState"} & legacy.keys()
    assert not any(key.startswith(meta.PREFIX) for key in kept)
    assert kept.get("progressToken") == token
    assert legacy.get("_meta") != {}


@given(method=METHODS, error=OBJECTS, code=st.integers(-32110, -31990) | VALUES, message=VALUES)
@QUICK
def test_an_error_always_has_a_code_that_may_go_out_and_a_message(
    method: str, error: JsonObject, code: Json, message: Json
) -> None:
    modern = rpc_errors.to_modern_error(method, error, {**error, "code": code, "message": message})
    assert type(modern["code"]) is int
    assert modern["code"] not in codes.RESERVED
    assert modern["code"] not in (0, codes.RESOURCE_NOT_FOUND)
    assert isinstance(modern["message"], str)
    assert modern["message"]


@given(entries=st.lists(OBJECTS | SCALARS, max_size=4), good=st.integers(0, 4))
@QUICK
def test_a_good_tool_is_never_hidden_by_others(entries: list[Json], good: int) -> None:
    tool = {"name": "the-good-one", "inputSchema": {"type": "object"}}
    page = modern_result(methods.TOOLS_LIST, {"tools": [*entries[:good], tool, *entries[good:]]})
    assert tool in page["tools"]


@given(value=OBJECTS, question=QUESTIONS)
@QUICK
def test_a_refusal_never_shows_the_answer(value: JsonObject, question: str) -> None:
    secret = "p4ssw0rd"
    schema = {"properties": {name: {**value, "type": "string", "maxLength": 1} for name in ("a", "b")}}
    asked = {"method": question, "params": {"requestedSchema": schema}}
    answers: list[JsonObject] = [
        {"action": "accept", "content": {"a": secret, "b": [secret]}},
        {"action": secret},
        {"role": secret},
        {"role": "user", "content": secret, "model": secret},
        {"roots": [{"uri": secret}]},
    ]
    for answer in answers:
        with pytest.raises(ValueError, match=r"must|only") as caught:
            input_rounds.check_answer(asked, answer)
        assert secret not in str(caught.value)


@given(
    question=QUESTIONS,
    params=st.none() | OBJECTS,
    ids=st.lists(IDS, max_size=5),
    preferred=st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True),
)
@QUICK
def test_names_are_unique_within_a_call(
    question: str, params: JsonObject | None, ids: list[str | int], preferred: list[str]
) -> None:
    taken: set[str] = set()
    for request_id in ids:
        name = input_rounds.name_of(question, params, request_id=request_id, preferred=preferred, taken=taken)
        assert name
        assert name not in taken
        taken.add(name)


@given(value=OBJECTS)
@QUICK
def test_equal_capabilities_are_one_session_key(value: JsonObject) -> None:
    shuffled = dict(reversed(value.items()))
    assert capabilities.canonical(value) == capabilities.canonical(shuffled)
    assert json.loads(capabilities.canonical(value)) == value


@given(value=VALUES)
@QUICK
def test_marks_are_found_by_search_wherever_a_walk_finds_them(value: Json) -> None:
    """The quick search must never spare a schema that the walk would refuse."""
    walked = list(param_marks._places(value))
    has_mark = any(isinstance(place.schema, dict) and param_marks.KEYWORD in place.schema for place in walked)
    assert not has_mark or param_marks._may_have_marks(value)
    assert b'"x-mcp-header"' in encode({param_marks.KEYWORD: 1})
