"""How a malformed request is described and made: a good one, spoiled in one place."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.messages import PREFIX, HeaderChange, RawHeaders, good_headers, good_meta

PARSE, REQUEST, METHOD, PARAMS = -32700, -32600, -32601, -32602
MISMATCH, UNSUPPORTED = -32020, -32022
ABSENT: Final = object()
"""In a change: the member is left out."""

CALL: Final = {"name": "echo", "arguments": {"text": "hello"}}


@dataclass(frozen=True)
class Malformed:
    """One case.

    Attributes:
        name: says what is wrong.
        http_method: nearly always POST.
        headers: names in their usual case.
        body: as sent.
        status: of the reply.
        code: of the reply's JSON-RPC error; None: a body is not required.
        request_id: of the reply, type included.
        data: members that the error's `data` must have.
    """

    name: str
    http_method: str
    headers: RawHeaders
    body: bytes
    status: int
    code: int | None
    request_id: str | int | None
    data: dict[str, Any] = field(default_factory=dict)


def bad(
    name: str,
    code: int | None,
    *,
    status: int = 400,
    http_method: str = "POST",
    method: str = "tools/call",
    params: Any = None,
    meta: Mapping[str, Any] | None = None,
    message: Mapping[str, Any] | None = None,
    headers: Mapping[str, HeaderChange] | None = None,
    body: bytes | None = None,
    request_id: str | int | None = 7,
    data: dict[str, Any] | None = None,
) -> Malformed:
    """Spoil a good `tools/call`: change members of its params, `_meta`, envelope or headers, or the whole body."""
    if params is None:
        params = CALL if method == "tools/call" else {}
    full = {**params, "_meta": _changed(good_meta(), meta)} if isinstance(params, dict) else params
    envelope = _changed({"jsonrpc": "2.0", "id": 7, "method": method, "params": full}, message)
    mirrored = params if isinstance(params, dict) else {}
    return Malformed(
        name,
        http_method,
        good_headers(method, mirrored, headers),
        json.dumps(envelope).encode() if body is None else body,
        status,
        code,
        request_id,
        data or {},
    )


def _changed(values: dict[str, Any], changes: Mapping[str, Any] | None) -> dict[str, Any]:
    return {key: value for key, value in (values | dict(changes or {})).items() if value is not ABSENT}


def bad_head(name: str, status: int, **changes: Any) -> Malformed:
    return bad(name, REQUEST, status=status, request_id=None, **changes)


def bad_body(name: str, body: bytes, code: int = REQUEST, request_id: str | int | None = None) -> Malformed:
    return bad(name, code, body=body, request_id=request_id)


def bad_meta(name: str, **meta: Any) -> Malformed:
    return bad(name, PARAMS, meta={PREFIX + key: value for key, value in meta.items()})


def bad_capabilities(name: str, capabilities: Any) -> Malformed:
    return bad_meta(f"clientCapabilities {name}", clientCapabilities=capabilities)


def bad_params(name: str, method: str, params: dict[str, Any], **changes: Any) -> Malformed:
    return bad(f"{method} {name}", PARAMS, method=method, params=params, **changes)


def bad_route(name: str, arguments: dict[str, Any], headers: Mapping[str, HeaderChange]) -> Malformed:
    return bad(f"param header {name}", MISMATCH, params={"name": "route", "arguments": arguments}, headers=headers)
