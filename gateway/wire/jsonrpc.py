"""JSON-RPC 2.0 envelopes and their bytes.

Rule: what goes in comes out with the same meaning. orjson does nearly all of it; the standard library takes over
where orjson refuses or would round (integers beyond 64 bits, lone surrogates).
"""

import json
import math
from collections.abc import Iterable
from typing import Any, Final, TypeAlias, TypeGuard

import orjson

Json: TypeAlias = Any
"""Any JSON value, decoded. The one place where `Any` is meant."""

JsonObject: TypeAlias = dict[str, Any]
RequestId: TypeAlias = str | int

MAX_ID_BYTES: Final = 256
MAX_DEPTH: Final = 512
"""Levels of objects and arrays in what a client sends."""

_INT64 = range(-(2**63), 2**63)
_BOM = b"\xef\xbb\xbf"
_SHAPE = bytes.maketrans(b"123456789", b"000000000")
"""Reads every digit as 0, so that looking for a long run of digits is looking for a few bytes."""
_LONG_RUN = b"0" * 19
_WORTH_SAMPLING: Final = 256
_STRIDE: Final = 9
_MOST_LOOKS: Final = 64
_BEFORE_NUMBER = b"[:, \t\r\n"


def is_request_id(value: Json) -> TypeGuard[RequestId]:
    """Whether a decoded value may be a request id: a string of at most 256 bytes, or an int64 (no float, no bool)."""
    if isinstance(value, str):
        return len(value) <= MAX_ID_BYTES and len(value.encode("utf-8", "surrogatepass")) <= MAX_ID_BYTES
    return type(value) is int and value in _INT64


def decode(raw: bytes) -> Json:
    """Decode JSON text in UTF-8, with or without a byte order mark.

    Raises:
        ValueError: the bytes are not JSON, or nest too deeply to be read.
    """
    raw = raw.removeprefix(_BOM)
    if not _has_long_integer(raw):
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            pass
    return _decode_slowly(raw)


def _has_long_integer(raw: bytes) -> bool:
    """Whether there is an integer that may need more than 64 bits, which orjson would round; in a string it is none."""
    return (len(raw) <= _WORTH_SAMPLING or _may_have_long_run(raw)) and _has_long_number(raw)


def _may_have_long_run(raw: bytes) -> bool:
    """Whether 19 digits stand in a row anywhere, without looking at every byte: of those, every ninth are two."""
    sample = raw[::_STRIDE].translate(_SHAPE)
    hit = sample.find(b"00")
    for _ in range(_MOST_LOOKS):
        if hit < 0:
            return False
        place = hit * _STRIDE
        if _LONG_RUN in raw[max(place - len(_LONG_RUN), 0) : place + 2 * len(_LONG_RUN)].translate(_SHAPE):
            return True
        hit = sample.find(b"00", hit + 1)
    return True


def _has_long_number(raw: bytes) -> bool:
    shape = raw.translate(_SHAPE)
    start = shape.find(_LONG_RUN)
    while start >= 0:
        before = raw[max(start - 2, 0) : start].removesuffix(b"-")[-1:]
        if before in _BEFORE_NUMBER:
            return True
        start = shape.find(_LONG_RUN, start + len(_LONG_RUN))
    return False


def decode_strict(raw: bytes) -> Json:
    """Decode like `decode`, but refuse an object that has a member twice, and what nests too deeply.

    Two parsers that pick different duplicates would see different requests; so nobody gets to see one. How deep is too
    deep for Python to write depends on how deep in its own calls it is; so what was taken in is written anywhere.

    Raises:
        ValueError: the bytes are not JSON, an object repeats a member name, or more than `MAX_DEPTH` levels.
    """
    value = decode(raw)
    try:
        again = orjson.dumps(value)  # refuses more than 254 levels
    except TypeError:
        if _is_deeper(value, MAX_DEPTH):
            raise ValueError("nested too deeply") from None
        again = encode(value)
    # Every member costs one colon. A colon inside a string is written as itself or as \u003a; without the latter,
    # equal counts before and after prove that no member was dropped. A number beyond all bounds comes back as null.
    if b"\\u003" in raw or raw.count(b":") != again.count(b":") or raw.count(b"null") != again.count(b"null"):
        return _decode_slowly(raw.removeprefix(_BOM), refuse_duplicates=True)
    return value


def _is_deeper(value: Json, most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [inner for outer in level for inner in _inside(outer)]
    return any(isinstance(inner, dict | list) for inner in level)


def _inside(value: Json) -> Iterable[Json]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def encode(value: Json) -> bytes:
    """Encode as compact JSON in UTF-8; integers of any size and lone surrogates survive.

    Raises:
        ValueError: the value cannot be written as JSON.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        try:
            return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def _decode_slowly(raw: bytes, *, refuse_duplicates: bool = False) -> Json:
    try:
        return json.loads(
            raw.decode("utf-8"),
            parse_constant=_refuse_constant,
            parse_float=_parse_float,
            object_pairs_hook=_unique_members if refuse_duplicates else None,
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _parse_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is too large")
    return value


def _refuse_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _unique_members(pairs: list[tuple[str, Json]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object repeats a member name")
    return members


class Sourced(dict[str, Any]):
    """An object together with its JSON text.

    Whoever copies or changes it gets a plain object.

    Args:
        value: the object.
        source: its text.
    """

    __slots__ = ("source",)

    def __init__(self, value: JsonObject, source: bytes) -> None:
        super().__init__(value)
        self.source = source


class Spliced(dict[str, Any]):
    """An object together with two parts of text that say the same, so that it need not be written again.

    Whoever copies or changes it gets a plain object.

    Args:
        value: the object.
        head: the first part.
        source: what the second is a part of.
        start: where that begins.
        end: where it ends.
    """

    __slots__ = ("end", "head", "source", "start")

    def __init__(self, value: JsonObject, head: bytes, source: bytes, start: int, end: int) -> None:
        super().__init__(value)
        self.head = head
        self.source = source
        self.start = start
        self.end = end


WORTH_KEEPING: Final = 16_384
"""Bytes from which on the text of a message is kept with it."""

Pieces: TypeAlias = list[bytes | memoryview]
"""Text in parts, since putting megabytes together means copying them."""


def decode_message(raw: bytes) -> Json:
    """Decode like `decode`; a large object keeps its text. Raises like `decode`."""
    value = decode(raw)
    if len(raw) >= WORTH_KEEPING and type(value) is dict:
        return Sourced(value, raw)
    return value


def encode_response(request_id: RequestId, body: JsonObject) -> Pieces:
    """A response with this id and either `result` or `error`; a result that has its text is not written again.

    Raises:
        ValueError: the body cannot be written as JSON.
    """
    result = body.get("result")
    if type(result) is not Spliced:
        return [encode({"jsonrpc": "2.0", "id": request_id, **body})]
    begin = b'{"jsonrpc":"2.0","id":%b,"result":%b' % (encode(request_id), result.head)
    if result.source.startswith(b"}", result.end):  # what closes the response there closes it here
        return [begin, memoryview(result.source)[result.start : result.end + 1]]
    return [begin, memoryview(result.source)[result.start : result.end], b"}"]


def request(request_id: RequestId, method: str, params: JsonObject | None = None) -> JsonObject:
    """A request; `params` is left out when None."""
    message: JsonObject = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params is not None:
        message["params"] = params
    return message


def notification(method: str, params: JsonObject | None = None) -> JsonObject:
    """A notification; `params` is left out when None."""
    message: JsonObject = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return message


def response(request_id: RequestId, result: JsonObject) -> JsonObject:
    """A successful response."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_object(code: int, message: str, data: Json = None) -> JsonObject:
    """An error object; `data` is left out when None."""
    error: JsonObject = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return error


def error_response(request_id: RequestId | None, error: JsonObject) -> JsonObject:
    """An error response; an unreadable id is null."""
    return {"jsonrpc": "2.0", "id": request_id, "error": error}
