"""Large results: what is added is written, what the server wrote is passed on as it is.

Decoding a megabyte to look at it is one thing, writing it again another; the second can be spared when nothing but new
members at the top level sets the modern result apart from the server's. Only the two orders of members in which SDKs
write a response are known here; any other, and any change within, means writing the whole.
"""

import re
from typing import Final

from gateway.wire.jsonrpc import Json, JsonObject, Sourced, Spliced, encode

_BLANK: Final = b" \t\r\n"
_ENVELOPE_FIRST: Final = re.compile(
    rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*"[^"\\]*"\s*,\s*"result"\s*:\s*(?=\{)'
)
_RESULT_FIRST: Final = re.compile(rb'\s*\{\s*"result"\s*:\s*(?=\{)')
_ENVELOPE_LAST: Final = re.compile(rb'\s*,\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*"id"\s*:\s*"[^"\\]*"\s*\}\s*\Z')
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
    span = _span_of_result(message) if added else None
    if span is None:
        return modern
    separator = b"," if message["result"] else b""
    return Spliced(modern, encode(added)[:-1] + separator, message.source, span[0] + 1, span[1])


def _added(original: JsonObject, modern: JsonObject) -> JsonObject | None:
    """The members that only the modern result has; None if anything else is different."""
    added = {key: value for key, value in modern.items() if key not in original}
    if len(modern) - len(added) != len(original):
        return None
    is_kept = all(modern[key] is value for key, value in original.items())
    return added if is_kept else None


def _span_of_result(message: Sourced) -> tuple[int, int] | None:
    """Where the text of `result` begins and ends within a response."""
    text, members = message.source, list(message)
    if members == ["jsonrpc", "id", "result"] and (start := _ENVELOPE_FIRST.match(text)):
        return start.end(), _end_before(text, _end_before(text, len(text)) - 1)
    if members == ["result", "jsonrpc", "id"] and (start := _RESULT_FIRST.match(text)):
        end = _ENVELOPE_LAST.search(text, max(start.end(), len(text) - _TAIL))
        return (start.end(), end.start()) if end else None
    return None


def _end_before(text: bytes, end: int) -> int:
    """Where text ends that is followed by blanks up to here."""
    while text[end - 1] in _BLANK:
        end -= 1
    return end
