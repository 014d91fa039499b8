"""Runs the official modern client (mcp 2.x) against a URL, in an environment of its own."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.processes import FIXTURES, MODERN_PYTHON, need

SCRIPT = FIXTURES / "clients" / "modern_client.py"
_TIMEOUT_S = 120.0

Operation = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Session:
    """What a client found and did."""

    connection: dict[str, Any]
    outcomes: dict[str, dict[str, Any]]

    def result(self, label: str) -> Any:
        """The result of an operation; fails with what came instead."""
        outcome = self.outcomes[label]
        assert "result" in outcome, outcome
        return outcome["result"]

    def text(self, label: str) -> str:
        """The first text of a tool's result."""
        result = self.result(label)
        assert not result.get("isError"), result
        return str(result["content"][0]["text"])


def call(name: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> Operation:
    """A tool call, with what the user will answer."""
    return {"do": "call_tool", "name": name, "arguments": arguments or {}, **more}


def run(url: str, operations: Mapping[str, Operation], **settings: Any) -> Session:
    """Does the operations one after the other, each under its label.

    Args:
        url: The server.
        operations: By label.
        settings: For the client, see tests/fixtures/clients/modern_client.py.
    """
    ordered = list(operations.values())
    completed = subprocess.run(
        [str(need(MODERN_PYTHON)), str(SCRIPT), url],
        input=json.dumps({"operations": ordered, **settings}),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    said = json.loads(completed.stdout)
    return Session(said["connection"], dict(zip(operations, said["outcomes"], strict=True)))
