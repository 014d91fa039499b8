"""Large results: what is added is written, what the server wrote is passed on as it is.

Decoding a megabyte to look at it is one thing, writing it again another; the second can be spared when nothing but new
members at the top level sets the modern result apart from the server's. Only the two orders of members in which SDKs
write a response are known here; any other, and any change within, means writing the whole.
"""

import re
from typing import Final

from gateway.wire.jsonrpc import Json, JsonObject, Sourced, encode

_BLANK: Final = b" \t\r\n"
_ENVELOPE_FIRST: Final = re.compile(
    rb'\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*"[^"\\]*"\s*,\s*"result"\s*:\s*(?=\{)'
)
_RESULT_FIRST: Final = re.compile(rb'\{\s*"result"\s*:\s*(?=\{)')
_ENVELOPE_LAST: Final = re.compile(rb'\s*,\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*"[^"\\]*"\s*\}\Z')
_TAIL: Final = 512


def splice(message: Json, modern: JsonObject) -> JsonObject:
    """Give a modern result the text that says it, if that can be made from the text of the server's message.

    Args:
        message: the response that the server sent.
        modern: its result, translated.

    Returns:
        The same result, with its text if possible.
    """
    if type(message) is not Sourced:
        return modern
    added = _added(message["result"], modern)
    own = _result_text(message) if added is not None else None
    if not added or own is None:
        return modern
    rest = own[1:].lstrip(_BLANK)
    separator = b"" if rest == b"}" else b","
    return Sourced(modern, encode(added)[:-1] + separator + rest)


def _added(original: JsonObject, modern: JsonObject) -> JsonObject | None:
    """The members that only the modern result has; None if anything else is different."""
    added = {key: value for key, value in modern.items() if key not in original}
    if len(modern) - len(added) != len(original):
        return None
    is_kept = all(modern[key] is value for key, value in original.items())
    return added if is_kept else None


def _result_text(message: Sourced) -> bytes | None:
    """The text of `result` within a response."""
    text = message.source.strip(_BLANK)
    members = list(message)
    if members == ["jsonrpc", "id", "result"] and (start := _ENVELOPE_FIRST.match(text)):
        return text[start.end() : -1].rstrip(_BLANK)
    if members == ["result", "jsonrpc", "id"] and (start := _RESULT_FIRST.match(text)):
        end = _ENVELOPE_LAST.search(text, max(start.end(), len(text) - _TAIL))
        return text[start.end() : end.start()] if end else None
    return None
