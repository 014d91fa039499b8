"""The official modern client in front of legacy servers whose transport can do less: no sessions, or JSON only."""

import pytest

from tests.support import modern_client
from tests.support.modern_client import Session, call
from tests.support.processes import gateway, legacy_python

pytestmark = pytest.mark.contract

OPERATIONS = {
    "tools": {"do": "list_tools"},
    "text": call("test_simple_text"),
    "structured": call("add", {"a": 1, "b": 2}),
    "progress": call("test_tool_with_progress"),
    "big": call("big", {"size": 2_000_000}),
    "resource": {"do": "read_resource", "uri": "test://static-text"},
}
ASK = call("test_input_required_result_elicitation", answers={"name": "Alice"})


def _session(*options: str, ask: bool = False) -> Session:
    operations = {**OPERATIONS, "ask": ASK, "after": call("test_simple_text")} if ask else OPERATIONS
    with legacy_python(*options) as server, gateway({"fixture": {"url": server.url}}) as front:
        return modern_client.run(front.url, operations)


def _assert_served(session: Session) -> None:
    assert len(session.result("tools")["tools"]) > 20
    assert session.text("text") == "This is a simple text response for testing."
    assert session.result("structured")["structuredContent"] == {"result": 3}
    assert session.text("progress").startswith("Progress computation completed")
    assert len(session.text("big")) == 2_000_000
    assert session.result("resource")["contents"][0]["text"] == "This is a static text resource for testing."


def test_a_server_without_sessions_is_served_and_its_questions_fail_at_once() -> None:
    session = _session("--stateless", ask=True)
    _assert_served(session)
    assert "no session" in session.outcomes["ask"]["error"]["message"]
    assert session.text("after") == "This is a simple text response for testing."


def test_a_server_without_sessions_or_streams_is_served() -> None:
    _assert_served(_session("--stateless", "--json-response"))


def test_a_server_that_answers_json_can_ask_on_its_sessions_own_stream() -> None:
    session = _session("--json-response", "--uncorrelated", ask=True)
    _assert_served(session)
    assert session.text("ask") == "Hello, Alice!"
    assert [report["progress"] for report in session.outcomes["progress"]["progress"]] == [0, 50, 100]
