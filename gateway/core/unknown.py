"""What a client is told of something that is not there, or not for it: the two must not be told apart."""

from typing import Final

from gateway.errors import ProtocolError
from gateway.wire import codes, methods

_NOUNS: Final = {methods.TOOLS_CALL: "tool", methods.PROMPTS_GET: "prompt", methods.RESOURCES_READ: "resource"}


def unknown_target(method: str, target: str) -> ProtocolError:
    """An unknown tool, prompt or resource: `-32602` with its name or URI in `data` (2026-07-28, server/resources).

    With 200: a model that makes up a name is everyday life, and a 4xx would end some clients' connections.
    """
    data = {methods.TARGET_PARAM[method]: target}
    return ProtocolError(codes.INVALID_PARAMS, f"Unknown {_NOUNS[method]}", data, status=200)


def unknown_method(method: str) -> ProtocolError:
    """A method that none of the servers offers."""
    return ProtocolError(codes.METHOD_NOT_FOUND, f"No upstream offers {method}")
