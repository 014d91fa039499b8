import pytest

from gateway.config.document import parse_document
from gateway.config.references import resolve
from gateway.wire.jsonrpc import JsonObject

ENVIRON = {"NAME": "value", "EMPTY": "", "NESTED": "${NAME}"}


def resolved(text: str) -> tuple[JsonObject, list[str]]:
    document, _ = parse_document("f", text)
    tree, problems, _ = resolve(document, ENVIRON)
    return tree, [str(problem) for problem in problems]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("${NAME}", "value"),
        ("a ${NAME} b ${NAME}", "a value b value"),
        ("${EMPTY}", ""),
        ("${NONE:-default}", "default"),
        ("${EMPTY:-default}", "default"),
        ("${NAME:-default}", "value"),
        ("${NONE:-}", ""),
        ("${NONE:-a:-b $x {y}", "a:-b $x {y"),
        ("$${NAME}", "${NAME}"),
        ("$NAME and $", "$NAME and $"),
        ("${NESTED}", "${NAME}"),
    ],
)
def test_reference_is_replaced(written: str, value: str) -> None:
    assert resolved(f"a: '{written}'") == ({"a": value}, [])


def test_references_are_replaced_at_any_depth_but_not_in_keys() -> None:
    assert resolved("'${NAME}': [{a: '${NAME}'}]") == ({"${NAME}": [{"a": "value"}]}, [])


def test_every_missing_variable_is_listed_with_its_line() -> None:
    _, problems = resolved("a: ${ONE} ${TWO}\nb:\n  c: ${THREE}\n")
    assert problems == [
        "f:1: a: ${ONE} is not set; set ONE in the environment, or write ${ONE:-default}",
        "f:1: a: ${TWO} is not set; set TWO in the environment, or write ${TWO:-default}",
        "f:3: b.c: ${THREE} is not set; set THREE in the environment, or write ${THREE:-default}",
    ]


@pytest.mark.parametrize("written", ["${", "${}", "${NO NAME}", "${1X}", "${NAME-x}", "${NAME"])
def test_reference_that_cannot_be_read_is_a_problem(written: str) -> None:
    _, problems = resolved(f"a: '{written}'")
    assert problems == [
        "f:1: a: a reference that cannot be read; write ${NAME} or ${NAME:-default}, and $${ for a plain ${"
    ]


def test_value_of_a_variable_never_stands_in_a_problem() -> None:
    _, problems = resolved("a: ${NAME} ${NONE}")
    assert "value" not in problems[0]


def test_document_keeps_what_was_written() -> None:
    document, _ = parse_document("f", "a:\n- ${NAME}")
    resolve(document, ENVIRON)
    assert document.tree == {"a": ["${NAME}"]}
