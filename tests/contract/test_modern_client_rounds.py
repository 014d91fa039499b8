"""The official modern client answers what legacy servers ask: on tools, a prompt and a resource, exactly once each."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import modern_client
from tests.support.conformance import PROFILES
from tests.support.modern_client import Session, call
from tests.support.processes import gateway

pytestmark = pytest.mark.contract

SERVERS = [name for name in PROFILES if name.startswith("legacy-") and "2025-" not in name]
COUNTS = call("count_executions")
ASKS = {
    "form": call("test_input_required_result_elicitation", answers={"name": "Alice"}),
    "declined": call("test_streaming_elicitation", action="decline"),
    "yes or no": call("test_input_required_result_request_state", answers={"ok": True}),
    "enums": call("test_elicitation_sep1330_enums"),
    "defaults": call("test_elicitation_sep1034_defaults"),
    "url": call("ask_url"),
    "url required": call("url_required", {"account": "alice"}),
    "model": call("test_input_required_result_sampling"),
    "model with tools": call("sample_with_tools"),
    "model with context": call("sample_with_context"),
    "roots": call("test_input_required_result_list_roots"),
    "three at once": call("ask_many", answers={"first": "Ada", "last": "Lovelace", "town": "London"}),
    "three kinds at once": call("test_input_required_result_multiple_inputs", answers={"name": "Alice"}),
    "two in a row": call("test_input_required_result_multi_round", answers={"name": "Alice", "color": "blue"}),
    "five in a row": call("ask_five", answers={"line": "la"}),
    "prompt": {
        "do": "get_prompt",
        "name": "test_input_required_result_prompt",
        "answers": {"context": "rainy days"},
    },
    "resource": {"do": "read_resource", "uri": "test://ask-resource", "answers": {"context": "rainy days"}},
}
SIDE_BY_SIDE = {
    "do": "together",
    "operations": [call("test_sampling", {"prompt": f"question {number}"}) for number in range(6)],
}
TEXTS = {
    "form": "Hello, Alice!",
    "declined": "Hello, decline!",
    "url": "sign-in: accept",
    "url required": "signed in as alice",
    "model": "model says: What is the capital of France?",
    "model with tools": "model says: Look up the weather",
    "model with context": "model says: Summarise",
    "roots": "file:///test/root",
    "three at once": "Ada Lovelace London",
    "three kinds at once": "model says: Generate a greeting Alice at file:///test/root",
    "two in a row": "Alice likes blue",
    "five in a row": "la / la / la / la / la",
}


def _executions(session: Session, label: str = "counts") -> dict[str, dict[str, int]]:
    counted: dict[str, dict[str, int]] = json.loads(session.text(label))
    return counted


@pytest.fixture(scope="module", params=SERVERS)
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """Everything that a client with all capabilities is asked; nothing is called twice."""
    with PROFILES[request.param]() as server, gateway({"fixture": {"url": server.url}}) as front:
        yield modern_client.run(front.url, {**ASKS, "side by side": SIDE_BY_SIDE, "counts": COUNTS})


@pytest.mark.parametrize("label", TEXTS)
def test_the_tool_gets_the_answer(session: Session, label: str) -> None:
    assert session.text(label) == TEXTS[label]


def test_a_prompt_gets_the_answer(session: Session) -> None:
    (message,) = session.result("prompt")["messages"]
    assert message["content"]["text"] == "Prompt for rainy days"


def test_a_resource_gets_the_answer(session: Session) -> None:
    assert session.result("resource")["contents"][0]["text"] == "resource for rainy days"


def test_a_read_that_needed_an_answer_is_not_to_be_cached(session: Session) -> None:
    assert session.result("resource")["ttlMs"] == 0
    assert session.result("resource")["cacheScope"] == "private"


@pytest.mark.parametrize("label", ["enums", "defaults"])
def test_a_form_with_every_kind_of_field_is_filled_in(session: Session, label: str) -> None:
    assert "action=accept" in session.text(label)


@pytest.mark.parametrize("label", [label for label in ASKS if label != "url required"])
def test_it_ran_exactly_once(session: Session, label: str) -> None:
    target = str(ASKS[label].get("name") or ASKS[label]["uri"])
    counted = _executions(session)
    assert (counted["started"][target], counted["finished"][target]) == (1, 1)


def test_a_call_that_ended_with_a_required_url_is_made_anew(session: Session) -> None:
    counted = _executions(session)
    assert (counted["started"]["url_required"], counted["finished"]["url_required"]) == (2, 1)


def test_questions_carry_the_names_of_their_forms(session: Session) -> None:
    assert session.outcomes["form"]["rounds"] == [["user_name"]]
    assert session.outcomes["two in a row"]["rounds"] == [["step1"], ["step2"]]


def test_questions_asked_at_once_travel_together(session: Session) -> None:
    rounds = session.outcomes["three at once"]["rounds"]
    assert sorted(key for keys in rounds for key in keys) == ["first_name", "home_town", "last_name"]
    # One round, unless a busy machine tears them apart.
    assert len(rounds) < 3


def test_every_question_of_a_series_is_a_round_of_its_own(session: Session) -> None:
    assert len(session.outcomes["five in a row"]["rounds"]) == 5


def test_progress_is_heard_after_a_round_as_well(session: Session) -> None:
    assert [report["progress"] for report in session.outcomes["five in a row"]["progress"]] == [1, 2, 3, 4, 5]


def _asked(session: Session, label: str) -> dict[str, Any]:
    (asked,) = session.outcomes[label]["asked"]
    params: dict[str, Any] = asked["params"]
    return params


def test_a_question_reaches_the_client_whole(session: Session) -> None:
    assert _asked(session, "form")["message"] == "What is your name?"
    assert _asked(session, "enums")["requestedSchema"]["properties"]["legacyEnum"]["enumNames"]
    assert _asked(session, "model with tools")["tools"][0]["name"] == "lookup"
    assert _asked(session, "model with tools")["toolChoice"] == {"mode": "auto"}
    assert _asked(session, "model with context")["includeContext"] == "thisServer"


@pytest.mark.parametrize("label", ["url", "url required"])
def test_a_url_question_loses_its_legacy_id(session: Session, label: str) -> None:
    params = _asked(session, label)
    assert params["url"].startswith("https://example.com/sign-in")
    assert "elicitationId" not in params


def test_calls_that_ask_side_by_side_get_their_own_answers(session: Session) -> None:
    texts = [result["content"][0]["text"] for result in session.result("side by side")]
    assert texts == [f"LLM response: model says: question {number}" for number in range(6)]
    assert _executions(session)["started"]["test_sampling"] == 6


def test_a_client_that_cannot_be_asked_is_told_what_is_missing() -> None:
    operations = {
        "model": call("test_missing_capability"),
        "form": call("test_input_required_result_elicitation"),
        "roots": call("test_input_required_result_list_roots"),
        "plain": call("test_simple_text"),
    }
    with PROFILES["legacy-python"]() as server, gateway({"fixture": {"url": server.url}}) as front:
        session = modern_client.run(front.url, operations, cannot=["elicitation", "sampling", "roots"])
    missing = {
        label: (outcome["error"]["code"], outcome["error"]["data"]["requiredCapabilities"])
        for label, outcome in session.outcomes.items()
        if "error" in outcome
    }
    assert missing == {
        "model": (-32021, {"sampling": {}}),
        "form": (-32021, {"elicitation": {"form": {}}}),
        "roots": (-32021, {"roots": {}}),
    }
    assert session.text("plain") == "This is a simple text response for testing."
