"""The official reference server over stdio: through the gateway it says what it says directly."""

import itertools
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.processes import NODE_MODULES, need, node
from tests.support.round_client import EVERYTHING, RoundClient
from tests.support.running_gateway import running_gateway
from tests.support.stdio import descendants

pytestmark = pytest.mark.contract

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
NEW_IN_RESULTS = {"resultType", "ttlMs", "cacheScope"}

REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "tools": ("tools/list", {}),
    "resources": ("resources/list", {}),
    "templates": ("resources/templates/list", {}),
    "prompts": ("prompts/list", {}),
    "echo": ("tools/call", {"name": "echo", "arguments": {"message": "héllo"}}),
    "sum": ("tools/call", {"name": "get-sum", "arguments": {"a": 1, "b": 2}}),
    "structured": ("tools/call", {"name": "get-structured-content", "arguments": {"location": "New York"}}),
    "image": ("tools/call", {"name": "get-tiny-image", "arguments": {}}),
    "links": ("tools/call", {"name": "get-resource-links", "arguments": {"count": 3}}),
    "long": ("tools/call", {"name": "trigger-long-running-operation", "arguments": {"duration": 0.1, "steps": 2}}),
    "bad arguments": ("tools/call", {"name": "get-sum", "arguments": {"a": "one"}}),
    "unknown tool": ("tools/call", {"name": "no-such-tool", "arguments": {}}),
    "document": ("resources/read", {"uri": "demo://resource/static/document/features.md"}),
    "prompt": ("prompts/get", {"name": "args-prompt", "arguments": {"city": "Paris"}}),
    "completion": (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "completable-prompt"},
            "argument": {"name": "department", "value": "E"},
        },
    ),
}


def command() -> list[str]:
    return [node(), str(need(NODE_MODULES / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"))]


class Direct:
    """A client of 2025-11-25 on the server's own stdin and stdout."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._ids = itertools.count(1)

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Make a request; whatever comes before its answer is passed over."""
        request_id = next(self._ids)
        self.say({"id": request_id, "method": method, "params": params})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == request_id and "method" not in message:
                return message
        raise AssertionError("the server has ended")

    def say(self, message: dict[str, Any]) -> None:
        """Write a message."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()


@contextmanager
def direct() -> Iterator[Direct]:
    with subprocess.Popen(
        command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        client = Direct(process)
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        client.ask("initialize", about)
        client.say({"method": "notifications/initialized"})
        try:
            yield client
        finally:
            process.terminate()


def translated(answer: dict[str, Any]) -> dict[str, Any]:
    """What the documented translation leaves of an answer of the server."""
    body = {key: value for key, value in answer.items() if key in ("result", "error")}
    for tool in body.get("result", {}).get("tools", []):
        tool.pop("execution", None)
    return body


def plain(message: dict[str, Any]) -> dict[str, Any]:
    """An answer of the gateway without what 2026-07-28 adds."""
    body = {key: value for key, value in message.items() if key in ("result", "error")}
    if "result" in body:
        result = {key: value for key, value in body["result"].items() if key not in NEW_IN_RESULTS}
        about = {key: value for key, value in result.pop("_meta").items() if key != SERVER_INFO}
        body["result"] = {**result, "_meta": about} if about else result
    return body


async def test_lists_and_calls_are_those_of_direct_use() -> None:
    with direct() as client:
        expected = {label: translated(client.ask(*each)) for label, each in REQUESTS.items()}
    tools = expected["tools"]["result"]["tools"]
    expected["tools"]["result"]["tools"] = [tool for tool in tools if tool["name"] != "simulate-research-query"]
    program, *args = command()
    before = descendants()
    async with (
        running_gateway(upstreams={"everything": {"command": program, "args": args}}) as gateway,
        RoundClient(gateway.url, capabilities={}) as modern,
    ):
        found = {}
        for label, (method, params) in REQUESTS.items():
            found[label] = plain((await modern.request(method, None, params)).message)
        assert found == expected

        asked = await modern.call("trigger-elicitation-request", capabilities=EVERYTHING)
        [question] = asked.questions
        declined = {question: {"action": "decline"}}
        done = await modern.call(
            "trigger-elicitation-request", answers=declined, state=asked.state, capabilities=EVERYTHING
        )
        assert "declined" in done.text
        assert len(descendants() - before) == 4  # two servers, and what watches over each
    assert descendants() <= before
