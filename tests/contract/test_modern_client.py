"""The official modern client (mcp 2.x) at the gateway, in front of the official reference server."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import modern_client
from tests.support.modern_client import Session, call
from tests.support.processes import everything, gateway

pytestmark = pytest.mark.contract

OPERATIONS = {
    "tools": {"do": "list_tools"},
    "resources": {"do": "list_resources"},
    "templates": {"do": "list_resource_templates"},
    "prompts": {"do": "list_prompts"},
    "echo": call("echo", {"message": "hello"}),
    "sum": call("get-sum", {"a": 1, "b": 2}),
    "long": call("trigger-long-running-operation", {"duration": 0.4, "steps": 4}),
    "annotated": call("get-annotated-message", {"messageType": "error", "includeImage": True}),
    "structured": call("get-structured-content", {"location": "New York"}),
    "embedded": call("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
    "links": call("get-resource-links", {"count": 3}),
    "image": call("get-tiny-image"),
    "unknown tool": call("no-such-tool"),
    "bad arguments": call("get-sum", {"a": "one"}),
    "document": {"do": "read_resource", "uri": "demo://resource/static/document/features.md"},
    "dynamic text": {"do": "read_resource", "uri": "demo://resource/dynamic/text/7"},
    "dynamic blob": {"do": "read_resource", "uri": "demo://resource/dynamic/blob/7"},
    "unknown resource": {"do": "read_resource", "uri": "demo://no/such/thing"},
    "simple prompt": {"do": "get_prompt", "name": "simple-prompt"},
    "prompt": {"do": "get_prompt", "name": "args-prompt", "arguments": {"city": "Paris", "state": "Texas"}},
    "resource prompt": {
        "do": "get_prompt",
        "name": "resource-prompt",
        "arguments": {"resourceType": "Text", "resourceId": "1"},
    },
    "completion": {
        "do": "complete",
        "ref": {"type": "ref/prompt", "name": "completable-prompt"},
        "argument": {"name": "department", "value": "E"},
    },
    "elicitation": call("trigger-elicitation-request", answers={"name": "Ada"}),
    "url elicitation": call("trigger-url-elicitation", {"url": "https://example.com/sign-in"}),
    "sampling": call("trigger-sampling-request", {"prompt": "hello", "maxTokens": 20}),
    "together": {"do": "together", "operations": [call("echo", {"message": str(n)}) for n in range(8)]},
}


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with everything() as server, gateway({"everything": {"url": server.url}}) as front:
        yield modern_client.run(front.url, OPERATIONS)


def _names(listed: list[dict[str, Any]]) -> set[str]:
    return {str(each["name"]) for each in listed}


def test_it_negotiates_the_modern_version(session: Session) -> None:
    assert session.connection["protocolVersion"] == "2026-07-28"


def test_it_learns_who_the_server_is(session: Session) -> None:
    assert session.connection["serverInfo"]["name"] == "mcp-servers/everything"
    assert session.connection["instructions"].startswith("# Everything Server")


def test_it_is_promised_what_the_server_has_and_no_tasks(session: Session) -> None:
    assert {"tools", "prompts", "resources", "completions", "logging"} <= session.connection["capabilities"].keys()
    assert "tasks" not in session.connection["capabilities"]


def test_it_lists_the_tools_that_its_capabilities_unlock(session: Session) -> None:
    names = _names(session.result("tools")["tools"])
    assert {"echo", "get-sum", "get-roots-list", "trigger-sampling-request", "trigger-url-elicitation"} <= names


def test_it_is_not_shown_a_tool_that_only_runs_as_a_task(session: Session) -> None:
    assert "simulate-research-query" not in _names(session.result("tools")["tools"])
    assert not [tool for tool in session.result("tools")["tools"] if "execution" in tool]


def test_it_lists_resources_templates_and_prompts(session: Session) -> None:
    assert "features.md" in _names(session.result("resources")["resources"])
    assert "Dynamic Text Resource" in _names(session.result("templates")["resourceTemplates"])
    assert {"simple-prompt", "args-prompt", "completable-prompt"} <= _names(session.result("prompts")["prompts"])


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("echo", "Echo: hello"),
        ("sum", "The sum of 1 and 2 is 3."),
        ("long", "Long running operation completed. Duration: 0.4 seconds, Steps: 4."),
    ],
)
def test_it_calls_tools(session: Session, label: str, text: str) -> None:
    assert session.text(label) == text


def test_it_hears_the_progress_of_a_long_call(session: Session) -> None:
    reports = [report["progress"] for report in session.outcomes["long"]["progress"]]
    # Shortly after a session begins, this server asks for the roots: what it reports while the client is away with
    # that question is told on the retry.
    assert reports == [1, 2, 3, 4]


def test_it_gets_annotations_and_images_as_they_are(session: Session) -> None:
    text, image = session.result("annotated")["content"]
    assert text["annotations"] == {"audience": ["user", "assistant"], "priority": 1.0}
    assert image["mimeType"] == "image/png"
    assert len(image["data"]) > 1000
    assert [block["type"] for block in session.result("image")["content"]][:2] == ["text", "image"]


def test_it_gets_structured_content(session: Session) -> None:
    assert session.result("structured")["structuredContent"]["conditions"] == "Cloudy"


def test_it_gets_embedded_resources_and_links(session: Session) -> None:
    assert session.result("embedded")["content"][1]["resource"]["uri"] == "demo://resource/dynamic/text/1"
    links = session.result("links")["content"][1:]
    assert [link["type"] for link in links] == ["resource_link"] * 3


@pytest.mark.parametrize("label", ["unknown tool", "bad arguments"])
def test_it_is_told_of_the_servers_own_refusals_in_a_result(session: Session, label: str) -> None:
    assert session.result(label)["isError"] is True


def test_it_reads_resources(session: Session) -> None:
    assert "Everything Server" in session.result("document")["contents"][0]["text"]
    assert session.result("dynamic text")["contents"][0]["text"].startswith("Resource 7")
    assert session.result("dynamic blob")["contents"][0]["blob"]


def test_it_is_told_that_a_resource_is_unknown(session: Session) -> None:
    error = session.outcomes["unknown resource"]["error"]
    assert error["code"] == -32602
    assert error["data"]["uri"] == "demo://no/such/thing"


def test_it_gets_prompts(session: Session) -> None:
    (simple,) = session.result("simple prompt")["messages"]
    assert simple["content"]["text"] == "This is a simple prompt without arguments."
    (weather,) = session.result("prompt")["messages"]
    assert weather["content"]["text"] == "What's weather in Paris, Texas?"
    assert session.result("resource prompt")["messages"][1]["content"]["type"] == "resource"


def test_it_completes_an_argument(session: Session) -> None:
    assert session.result("completion")["completion"]["values"] == ["Engineering"]


def test_it_makes_calls_side_by_side(session: Session) -> None:
    texts = [result["content"][0]["text"] for result in session.result("together")]
    assert texts == [f"Echo: {number}" for number in range(8)]


def test_it_fills_in_the_form_that_a_tool_asks_for(session: Session) -> None:
    assert "- Name: Ada" in session.result("elicitation")["content"][1]["text"]


def test_it_opens_the_url_that_a_tool_asks_for(session: Session) -> None:
    (asked,) = session.outcomes["url elicitation"]["asked"]
    assert asked["params"]["url"] == "https://example.com/sign-in"
    assert "elicitationId" not in asked["params"]
    assert not session.result("url elicitation").get("isError")


def test_it_lends_a_tool_its_model(session: Session) -> None:
    assert "model says: Resource trigger-sampling-request context: hello" in session.text("sampling")
