"""Names of questions: stable where possible, unique always."""

from collections.abc import Collection, Sequence

import pytest

from gateway.translate.input_rounds import name_of
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, RequestId


def name(
    method: str = methods.ELICIT,
    *,
    title: Json = None,
    request_id: RequestId = 0,
    preferred: Sequence[str] = (),
    taken: Collection[str] = (),
) -> str:
    params = {"message": "?", "requestedSchema": {"type": "object", "title": title}}
    return name_of(method, params, request_id=request_id, preferred=preferred, taken=taken)


def test_the_operator_s_name_comes_first() -> None:
    assert name(preferred=["user_name"], request_id="ask", title="Title") == "user_name"


def test_the_operator_s_names_are_used_in_turn() -> None:
    assert name(preferred=["step1", "step2"], taken={"step1"}) == "step2"


def test_when_the_operator_s_names_are_used_up_the_next_rule_applies() -> None:
    assert name(preferred=["step1"], taken={"step1"}, title="UserName") == "user_name"


@pytest.mark.parametrize("request_id", ["user_name", "e-1", "step2confirm", "cafe", "Ask"])
def test_an_id_that_reads_as_a_name_is_the_name(request_id: str) -> None:
    assert name(request_id=request_id, title="Title") == request_id


@pytest.mark.parametrize(
    "request_id",
    [
        0,
        7,
        "7",
        "_x",
        "a b",
        "",
        "é",
        "a" * 65,
        "f47ac10b-58cc-4372-a567-0e02b2c3d479",
        "req-f47ac10b58cc4372a5670e02b2c3d479",
        "deadbeefcafe",
        "ask_01HV8Z3QXKJ5M9",
        "V1StGXR8_Z5jdHi6B-myT",
    ],
)
def test_any_other_id_is_not(request_id: RequestId) -> None:
    assert name(request_id=request_id) == "elicitation_1"


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("UserName", "user_name"),
        ("User name", "user_name"),
        ("user-name", "user_name"),
        ("HTTPServer", "http_server"),
        ("ScalarType[str]", "scalar_type_str"),
        ("Größe", "größe"),
    ],
)
def test_the_title_of_a_form_is_its_name_in_snake_case(title: str, expected: str) -> None:
    assert name(title=title) == expected


@pytest.mark.parametrize("title", [None, "", "!?", 5])
def test_a_title_that_is_no_name_is_passed_over(title: Json) -> None:
    assert name(title=title) == "elicitation_1"


@pytest.mark.parametrize(
    ("method", "expected"),
    [(methods.ELICIT, "elicitation_1"), (methods.SAMPLE, "sampling_1"), (methods.LIST_ROOTS, "roots_1")],
)
def test_a_question_without_a_name_is_numbered_by_kind(method: str, expected: str) -> None:
    assert name_of(method, None, request_id=0, preferred=(), taken=()) == expected


def test_only_forms_are_named_by_title() -> None:
    assert name(methods.SAMPLE, title="UserName") == "sampling_1"


def test_numbers_go_on_within_a_call() -> None:
    assert name(taken={"elicitation_1", "elicitation_2"}) == "elicitation_3"


def test_a_name_that_is_taken_gets_a_number() -> None:
    assert name(title="UserName", taken={"user_name"}) == "user_name_2"
    assert name(request_id="ask", taken={"ask", "ask_2"}) == "ask_3"
