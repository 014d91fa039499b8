"""Entries of lists: one bad entry never hides the others."""

import pytest

from gateway.translate.entries import to_modern_entries
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject

GOOD: JsonObject = {"name": "good", "inputSchema": {"type": "object"}}


def tools(*entries: Json) -> tuple[list[JsonObject], list[str]]:
    warnings: list[str] = []
    return to_modern_entries(methods.TOOLS_LIST, list(entries), warnings.append), warnings


def tool_with(schema: Json, **more: Json) -> tuple[JsonObject, list[str]]:
    (tool,), warnings = tools({"name": "t", "inputSchema": schema, **more})
    return tool, warnings


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "$defs": {"a": {"$anchor": "a"}}},
        {"type": "object", "properties": {"x": {"type": ["string", "null"]}, "$ref": {}, "type": {}}},
        {"type": "object", "$ref": "http://u.test/s.json", "if": {}, "then": {}, "else": {}},
        {"type": "object", "properties": {}, "required": True, "additionalProperties": False},
    ],
)
def test_a_valid_schema_is_the_very_same_object(schema: JsonObject) -> None:
    tool, warnings = tool_with(schema)
    assert tool["inputSchema"] is schema
    assert not warnings


def test_a_deeply_nested_schema_passes() -> None:
    schema: JsonObject = {"type": "object"}
    for _ in range(500):
        schema = {"type": "object", "properties": {"x": schema}}
    assert tool_with(schema)[0]["inputSchema"] is schema


@pytest.mark.parametrize("schema", [None, [], "text", True, 5])
def test_a_schema_that_is_no_object_becomes_the_plain_one(schema: Json) -> None:
    tool, warnings = tool_with(schema)
    assert tool["inputSchema"] == {"type": "object"}
    assert len(warnings) == 1


def test_a_missing_schema_becomes_the_plain_one() -> None:
    (tool,), warnings = tools({"name": "bare"})
    assert tool == {"name": "bare", "inputSchema": {"type": "object"}}
    assert warnings == ["tool 'bare' is mended: inputSchema was missing or not an object"]


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"anyOf": [{"required": ["a"]}]},
        {"$ref": "#/components/x"},
        {"type": None},
        {"type": ["object", "null"]},
    ],
)
def test_a_schema_that_can_only_mean_an_object_says_so(schema: JsonObject) -> None:
    tool, warnings = tool_with(schema)
    assert tool["inputSchema"] == {**schema, "type": "object"}
    assert len(warnings) == 1


@pytest.mark.parametrize("properties", [[], None])
def test_the_empty_array_that_php_makes_of_no_properties_becomes_an_object(properties: Json) -> None:
    assert tool_with({"type": "object", "properties": properties})[0]["inputSchema"]["properties"] == {}


@pytest.mark.parametrize(
    ("bad", "warning"),
    [
        (None, "tool number 1 is left out: it is not an object"),
        ({"inputSchema": {"type": "object"}}, "tool number 1 is left out: it has no name"),
        ({"name": ""}, "tool '' is left out: it has no name"),
        (
            {"name": "t", "inputSchema": {"type": "string"}},
            "tool 't' is left out: inputSchema is of a type that arguments cannot have",
        ),
        (
            {"name": "t", "inputSchema": {"type": "object", "$schema": 7}},
            "tool 't' is left out: inputSchema.$schema is not a string",
        ),
        (
            {"name": "t", "execution": {"taskSupport": "required"}},
            "tool 't' is left out: it can only be called as a task",
        ),
        (
            {"name": "t", "inputSchema": {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}},
            "tool 't' is left out: inputSchema.a: x-mcp-header needs the type string, integer or boolean",
        ),
    ],
)
def test_a_tool_that_nobody_could_call_is_left_out_alone_and_named(bad: Json, warning: str) -> None:
    assert tools(bad, GOOD) == ([GOOD], [warning])


def test_of_two_tools_with_one_name_the_first_stays() -> None:
    kept, warnings = tools(GOOD, {"name": "good", "description": "again"})
    assert kept == [GOOD]
    assert warnings == ["tool 'good' is left out: an earlier entry has the same name"]


@pytest.mark.parametrize("execution", [{"taskSupport": "optional"}, {}, None])
def test_execution_goes_quietly(execution: Json) -> None:
    tool, warnings = tool_with({"type": "object"}, execution=execution)
    assert "execution" not in tool
    assert not warnings


@pytest.mark.parametrize("schema", [{"type": 5}, {"type": "text"}, {"type": [1]}, {"$schema": 1}, [], None])
def test_a_malformed_output_schema_goes_and_the_tool_stays(schema: Json) -> None:
    tool, warnings = tool_with({"type": "object"}, outputSchema=schema)
    assert "outputSchema" not in tool
    assert warnings == ["tool 't' is mended: outputSchema was not a schema object"]


@pytest.mark.parametrize("schema", [{}, {"type": "array"}, {"type": ["object", "null"]}, {"oneOf": []}])
def test_any_other_output_schema_passes(schema: JsonObject) -> None:
    assert tool_with({"type": "object"}, outputSchema=schema) == (
        {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema},
        [],
    )


def test_everything_wrong_with_a_tool_is_one_warning() -> None:
    _, warnings = tool_with(None, description=None, annotations=[])
    assert warnings == [
        "tool 't' is mended: inputSchema was missing or not an object, description was not a string,"
        " annotations was not an object"
    ]


def test_unknown_members_of_a_tool_pass() -> None:
    assert tool_with({"type": "object"}, id=7, icons=[])[0] == {
        "name": "t",
        "inputSchema": {"type": "object"},
        "id": 7,
        "icons": [],
    }


def test_a_resource_without_a_name_is_named_by_its_uri() -> None:
    warnings: list[str] = []
    (resource,) = to_modern_entries(methods.RESOURCES_LIST, [{"uri": "note://1", "mimeType": None}], warnings.append)
    assert resource == {"uri": "note://1", "name": "note://1"}
    assert warnings == ["resource 'note://1' is mended: mimeType was not a string, it had no name"]


def test_a_template_without_its_pattern_is_left_out() -> None:
    warnings: list[str] = []
    assert to_modern_entries(methods.RESOURCE_TEMPLATES_LIST, [{"name": "x"}], warnings.append) == []
    assert warnings == ["resource template number 1 is left out: it has no uriTemplate"]


def test_a_warning_does_not_repeat_a_name_of_any_length() -> None:
    _, warnings = tools({"name": "n" * 10_000})
    assert len(warnings[0]) < 250
