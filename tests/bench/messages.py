"""What goes over the wire in the benchmark, prepared before anything is timed."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

MODERN: Final = "2026-07-28"
LEGACY: Final = "2025-11-25"

CALL: Final = "tools/call"
LISTEN: Final = "subscriptions/listen"

DIRECT: Final = {"Mcp-Session-Id": "bench-direct"}
"""The session of a call that goes to the canned upstream without any proxy."""

SIZES: Final = {"1k": 1024, "64k": 64 * 1024, "1m": 1024 * 1024}
REPLIES: Final = ("json", "sse")
"""How the upstream answers a call: one JSON body, or an event stream with one event."""

ASKING: Final[dict[str, Any]] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
"""The capabilities of a client that can be asked: its calls need a session each, at a time."""

_SENTENCE: Final = 'The quick brown fox said "jump", and the lazy dog — as ever — did not.\n'

TOOLS: Final = {f"{reply}_{size}": (reply, SIZES[size]) for reply in REPLIES for size in SIZES}
"""Every tool of the canned upstream: how it answers, and with about how many bytes."""

ASK: Final = "ask"
"""The tool that asks its caller for a name, and answers when it has one."""

QUESTION: Final[dict[str, Any]] = {
    "message": "Who are you?",
    "requestedSchema": {
        "type": "object",
        "title": "UserName",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    },
}


def tool_list() -> list[dict[str, Any]]:
    """The tools as `tools/list` gives them: plain schemas, as most servers have them."""
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    return [{"name": name, "description": "Canned.", "inputSchema": schema} for name in (*TOOLS, ASK)]


def result_of(size: int) -> bytes:
    """A `tools/call` result of about `size` bytes: one text block of prose, escapes and accents included."""
    text = _SENTENCE * (size // len(_SENTENCE.encode()))
    return orjson.dumps({"content": [{"type": "text", "text": text}], "isError": False})


def modern_call(
    tool: str, request_id: int, port: int, *, asking: bool, name: str = "", path: str = "/mcp", method: str = CALL
) -> bytes:
    """One complete modern HTTP request (2026-07-28, Streamable HTTP) that calls a tool, or lists them.

    Args:
        name: under which the target offers the tool, if that is not the server's own name.
    """
    name = name or tool
    if method != CALL:
        params = {"_meta": modern_params(name, asking=asking)["_meta"]}
        return _post(port, path, modern_headers(None, method), message(request_id, method, params))
    params = modern_params(name, asking=asking)
    return _post(port, path, modern_headers(name, method), message(request_id, method, params))


def listen_call(request_id: int, port: int) -> bytes:
    """A modern request that opens a stream of changes, and keeps it open."""
    params = {"notifications": {"toolsListChanged": True}, "_meta": modern_params("", asking=False)["_meta"]}
    return _post(port, "/mcp", modern_headers(None, LISTEN), message(request_id, LISTEN, params))


def modern_headers(name: str | None, method: str = CALL) -> dict[str, str]:
    """The headers that a modern request has beyond any legacy one's."""
    named = {} if name is None else {"Mcp-Name": name}
    return {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, **named}


def modern_params(tool: str, *, asking: bool) -> dict[str, Any]:
    """The parameters of a modern `tools/call`, `_meta` included."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": ASKING if asking else {},
        "io.modelcontextprotocol/clientInfo": {"name": "era-gateway-bench", "version": "1"},
    }
    return {"name": tool, "arguments": {"text": "hello"}, "_meta": meta}


def legacy_call(
    tool: str, request_id: int, port: int, *, name: str = "", path: str = "/mcp", headers: Mapping[str, str] = DIRECT
) -> bytes:
    """The same call as a legacy client sends it within a session.

    Args:
        headers: those that `initialize` led to, the session's id among them.
    """
    params = {"name": name or tool, "arguments": {"text": "hello"}}
    extra = {"MCP-Protocol-Version": LEGACY, **headers}
    return _post(port, path, extra, message(request_id, CALL, params))


def message(request_id: int, method: str, params: Mapping[str, Any]) -> bytes:
    """A JSON-RPC request."""
    return orjson.dumps({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def _post(port: int, path: str, extra: Mapping[str, str], body: bytes) -> bytes:
    headers = {
        "Host": f"127.0.0.1:{port}",
        "User-Agent": "era-gateway-bench/1",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **extra,
        "Content-Length": str(len(body)),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {path} HTTP/1.1\r\n".encode() + head.encode() + b"\r\n" + body
