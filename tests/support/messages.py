"""Well-formed modern requests, as the bytes of a POST: what tests then send, or spoil."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

VERSION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"

RawHeaders = list[tuple[bytes, bytes]]
HeaderChange = str | bytes | None | list[str | bytes]

_MIRRORED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


def good_meta(capabilities: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The `_meta` of a request; `more` names keys of the protocol's prefix, as `logLevel`."""
    meta: dict[str, Any] = {
        f"{PREFIX}protocolVersion": VERSION,
        f"{PREFIX}clientCapabilities": dict(capabilities or {}),
        f"{PREFIX}clientInfo": {"name": "test-client", "version": "1.0"},
    }
    return meta | {f"{PREFIX}{key}": value for key, value in more.items()}


def good_headers(
    method: str, params: Mapping[str, Any], changes: Mapping[str, HeaderChange] | None = None
) -> RawHeaders:
    """The headers of a POST, mirroring its body.

    Args:
        method: of the body.
        params: of the body.
        changes: by name: a value to set, a list to send the header several times, None to leave it out.
    """
    headers: dict[str, HeaderChange] = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": method,
    }
    target = params.get(_MIRRORED.get(method, ""))
    if isinstance(target, str):
        headers["Mcp-Name"] = target
    headers.update(changes or {})
    return [(_bytes(name), value) for name, change in headers.items() for value in _values(change)]


def good_request(
    method: str = "tools/list",
    params: Mapping[str, Any] | None = None,
    *,
    request_id: str | int = 1,
    capabilities: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    headers: Mapping[str, HeaderChange] | None = None,
) -> tuple[RawHeaders, bytes]:
    """A request that the gateway accepts: headers with the names in their usual case, and the body.

    Args:
        method: the JSON-RPC method.
        params: without `_meta`.
        request_id: the id.
        capabilities: what the client declares.
        meta: more keys of `_meta`.
        headers: changes, as in `good_headers`.
    """
    params = dict(params or {})
    full = {**params, "_meta": good_meta(capabilities) | dict(meta or {})}
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": full}
    return good_headers(method, params, headers), json.dumps(message).encode()


def to_asgi(headers: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """Headers as a server hands them to an application: lower-case names."""
    return [(name.lower(), value) for name, value in headers]


def _values(change: HeaderChange) -> list[bytes]:
    if change is None:
        return []
    return [_bytes(value) for value in (change if isinstance(change, list) else [change])]


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1")
