"""Each folder is one translation: `input.json` goes in, `expected.json` has to come out.

`input.json` names the translator, its calls, and the definition of the official 2026-07-28 schema that every result
must be valid against (none towards legacy servers). Enlarge a `full` case before adding another.
"""

import copy
import json
from functools import cache
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from gateway.wire.jsonrpc import Json, JsonObject

HERE = Path(__file__).parent
CASES = sorted(path.parent for path in HERE.glob("*/input.json"))
TO_MODERN = [path for path in CASES if json.loads((path / "input.json").read_text())["schema"] is not None]
SCHEMA: JsonObject = json.loads((HERE / "schema" / "mcp-2026-07-28.schema.json").read_text())


@cache
def validator(definition: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": SCHEMA["$defs"]})


def run(translator: str, arguments: JsonObject) -> JsonObject:
    """Call a translator and note what came of it: the result or the refusal, and the warnings."""
    module, name = translator.split(".")
    function = getattr(import_module(f"gateway.translate.{module}"), name)
    arguments = {key: frozenset(value) if key in ("absent", "present") else value for key, value in arguments.items()}
    warnings: list[str] = []
    if "on_warning" in signature(function).parameters:
        arguments["on_warning"] = warnings.append
    try:
        outcome: JsonObject = {"result": function(**arguments)}
    except ValueError as refusal:
        outcome = {"refusal": str(refusal)}
    return {**outcome, "warnings": warnings} if warnings else outcome


def case(path: Path) -> tuple[JsonObject, list[Json]]:
    given = json.loads((path / "input.json").read_text())
    return given, json.loads((path / "expected.json").read_text())


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_the_translation_is_the_expected_one(path: Path) -> None:
    given, expected = case(path)
    outcomes = [run(given["translator"], call["arguments"]) for call in given["calls"]]
    assert outcomes == expected


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_the_translation_leaves_its_input_alone(path: Path) -> None:
    given, _ = case(path)
    for call in given["calls"]:
        before = copy.deepcopy(call["arguments"])
        run(given["translator"], call["arguments"])
        assert call["arguments"] == before, call["why"]


@pytest.mark.parametrize("path", TO_MODERN, ids=lambda path: path.name)
def test_what_goes_to_a_modern_client_is_valid_in_its_own_schema(path: Path) -> None:
    given, expected = case(path)
    for outcome in expected:
        if "result" in outcome:
            validator(given["schema"]).validate(outcome["result"])
