"""Which era a server is of: the question, and what its answer proves.

Rule: a server is modern only if it says so, an outage proves nothing, and whatever else a server says to a method that
it does not know makes it legacy; deployed servers refuse in a dozen ways, so nothing hangs on one code.
2026-07-28, basic/versioning, and basic/transports/streamable-http ("Backward Compatibility").
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from gateway.wire import codes, headers, meta, methods
from gateway.wire.jsonrpc import Json, JsonObject, decode, request
from gateway.wire.versions import MODERN

Era: TypeAlias = Literal["modern", "legacy"]

PROBE_ID: Final = "era-probe"
"""The id of the probe."""


@dataclass(frozen=True, slots=True)
class Modern:
    """The server speaks 2026-07-28.

    Args:
        discover_result: what it told of itself; None if it showed its era with an error.
    """

    discover_result: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Legacy:
    """The server wants `initialize`.

    Args:
        reason: what it answered, for the log.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class NoVerdict:
    """The server could not be asked; nothing may be concluded, and nothing remembered.

    Args:
        reason: why, as a key of `errors.UPSTREAM_STATUS`.
        status: the HTTP status, None if there was no answer.
        try_initialize: whether an `initialize` with the same credential may settle it. Some servers refuse, or leave
            unanswered, only what they do not know.
        challenge: the `WWW-Authenticate` of a 401 or 403.
        retry_after_s: when the server wants to be asked again.
    """

    reason: str
    status: int | None = None
    try_initialize: bool = False
    challenge: str | None = None
    retry_after_s: int | None = None


Verdict: TypeAlias = Modern | Legacy | NoVerdict

_UNDECIDED: Final = {
    401: "unauthorized",
    403: "unauthorized",
    407: "unauthorized",
    408: "timeout",
    429: "full",
    503: "full",
    504: "timeout",
}
_MAX_DIGITS: Final = 8
_REFUSALS: Final = (400, 404, 405)
_LEGACY_REFUSAL: Final = -32000
"""What the official SDKs send with a 400 when they miss a session or do not know the version."""

_ONLY_MODERN: Final = frozenset({codes.HEADER_MISMATCH, codes.MISSING_CAPABILITY})


def probe_request(client_info: JsonObject) -> tuple[dict[str, str], JsonObject]:
    """The question: `server/discover`, with the headers that belong to it.

    Args:
        client_info: who asks.
    """
    about = {meta.PROTOCOL_VERSION: MODERN, meta.CLIENT_CAPABILITIES: {}, meta.CLIENT_INFO: client_info}
    message = request(PROBE_ID, methods.DISCOVER, {"_meta": about})
    return {headers.PROTOCOL_VERSION: MODERN, headers.METHOD: methods.DISCOVER}, message


def verdict(
    status: int | None, answer_headers: Mapping[str, str], body: bytes, *, has_credential: bool = True
) -> Verdict:
    """Judge the answer to a probe.

    Args:
        status: the HTTP status; None on stdio.
        answer_headers: the response headers, to be read by their usual names.
        body: the JSON-RPC message, or whatever came instead; `b""` for silence on stdio.
        has_credential: whether the probe carried one: without, a 401 with a challenge needs no second try.
    """
    message = _decode(body)
    if status is not None and (status in _UNDECIDED or status >= 500):
        return _undecided(status, answer_headers, message, has_credential)
    result, error = message.get("result"), message.get("error")
    if isinstance(result, dict):
        return _judge_result(result)
    if isinstance(error, dict):
        return _judge_error(error)
    return Legacy("no answer" if not body and status is None else _say_status(status))


def speaks_modern(supported: Json) -> bool:
    """Whether a `supportedVersions`, or the `supported` of a -32022, has the revision that the gateway speaks."""
    return isinstance(supported, list) and MODERN in supported


def is_foreign_refusal(status: int, message: Json, request_id: str) -> bool:
    """Whether an answer to a modern request shows that the server is not modern, or no longer.

    That is a 400, 404 or 405 that does not answer this very request, or calls it no request at all, as a server gives
    that misses a session or an `initialize`; and a -32022 that does not offer 2026-07-28.
    """
    error = message.get("error") if isinstance(message, dict) else None
    if not isinstance(error, dict):
        return status in _REFUSALS
    code = error.get("code")
    if code == codes.UNSUPPORTED_VERSION:
        return not _offers_modern(error)
    is_ours = message.get("id") == request_id and code not in (codes.INVALID_REQUEST, _LEGACY_REFUSAL)
    return status in _REFUSALS and not is_ours and not _is_only_modern(code)


def is_modern_refusal(status: int, message: Json) -> bool:
    """Whether an answer to a legacy request shows that the server is modern by now, and executed nothing."""
    error = message.get("error") if isinstance(message, dict) else None
    if status != 400 or not isinstance(error, dict):
        return False
    code = error.get("code")
    return code == codes.HEADER_MISMATCH or (code == codes.UNSUPPORTED_VERSION and _offers_modern(error))


def _decode(body: bytes) -> JsonObject:
    try:
        message = decode(body)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _undecided(status: int, answer_headers: Mapping[str, str], message: JsonObject, has_credential: bool) -> NoVerdict:
    challenge = answer_headers.get("WWW-Authenticate")
    # A 500 that carries a JSON-RPC error is how some servers refuse a method or a version header.
    is_refusal = (
        status == 403
        or (status == 401 and (has_credential or challenge is None))
        or (status == 500 and isinstance(message.get("error"), dict))
    )
    after = answer_headers.get("Retry-After", "")
    return NoVerdict(
        _UNDECIDED.get(status, "nonsense"),
        status,
        try_initialize=is_refusal or status in (408, 504),
        challenge=challenge,
        retry_after_s=int(after) if after.isdecimal() and len(after) < _MAX_DIGITS else None,
    )


def _judge_result(result: JsonObject) -> Verdict:
    # Seen in the field: a discover result that lists legacy versions only, from a server that refuses modern requests.
    if speaks_modern(result.get("supportedVersions")):
        return Modern(result)
    return Legacy(f"its discover result does not list {MODERN}")


def _judge_error(error: JsonObject) -> Verdict:
    code = error.get("code")
    if _is_only_modern(code) or (code == codes.UNSUPPORTED_VERSION and _offers_modern(error)):
        return Modern()
    return Legacy(f"error {code}" if type(code) is int else "an error without a code")


def _is_only_modern(code: Json) -> bool:
    return type(code) is int and code in _ONLY_MODERN


def _offers_modern(error: JsonObject) -> bool:
    data = error.get("data")
    return isinstance(data, dict) and speaks_modern(data.get("supported"))


def _say_status(status: int | None) -> str:
    return "no JSON-RPC message" if status is None else f"HTTP {status} without a JSON-RPC message"
