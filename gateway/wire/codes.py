"""JSON-RPC and MCP error codes, and the HTTP status that goes with each."""

from typing import Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022

RESOURCE_NOT_FOUND: Final = -32002
"""Legacy only: 2026-07-28 says `-32602` with `data.uri`."""

URL_ELICITATION_REQUIRED: Final = -32042
"""2025-11-25 only: in 2026-07-28 a URL elicitation is a round."""

RESERVED: Final = range(-32099, -32019)
"""`-32020` to `-32099`: reserved by 2026-07-28 for the specification itself."""

STATUS: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
    INTERNAL_ERROR: 500,
}
"""The HTTP status of an error of the gateway's own making; what a server's execution produced goes out with 200."""
