"""The `x-mcp-header` marks of a tool's schema."""

import pytest

from gateway.translate.param_marks import ParamMark, marks_of
from gateway.wire.jsonrpc import Json, JsonObject


def tool(**properties: Json) -> JsonObject:
    return {"name": "t", "inputSchema": {"type": "object", "properties": properties}}


def marked(type_: Json, header: Json = "Region") -> JsonObject:
    return {"type": type_, "x-mcp-header": header}


def test_nearly_every_tool_has_no_marks() -> None:
    assert marks_of(tool(a={"type": "string"})) == ()


def test_a_tool_without_a_schema_has_no_marks() -> None:
    assert marks_of({"name": "t"}) == ()


def test_marks_are_found_at_any_depth_of_properties() -> None:
    nested = {"type": "object", "properties": {"limit": marked("integer", "Limit")}}
    assert marks_of(tool(region=marked("string"), deep=nested, flag=marked("boolean", "flag"))) == (
        ParamMark("Region", ("region",), "string"),
        ParamMark("flag", ("flag",), "boolean"),
        ParamMark("Limit", ("deep", "limit"), "integer"),
    )


@pytest.mark.parametrize("type_", ["number", "object", "array", "null", None, ["string", "null"], 5])
def test_a_mark_on_any_other_type_is_invalid(type_: Json) -> None:
    with pytest.raises(ValueError, match=r"inputSchema\.a: .*needs the type"):
        marks_of(tool(a=marked(type_)))


@pytest.mark.parametrize("header", ["", "a b", "a:b", "naïve", "a\r\nb", "a\x00", None, 5])
def test_a_mark_that_cannot_be_part_of_a_header_name_is_invalid(header: Json) -> None:
    with pytest.raises(ValueError, match="is not a header name"):
        marks_of(tool(a=marked("string", header)))


def test_two_marks_may_not_differ_in_case_alone() -> None:
    with pytest.raises(ValueError, match="repeats a header name"):
        marks_of(tool(a=marked("string", "Region"), b=marked("string", "REGION")))


@pytest.mark.parametrize(
    "schema",
    [
        marked("object"),
        {"properties": {"a": {"items": marked("string")}}},
        {"properties": {"a": {"prefixItems": [marked("string")]}}},
        {"oneOf": [{"properties": {"a": marked("string")}}]},
        {"allOf": [{"if": {}, "then": {"properties": {"a": marked("string")}}}]},
        {"not": marked("string")},
        {"$defs": {"x": marked("string")}},
        {"properties": {"a": {"$ref": "#/definitions/x"}}, "definitions": {"x": marked("string")}},
        {"additionalProperties": marked("string")},
        {"patternProperties": {"^a": marked("string")}},
    ],
)
def test_a_mark_that_is_not_reached_through_properties_alone_is_invalid(schema: JsonObject) -> None:
    with pytest.raises(ValueError, match="not reached through properties alone"):
        marks_of({"name": "t", "inputSchema": {"type": "object", **schema}})


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x-mcp-header": {"type": "number"}}},
        {"properties": {"a": {"default": marked("number")}}},
        {"properties": {"a": {"enum": [marked("number")]}}},
        {"examples": [marked("number")]},
        {"description": "x-mcp-header"},
    ],
)
def test_data_and_names_that_look_like_marks_are_none(schema: JsonObject) -> None:
    assert marks_of({"name": "t", "inputSchema": {"type": "object", **schema}}) == ()


def test_depth_is_no_obstacle() -> None:
    schema: JsonObject = marked("string")
    for _ in range(500):
        schema = {"type": "object", "properties": {"x": schema}}
    (mark,) = marks_of({"name": "t", "inputSchema": schema})
    assert mark.path == ("x",) * 500


def test_the_fault_is_named_without_the_header() -> None:
    with pytest.raises(ValueError, match="x-mcp-header") as caught:
        marks_of(tool(a=marked("string", "se cret")))
    assert "se cret" not in str(caught.value)
