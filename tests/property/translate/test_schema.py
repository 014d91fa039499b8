"""What goes to a modern client is valid in the official schema, whatever the server sent."""

import json
from functools import cache
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gateway.translate import discovery, input_rounds, notifications, results, rpc_errors
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject

QUICK = settings(max_examples=20, deadline=None)
THOROUGH = settings(max_examples=40, deadline=None)
SCHEMA_FILE = Path(__file__).parents[2] / "golden" / "schema" / "mcp-2026-07-28.schema.json"
INFO: JsonObject = {"name": "u", "version": "1"}

# Of every member either something valid or something that servers get wrong; what lies deeper is the server's own.
WRONG: st.SearchStrategy[Json] = st.sampled_from([None, False, 5, "", [], {}])


def member(*valid: Json) -> st.SearchStrategy[Json]:
    return st.sampled_from(valid) | WRONG


def entry(**members: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({}, optional={**members, "vendor": WRONG}) | WRONG


SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "$schema": member("http://json-schema.org/draft-07/schema#"),
        "type": member("object", "string", ["object", "null"]),
        "properties": member({"a": {"type": "string", "x-mcp-header": "A"}}, {"a": {"x-mcp-header": "A"}}),
    },
)
COMMON = {
    "description": member("d"),
    "_meta": member({"k": 1}),
    "icons": member([{"src": "u:x"}]),
    "title": member("t"),
}
ENTRIES = {
    methods.TOOLS_LIST: entry(
        name=member("a", "b"),
        inputSchema=SCHEMAS | WRONG,
        outputSchema=SCHEMAS | WRONG,
        annotations=member({"readOnlyHint": True}),
        execution=member({"taskSupport": "required"}),
        **COMMON,
    ),
    methods.PROMPTS_LIST: entry(name=member("a", "b"), arguments=member([{"name": "x"}]), **COMMON),
    methods.RESOURCES_LIST: entry(
        uri=member("u:a", "u:b"), name=member("a"), size=member(7), mimeType=member("text/plain"), **COMMON
    ),
    methods.RESOURCE_TEMPLATES_LIST: entry(uriTemplate=member("u:{a}"), name=member("a"), **COMMON),
}
RESULT = {"_meta": member({"k": 1}), "resultType": member("weird"), "ttlMs": member(9), "cacheScope": member("public")}
LIST_TYPES = {
    methods.TOOLS_LIST: "ListToolsResult",
    methods.PROMPTS_LIST: "ListPromptsResult",
    methods.RESOURCES_LIST: "ListResourcesResult",
    methods.RESOURCE_TEMPLATES_LIST: "ListResourceTemplatesResult",
}
BLOCK: JsonObject = {"type": "text", "text": "a"}
OTHERS = {
    methods.TOOLS_CALL: ("CallToolResult", {"content": member([BLOCK]), "structuredContent": WRONG}),
    methods.PROMPTS_GET: ("GetPromptResult", {"messages": member([])}),
    methods.RESOURCES_READ: ("ReadResourceResult", {"contents": member([{"uri": "u:a", "text": "a"}])}),
    methods.COMPLETE: ("CompleteResult", {"completion": member({"values": ["a"]}, {"values": None})}),
}


@cache
def validator(definition: str) -> Draft202012Validator:
    schema = json.loads(SCHEMA_FILE.read_text())
    return Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]})


def check(definition: str, method: str, result: Json) -> None:
    try:
        modern = results.to_modern_result(method, result, server_info=INFO, on_warning=lambda _: None)
    except ValueError:
        return
    validator(definition).validate(modern)


@given(method=st.sampled_from(sorted(ENTRIES)), data=st.data())
@THOROUGH
def test_lists_are_valid(method: str, data: st.DataObject) -> None:
    entries = st.lists(ENTRIES[method], max_size=3) | WRONG
    optional = {**RESULT, "nextCursor": member("p2")}
    result = data.draw(st.fixed_dictionaries({methods.LIST_KEYS[method]: entries}, optional=optional))
    check(LIST_TYPES[method], method, result)


@given(method=st.sampled_from(sorted(OTHERS)), data=st.data())
@THOROUGH
def test_other_results_are_valid(method: str, data: st.DataObject) -> None:
    definition, members = OTHERS[method]
    check(definition, method, data.draw(st.fixed_dictionaries({}, optional={**RESULT, **members})))


CAPABILITY = member({"listChanged": True, "subscribe": "yes"}, True)


@given(
    initialized=st.fixed_dictionaries(
        {},
        optional={
            "capabilities": st.fixed_dictionaries(
                {}, optional=dict.fromkeys(("tools", "prompts", "resources", "logging", "experimental"), CAPABILITY)
            ),
            "serverInfo": member(INFO, {"name": "u"}),
            "instructions": member("Use it"),
            "_meta": WRONG,
        },
    ),
    watchable=st.booleans(),
)
@QUICK
def test_discover_results_are_valid(initialized: JsonObject, watchable: bool) -> None:
    validator("DiscoverResult").validate(discovery.to_discover_result(initialized, watchable=watchable))


@given(error=st.fixed_dictionaries({}, optional={"code": member(-32002, 0), "message": member("a"), "data": WRONG}))
@QUICK
def test_errors_are_valid(error: JsonObject) -> None:
    validator("Error").validate(rpc_errors.to_modern_error(methods.RESOURCES_READ, {"uri": "u:a"}, error))


@given(extra=st.dictionaries(st.sampled_from(["_meta", "task", "elicitationId", "vendor"]), WRONG, max_size=4))
@QUICK
def test_input_requests_are_valid(extra: JsonObject) -> None:
    form = {"message": "?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
    questions: dict[str, JsonObject] = {
        methods.ELICIT: form,
        methods.SAMPLE: {"messages": [], "maxTokens": 1, "systemPrompt": None},
        methods.LIST_ROOTS: {},
    }
    for method, params in questions.items():
        validator("InputRequest").validate(input_rounds.to_input_request(method, {**params, **extra}))


@given(extra=st.fixed_dictionaries({}, optional={"total": st.sampled_from([None, 7]), "_meta": WRONG, "vendor": WRONG}))
@QUICK
def test_notifications_are_valid(extra: JsonObject) -> None:
    progress = notifications.to_modern_progress({"progressToken": "gw", "progress": 1, **extra}, 0)
    validator("ProgressNotificationParams").validate(progress)
    message = notifications.to_modern_message({"level": "info", "logger": None, **extra})
    validator("LoggingMessageNotificationParams").validate(message)
