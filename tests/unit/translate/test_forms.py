"""The content of an accepted form against the schema that asked for it."""

import re

import pytest

from gateway.translate.forms import check_form
from gateway.wire.jsonrpc import Json, JsonObject

COLOR_TITLES = [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]


def check(field: Json, value: Json) -> None:
    check_form({"type": "object", "properties": {"f": field}}, {"f": value})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ({"type": "string"}, ""),
        ({"type": "string", "minLength": 2, "maxLength": 2}, "žż"),
        ({"type": "string", "format": "email"}, "alice@example.com"),
        ({"type": "string", "format": "uri"}, "https://example.com/a?b=c#d"),
        ({"type": "string", "format": "uri"}, "urn:isbn:0451450523"),
        ({"type": "string", "format": "date"}, "2028-02-29"),
        ({"type": "string", "format": "date-time"}, "2026-07-28T10:00:00Z"),
        ({"type": "string", "format": "date-time"}, "2026-06-30T23:59:60.123456789+02:00"),
        ({"type": "string", "format": "hostname"}, "anything"),
        ({"type": "number"}, 1.5),
        ({"type": "number", "minimum": 1, "maximum": 2}, 1),
        ({"type": "integer"}, 3),
        ({"type": "integer"}, 3.0),
        ({"type": "boolean"}, False),
        ({"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}, "g"),
        ({"type": "string", "oneOf": COLOR_TITLES}, "r"),
        ({"type": "array", "items": {"type": "string", "enum": ["r", "g"]}, "minItems": 1, "maxItems": 2}, ["r", "g"]),
        ({"type": "array", "items": {"anyOf": COLOR_TITLES}}, ["g"]),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None),
        ({"type": ["string", "null"]}, None),
        ({"type": "string", "minLength": "x", "enum": 5, "format": []}, "y"),
        (None, {"anything": 1}),
    ],
)
def test_a_value_that_the_field_allows_is_taken(field: Json, value: Json) -> None:
    check(field, value)


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ({"type": "string"}, 5, "must be a string"),
        ({"type": "string"}, None, "must be a string"),
        ({"type": "string", "minLength": 2}, "a", "must have at least 2 characters"),
        ({"type": "string", "maxLength": 2}, "abc", "must have at most 2 characters"),
        ({"type": "string", "format": "email"}, "alice", "must be in the format email"),
        ({"type": "string", "format": "email"}, "a@b@c", "must be in the format email"),
        ({"type": "string", "format": "uri"}, "example.com/x", "must be in the format uri"),
        ({"type": "string", "format": "uri"}, "https://a b", "must be in the format uri"),
        ({"type": "string", "format": "date"}, "2027-02-29", "must be in the format date"),
        ({"type": "string", "format": "date"}, "20270228", "must be in the format date"),
        ({"type": "string", "format": "date-time"}, "2026-07-28T10:00:00", "must be in the format date-time"),
        ({"type": "string", "format": "date-time"}, "2026-07-28T25:00:00Z", "must be in the format date-time"),
        ({"type": "number"}, True, "must be a number"),
        ({"type": "integer"}, 1.5, "must be an integer"),
        ({"type": "integer", "minimum": 18}, 17, "must be at least 18"),
        ({"type": "number", "maximum": 1.5}, 2, "must be at most 1.5"),
        ({"type": "boolean"}, "true", "must be true or false"),
        ({"type": "boolean"}, 1, "must be true or false"),
        ({"type": "string", "enum": ["r"]}, "R", "must be one of the choices"),
        ({"enum": [1]}, True, "must be one of the choices"),
        ({"type": "string", "oneOf": COLOR_TITLES}, "Red", "must be one of the choices"),
        ({"type": "array", "items": {"enum": ["r"]}}, "r", "must be a list"),
        ({"type": "array", "items": {"enum": ["r"]}}, ["r", "b"], "must be a list of the choices"),
        ({"type": "array", "items": {"anyOf": COLOR_TITLES}}, ["Red"], "must be a list of the choices"),
        ({"type": "array", "items": {"type": "string"}}, [5], "must be a list of the choices"),
        ({"type": "array", "minItems": 1}, [], "must have at least 1 choices"),
        ({"type": "array", "maxItems": 1}, ["a", "b"], "must have at most 1 choices"),
    ],
)
def test_a_value_that_the_field_does_not_allow_is_refused(field: JsonObject, value: Json, fault: str) -> None:
    with pytest.raises(ValueError, match=rf"^content\.f {re.escape(fault)}$"):
        check(field, value)


def test_a_required_field_must_be_there() -> None:
    with pytest.raises(ValueError, match=r"^content\.a is required$"):
        check_form({"properties": {"a": {}}, "required": ["a"]}, {})


def test_a_field_that_is_not_required_may_be_absent() -> None:
    check_form({"properties": {"a": {"type": "string"}}}, {})


def test_unknown_fields_are_allowed_by_default() -> None:
    check_form({"properties": {}}, {"more": [{}]})


def test_unknown_fields_are_refused_where_the_schema_says_so() -> None:
    with pytest.raises(ValueError, match=r"^content\.more is not a field of the form$"):
        check_form({"properties": {}, "additionalProperties": False}, {"more": 1})


@pytest.mark.parametrize("schema", [None, [], {"properties": [], "required": {}}, {"required": [5]}])
def test_a_malformed_schema_refuses_nothing(schema: Json) -> None:
    check_form(schema, {"a": 1})
