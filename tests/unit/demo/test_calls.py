"""The commands that the demo prints are what a modern endpoint expects."""

import pytest

from gateway.demo.calls import curl_calls
from tests.support.curl_text import Curl, curls_in

URL = "http://127.0.0.1:8080/mcp"


@pytest.fixture(scope="module")
def calls() -> list[Curl]:
    return curls_in(curl_calls(URL))


def test_every_call_shown_is_there(calls):
    assert [(call.body["method"], call.body["params"].get("name")) for call in calls] == [
        ("server/discover", None),
        ("tools/list", None),
        ("tools/call", "greet"),
        ("tools/call", "count"),
        ("tools/call", "ask_name"),
        ("tools/call", "ask_name"),
        ("subscriptions/listen", None),
        ("tools/call", "add_note"),
    ]


def test_headers_mirror_the_body(calls):
    for call in calls:
        version = call.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
        assert call.headers["MCP-Protocol-Version"] == version == "2026-07-28"
        assert call.headers["Mcp-Method"] == call.body["method"]
        assert call.headers.get("Mcp-Name") == call.body["params"].get("name")
        assert call.headers["Accept"] == "application/json, text/event-stream"


def test_the_counting_call_asks_for_progress_and_logs(calls):
    meta = calls[3].body["params"]["_meta"]
    assert meta["progressToken"] == "count-1"
    assert meta["io.modelcontextprotocol/logLevel"] == "info"


def test_the_retry_carries_the_state_and_the_answer(calls):
    params = calls[5].body["params"]
    assert params["requestState"] == "$state"
    assert params["inputResponses"] == {"user_name": {"action": "accept", "content": {"name": "Ada"}}}


def test_they_go_to_the_url_given(calls):
    assert {call.url for call in calls} == {URL}
