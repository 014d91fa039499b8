"""The calls that `era-gateway demo` prints: curl commands for a modern endpoint with the demo server behind it."""

from typing import Final

from gateway.demo.notes import INDEX_URI
from gateway.wire import meta, methods, versions
from gateway.wire.jsonrpc import JsonObject, encode, request

_ASKABLE: Final[JsonObject] = {"elicitation": {"form": {}}}
_ANSWERS: Final[JsonObject] = {"user_name": {"action": "accept", "content": {"name": "Ada"}}}
_TAKE_STATE: Final = """python3 -c 'import json, sys; print(json.load(sys.stdin)["result"]["requestState"])'"""

_STATE_HERE = "STATE"
"""Stands in a body where the shell is to put `$state`."""


def curl_calls(url: str) -> str:
    """Commands to paste into a shell, each under a line that says what it shows.

    Args:
        url: the endpoint, as a client would be given it.
    """
    asked = _curl(url, methods.TOOLS_CALL, {"name": "ask_name", "arguments": {}}, capabilities=_ASKABLE)
    retry_params = {
        "name": "ask_name",
        "arguments": {},
        "requestState": _STATE_HERE,
        "inputResponses": _ANSWERS,
    }
    retried = _curl(url, methods.TOOLS_CALL, retry_params, capabilities=_ASKABLE)
    retried = retried.replace(_STATE_HERE, "'\"$state\"'")
    counted = _curl(
        url,
        methods.TOOLS_CALL,
        {"name": "count", "arguments": {"to": 5}},
        {meta.PROGRESS_TOKEN: "count-1", meta.LOG_LEVEL: "info"},
    )
    greeted = _curl(url, methods.TOOLS_CALL, {"name": "greet", "arguments": {"name": "Ada"}})
    wanted = {"notifications": {"resourcesListChanged": True, "resourceSubscriptions": [INDEX_URI]}}
    listening = _curl(url, methods.LISTEN, wanted)
    noted = _curl(url, methods.TOOLS_CALL, {"name": "add_note", "arguments": {"text": "Sleep."}})
    sections = (
        ("What does the server offer?", _curl(url, methods.DISCOVER, {})),
        ("Its tools.", _curl(url, methods.TOOLS_LIST, {})),
        ("A plain call.", greeted),
        ("A call that reports progress and logs: the reply becomes an event stream.", counted),
        (
            "A tool that asks the user: the reply is input_required, with the question and a requestState.",
            f"reply=$({asked})\nprintf '%s\\n' \"$reply\"",
        ),
        (
            "The answer: the same call again, with the requestState of that reply.",
            f"state=$(printf '%s' \"$reply\" | {_TAKE_STATE})\n{retried}",
        ),
        (
            "Changes: listen in the background, add a note, stop listening.",
            f"{listening} &\nsleep 1\n{noted}\nsleep 1; kill $!",
        ),
    )
    return "\n".join(f"# {title}\n{command}\n" for title, command in sections)


def _curl(
    url: str,
    method: str,
    params: JsonObject,
    meta_extra: JsonObject | None = None,
    capabilities: JsonObject | None = None,
) -> str:
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": versions.MODERN,
        "Mcp-Method": method,
    }
    if "name" in params:
        headers["Mcp-Name"] = params["name"]
    request_meta = {
        meta.PROTOCOL_VERSION: versions.MODERN,
        meta.CLIENT_CAPABILITIES: capabilities or {},
        **(meta_extra or {}),
    }
    body = encode(request(1, method, {**params, "_meta": request_meta})).decode()
    lines = [f"curl -sN -w '\\n' {url}", *(f"-H '{name}: {value}'" for name, value in headers.items()), f"-d '{body}'"]
    return " \\\n  ".join(lines)
