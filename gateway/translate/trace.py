"""Syntax of the W3C trace keys in `_meta` (2026-07-28, basic/index, "_meta").

A value that is not what its key promises is left out on the way to a server, as the W3C documents ask of every hop.
Members are split first and matched one by one: no pattern here can be made to backtrack.
"""

import re
from collections.abc import Callable
from typing import Final

from gateway.wire.jsonrpc import Json

MAX_TRACE_BYTES: Final = 8192

_TRACEPARENT = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[!-~]*)?")
_STATE_KEY = re.compile(r"[a-z0-9][a-z0-9_*/@-]{0,255}")
_STATE_VALUE = re.compile(r"[ -+\--<>-~]{0,255}[!-+\--<>-~]")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BAGGAGE_VALUE = re.compile(r"[!#-+\--:<-\[\]-~]*")
_MAX_STATE_MEMBERS = 32


def is_valid(key: str, value: Json) -> bool:
    """Whether a value is well-formed for `traceparent`, `tracestate` or `baggage`.

    Args:
        key: one of `gateway.wire.meta.TRACE_KEYS`.
        value: what stood at it.
    """
    return isinstance(value, str) and len(value) <= MAX_TRACE_BYTES and _CHECKS[key](value)


def _is_traceparent(value: str) -> bool:
    match = _TRACEPARENT.fullmatch(value)
    # Version 00 ends after the flags; a later version may add fields.
    return match is not None and (match[1] != "00" or match[2] is None)


def _is_tracestate(value: str) -> bool:
    members = [member.strip(" \t") for member in value.split(",")]
    return len(members) <= _MAX_STATE_MEMBERS and all(not member or _is_state_member(member) for member in members)


def _is_state_member(member: str) -> bool:
    key, _, value = member.partition("=")
    return _STATE_KEY.fullmatch(key) is not None and _STATE_VALUE.fullmatch(value) is not None


def _is_baggage(value: str) -> bool:
    return all(_is_baggage_member(member) for member in value.split(","))


def _is_baggage_member(member: str) -> bool:
    pair, *properties = member.split(";")
    return _is_pair(pair) and all(_is_pair(part) or _is_token(part) for part in properties)


def _is_pair(text: str) -> bool:
    key, equals, value = text.partition("=")
    return equals == "=" and _is_token(key) and _BAGGAGE_VALUE.fullmatch(value.strip(" \t")) is not None


def _is_token(text: str) -> bool:
    return _TOKEN.fullmatch(text.strip(" \t")) is not None


_CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "traceparent": _is_traceparent,
    "tracestate": _is_tracestate,
    "baggage": _is_baggage,
}
