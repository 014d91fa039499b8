"""What a legacy client does before its first call: open a session, look at the tools."""

import http.client
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.bench.messages import LEGACY

_INITIALIZE = {
    "protocolVersion": LEGACY,
    "capabilities": {},
    "clientInfo": {"name": "era-gateway-bench", "version": "1"},
}
_POST = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class HandshakeError(Exception):
    """The peer serves, but no call can be made."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A session: the headers of its calls, and what the peer calls the upstream's tools.

    Args:
        headers: the session's id, and the credential.
        names: every tool of the peer.
    """

    headers: Mapping[str, str]
    names: tuple[str, ...]

    def name_of(self, tool: str) -> str:
        """What the peer calls a tool: some put a prefix before it, some write dashes for underscores.

        Raises:
            HandshakeError: it does not have the tool.
        """
        found = [name for name in self.names if name.replace("-", "_").endswith(tool)]
        if not found:
            raise HandshakeError(f"has no tool like {tool}, but {list(self.names)}")
        return found[0]


def open_session(port: int, path: str, credentials: Mapping[str, str]) -> Opened:
    """Opens a session as a client of 2025-11-25.

    Raises:
        HandshakeError: the peer refuses.
        OSError: it does not answer.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        reply, _ = _ask(connection, path, credentials, "initialize", _INITIALIZE)
        session_id = reply.getheader("Mcp-Session-Id")
        headers = {**credentials, **({"Mcp-Session-Id": session_id} if session_id else {})}
        versioned = {**headers, "MCP-Protocol-Version": LEGACY}
        _post(connection, path, versioned, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        _, result = _ask(connection, path, versioned, "tools/list", {})
        return Opened(headers, tuple(tool["name"] for tool in result["tools"]))
    finally:
        connection.close()


def _ask(
    connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str], method: str, params: Any
) -> tuple[http.client.HTTPResponse, Any]:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    reply, body = _post(connection, path, headers, request)
    found = re.search(rb"^(?:data: )?(\{.*)$", body, re.MULTILINE)
    message = json.loads(found[1]) if found else {}
    if reply.status != 200 or "result" not in message:
        raise HandshakeError(f"answered {method} with HTTP {reply.status}: {body[:300]!r}")
    return reply, message["result"]


def _post(
    connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str], message: Any
) -> tuple[http.client.HTTPResponse, bytes]:
    connection.request("POST", path, json.dumps(message), {**_POST, **headers})
    reply = connection.getresponse()
    return reply, reply.read()
