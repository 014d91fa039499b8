"""The header whose values choose among the sessions of a user."""

import re
from typing import Annotated, Final

from pydantic import BeforeValidator

from gateway.config.secret import is_owned_header
from gateway.config.values import wrong

_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_RESERVED: Final = re.compile(
    r"authorization|cookie|date|forwarded|mcp-.*|origin|via|x-api-key|x-forwarded-.*", re.IGNORECASE
)
"""Credentials, what changes on the way, and what the protocol gives a meaning of its own."""


def parse_affinity(value: object) -> object:
    """Check the name of a header that clients choose a session by; an empty key is none."""
    if value is None:
        return None
    if not isinstance(value, str) or _TOKEN.fullmatch(value) is None:
        raise wrong("not a header name", "letters, digits and -, such as X-Conversation", remedy="mend the name")
    if _RESERVED.fullmatch(value) is not None or is_owned_header(value):
        remedy = "have clients send a header of its own, such as X-Conversation"
        raise wrong("a header with another meaning", "a header of its own", remedy=remedy)
    return value


AffinityHeader = Annotated[str | None, BeforeValidator(parse_affinity)]
