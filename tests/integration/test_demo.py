"""`era-gateway demo` as a user starts it: the calls that it prints do what they say."""

import sys
from collections.abc import Iterator

import httpx
import pytest

from gateway.wire.jsonrpc import JsonObject
from tests.support.curl_text import Curl, curls_in
from tests.support.legacy_client import messages
from tests.support.processes import free_port, running


@pytest.fixture(scope="module")
def calls() -> Iterator[list[Curl]]:
    port = free_port()

    def is_last(line: str) -> str | None:
        return f"http://127.0.0.1:{port}/mcp" if "kill $!" in line else None

    with running("demo", [sys.executable, "-m", "gateway", "demo", "--port", port], is_last) as process:
        yield curls_in("\n".join(process.lines))


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=20, transport=httpx.HTTPTransport(retries=5)) as client:
        yield client


def send(http: httpx.Client, call: Curl) -> JsonObject:
    reply = http.post(call.url, headers=call.headers, json=call.body)
    assert reply.status_code == 200, reply.text
    result: JsonObject = reply.json()["result"]
    return result


def test_discover_and_the_tools_are_those_of_the_legacy_server(calls, http):
    assert send(http, calls[0])["supportedVersions"] == ["2026-07-28"]
    assert "deploy" in [tool["name"] for tool in send(http, calls[1])["tools"]]


def test_a_plain_call_is_answered(calls, http):
    assert send(http, calls[2])["content"][0]["text"] == "Hello, Ada!"


def test_counting_is_streamed_with_progress_and_logs(calls, http):
    reply = http.post(calls[3].url, headers=calls[3].headers, json=calls[3].body)
    assert reply.headers["Content-Type"].startswith("text/event-stream")
    assert reply.text.count("notifications/progress") == 5
    assert reply.text.count("counting to 5") == 1


def test_the_question_is_answered_by_the_retry(calls, http):
    asked = send(http, calls[4])
    assert asked["resultType"] == "input_required"
    assert list(asked["inputRequests"]) == ["user_name"]
    calls[5].body["params"]["requestState"] = asked["requestState"]
    assert send(http, calls[5])["content"][0]["text"] == "Nice to meet you, Ada."


async def test_a_listener_hears_of_the_note(calls):
    listening, noting = calls[6], calls[7]
    async with (
        httpx.AsyncClient(timeout=20, transport=httpx.AsyncHTTPTransport(retries=5)) as http,
        http.stream("POST", listening.url, headers=listening.headers, json=listening.body) as reply,
    ):
        heard = messages(reply)
        assert (await anext(heard))["method"] == "notifications/subscriptions/acknowledged"
        await http.post(noting.url, headers=noting.headers, json=noting.body)
        assert {(await anext(heard))["method"] for _ in range(2)} == {
            "notifications/resources/list_changed",
            "notifications/resources/updated",
        }
