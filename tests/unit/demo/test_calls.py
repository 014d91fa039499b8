"""The commands that the demo prints are what a modern endpoint expects."""

import json
import shlex

import pytest

from gateway.demo.calls import curl_calls

URL = "http://127.0.0.1:8080/mcp"


def requests_in(text):
    """The headers and bodies of all curl commands, as a shell would pass them."""
    words = iter(shlex.split(text, comments=True))
    found = []
    for word in words:
        if word.endswith("curl"):
            found.append(({}, None))
        elif word == "-H":
            name, _, value = next(words).partition(": ")
            found[-1][0][name] = value
        elif word == "-d":
            # inside $( ) the closing parenthesis follows the body
            found[-1] = (found[-1][0], json.JSONDecoder().raw_decode(next(words))[0])
    return found


@pytest.fixture(scope="module")
def calls():
    return requests_in(curl_calls(URL))


def test_every_call_shown_is_there(calls):
    shown = [(body["method"], body["params"].get("name")) for _, body in calls]
    assert shown == [
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
    for headers, body in calls:
        meta = body["params"]["_meta"]
        assert headers["MCP-Protocol-Version"] == meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        assert headers["Mcp-Method"] == body["method"]
        assert headers.get("Mcp-Name") == body["params"].get("name")
        assert headers["Accept"] == "application/json, text/event-stream"


def test_the_counting_call_asks_for_progress_and_logs(calls):
    meta = calls[3][1]["params"]["_meta"]
    assert meta["progressToken"] == "count-1"
    assert meta["io.modelcontextprotocol/logLevel"] == "info"


def test_the_retry_carries_the_state_and_the_answer(calls):
    params = calls[5][1]["params"]
    assert params["requestState"] == "$state"
    assert params["inputResponses"] == {"user_name": {"action": "accept", "content": {"name": "Ada"}}}


def test_the_url_is_the_one_given():
    assert f"curl -sN -w '\\n' {URL} " in curl_calls(URL)
