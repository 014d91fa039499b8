"""HTTP header names, and the values that the protocol puts into them (2026-07-28, basic/transports/streamable-http).

A name as the wire writes it is a `str`; the same name with `_KEY` is what arrives: lower-case bytes.
"""

import binascii
from base64 import b64encode
from typing import Final

PROTOCOL_VERSION: Final = "MCP-Protocol-Version"
METHOD: Final = "Mcp-Method"
NAME: Final = "Mcp-Name"
PARAM_PREFIX: Final = "Mcp-Param-"
SESSION_ID: Final = "Mcp-Session-Id"
LAST_EVENT_ID: Final = "Last-Event-ID"
ACCEPT: Final = "Accept"
CONTENT_TYPE: Final = "Content-Type"

PROTOCOL_VERSION_KEY: Final = PROTOCOL_VERSION.lower().encode()
METHOD_KEY: Final = METHOD.lower().encode()
NAME_KEY: Final = NAME.lower().encode()
PARAM_PREFIX_KEY: Final = PARAM_PREFIX.lower().encode()
SESSION_ID_KEY: Final = SESSION_ID.lower().encode()
LAST_EVENT_ID_KEY: Final = LAST_EVENT_ID.lower().encode()
ACCEPT_KEY: Final = ACCEPT.lower().encode()
CONTENT_TYPE_KEY: Final = CONTENT_TYPE.lower().encode()

JSON: Final = "application/json"
EVENT_STREAM: Final = "text/event-stream"
BOTH: Final = f"{JSON}, {EVENT_STREAM}"
"""The `Accept` value of every POST."""

_SENTINEL_START = "=?base64?"
_SENTINEL_END = "?="
_VISIBLE = frozenset(range(0x20, 0x7F))
_PLAIN = bytes(sorted({*_VISIBLE, 0x09}))


def decode_sentinel(value: bytes) -> str:
    """The text that an `Mcp-Name` or `Mcp-Param-*` value stands for: Base64 in the sentinel, or the value itself.

    The markers are case-sensitive, and a value with only one of them is literal ("Value Encoding").

    Raises:
        ValueError: a character that a header may not carry, Base64 that is not, or not UTF-8 inside it.
    """
    if value.translate(None, _PLAIN):
        raise ValueError("a character that must be Base64-encoded")
    text = value.decode("ascii")
    if not _is_sentinel(text):
        return text
    return binascii.a2b_base64(text[len(_SENTINEL_START) : -len(_SENTINEL_END)], strict_mode=True).decode("utf-8")


def encode_header_value(text: str) -> str:
    """Encode a name, URI or argument for a header: as it is where that is safe, else as Base64 in the sentinel.

    Raises:
        ValueError: the text has a lone surrogate, which UTF-8 cannot carry.
    """
    raw = text.encode("utf-8")
    if _VISIBLE.issuperset(raw) and text == text.strip(" ") and not _is_sentinel(text):
        return text
    return f"{_SENTINEL_START}{b64encode(raw).decode()}{_SENTINEL_END}"


def _is_sentinel(text: str) -> bool:
    return text.startswith(_SENTINEL_START) and text.endswith(_SENTINEL_END)


def is_json(content_type: bytes | str) -> bool:
    """Whether a `Content-Type` is JSON, with any parameters and in any case."""
    return content_type in (b"application/json", JSON) or _essence(content_type) == JSON


def is_event_stream(content_type: bytes | str) -> bool:
    """Whether a `Content-Type` is an event stream, with any parameters and in any case."""
    return _essence(content_type) == EVENT_STREAM


def accepts(accept: bytes, media_type: str) -> bool:
    """Whether an `Accept` value admits a media type: the most specific range that covers it has a weight over 0."""
    weights: dict[str, bool] = {}
    for item in accept.decode("latin-1").lower().split(","):
        media_range, *parameters = item.split(";")
        weights[media_range.strip()] = not any(_is_zero_weight(parameter) for parameter in parameters)
    for media_range in (media_type, f"{media_type.partition('/')[0]}/*", "*/*"):
        if media_range in weights:
            return weights[media_range]
    return False


def _is_zero_weight(parameter: str) -> bool:
    name, _, weight = parameter.partition("=")
    return name.strip() == "q" and not weight.strip().strip("0.")


def _essence(content_type: bytes | str) -> str:
    text = content_type if isinstance(content_type, str) else content_type.decode("latin-1")
    return text.partition(";")[0].strip().lower()
