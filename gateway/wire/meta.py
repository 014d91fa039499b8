"""The keys of `_meta` (2026-07-28, basic/index, "_meta")."""

import re
from typing import Final

PREFIX: Final = "io.modelcontextprotocol/"
PROTOCOL_VERSION: Final = PREFIX + "protocolVersion"
CLIENT_CAPABILITIES: Final = PREFIX + "clientCapabilities"
CLIENT_INFO: Final = PREFIX + "clientInfo"
LOG_LEVEL: Final = PREFIX + "logLevel"
SERVER_INFO: Final = PREFIX + "serverInfo"
SUBSCRIPTION_ID: Final = PREFIX + "subscriptionId"
PROGRESS_TOKEN: Final = "progressToken"  # noqa: S105 -- a protocol key, not a secret

TRACE_KEYS: Final = frozenset({"traceparent", "tracestate", "baggage"})

LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
LOG_RANK: Final = {level: rank for rank, level in enumerate(LOG_LEVELS)}
"""A level's severity: a message passes when its rank is at least that of the level asked for."""

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_NAME = r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
_KEY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*/)?{_NAME}")


def is_key(key: str) -> bool:
    """Whether a string is a syntactically valid `_meta` key: an optional dotted prefix and a name."""
    return _KEY.fullmatch(key) is not None
