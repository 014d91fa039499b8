"""The facts of a legacy session: what it is keyed by, how it is negotiated, and how a server says that it forgot it.

2025-11-25, basic/lifecycle and basic/transports, "Session Management".
"""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from gateway.translate import discovery
from gateway.wire.jsonrpc import Json, JsonObject
from gateway.wire.versions import LATEST_LEGACY, LEGACY


class SessionKey(NamedTuple):
    """Who may use a session. Two requests share one only if all of this is equal.

    A server fixes capabilities at `initialize` while a modern client declares them with every request: keyed by
    them, a server sees exactly what this very request declared.

    Args:
        principal: the principal's id.
        credentials: a digest of the credentials that the upstream sees; "" when they are the same for everybody.
        capabilities: the canonical text of the declared capabilities, or a digest of it if it is long.
        client_info: likewise of the client's identity, where it is passed on; else "".
        affinity: the session that the client means, among several of its own; "" for the one without a name.
    """

    principal: str
    credentials: str
    capabilities: str
    client_info: str = ""
    affinity: str = ""


@dataclass(frozen=True, slots=True)
class Negotiated:
    """What `initialize` settled.

    Args:
        version: the revision that every later request of the session carries.
        result: the server's result, as it is.
        capabilities: what the server offers.
        server_info: who the server says it is, fit for a modern `_meta`; None if it does not say.
    """

    version: str
    result: JsonObject
    capabilities: JsonObject
    server_info: JsonObject | None


def initialize_params(capabilities: JsonObject, client_info: JsonObject) -> JsonObject:
    """The parameters of `initialize`: the newest legacy revision, never a modern one."""
    return {"protocolVersion": LATEST_LEGACY, "capabilities": capabilities, "clientInfo": client_info}


def negotiate(result: Json) -> Negotiated:
    """Read the result of `initialize`.

    Raises:
        ValueError: the server chose a revision that the gateway does not speak, or sent no usable result.
    """
    if not isinstance(result, dict):
        raise ValueError("its result of initialize is not an object")
    version = result.get("protocolVersion")
    if version not in LEGACY:
        raise ValueError(f"it negotiates a revision that the gateway does not speak; spoken are {', '.join(LEGACY)}")
    capabilities = result.get("capabilities")
    return Negotiated(
        version, result, capabilities if isinstance(capabilities, dict) else {}, discovery.server_info_of(result)
    )


_NAMES_SESSION: Final = re.compile(r"session", re.IGNORECASE)
_SAYS_GONE: Final = re.compile(
    r"not found|unknown|expired|invalid|no valid|missing|terminated|does not exist|closed|required", re.IGNORECASE
)


def is_expired(status: int, message: Json, request_id: str) -> bool:
    """Whether a reply to a request that carried a session id says that the server does not know the session.

    Such a server refused before it executed anything, so that the request may be sent again on a new session.
    404 is the specified answer; 410, 400 and even 200 with an error are what deployed servers send. An error that
    echoes the request's id is about the request, unless it speaks of the session.

    Args:
        status: the HTTP status.
        message: the decoded body, None if there is none or it is not JSON.
        request_id: the id of the request that was sent.
    """
    error = message.get("error") if isinstance(message, dict) else None
    if isinstance(error, dict):
        if _blames_session(error):
            return status != 401
        return status in (400, 404, 410) and message.get("id") != request_id
    return status in (400, 404, 410)


def _blames_session(error: JsonObject) -> bool:
    text = error.get("message")
    return isinstance(text, str) and _NAMES_SESSION.search(text) is not None and _SAYS_GONE.search(text) is not None
