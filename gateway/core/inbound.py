"""The validation ladder: what a request must get past before anything is done for it. The first failure wins.

Rungs 1 to 4 read only the head (`front_door`); 5 to 11 are here, each with its reason; 12 needs the tool's schema
(`param_headers`); 13 is the method and its own parameters (`inbound_params`). The order lets a client of any era learn
what is wrong with it first: what is not JSON has no id to answer to, a client of another revision hears so before it
hears of `_meta` keys that its revision never had, and headers are compared before a method is looked up, since an
intermediary may have believed them.
"""

from json import JSONDecodeError
from typing import Final

from gateway.core.front_door import FrontDoor, Headers, RawHeaders, body_too_large, check_head, cors_headers, preflight
from gateway.core.inbound_meta import check_meta, meta_fault
from gateway.core.inbound_params import check_params
from gateway.core.inbound_request import (
    InboundError,
    InboundNotification,
    InboundRequest,
    header_mismatch,
    invalid_params,
    shown,
)
from gateway.core.param_headers import check_param_headers
from gateway.errors import ProtocolError
from gateway.wire import codes, methods, versions
from gateway.wire import headers as wire
from gateway.wire import meta as keys
from gateway.wire.jsonrpc import Json, JsonObject, RequestId, decode_strict, is_request_id

__all__ = [
    "FrontDoor",
    "Headers",
    "InboundError",
    "InboundNotification",
    "InboundRequest",
    "RawHeaders",
    "body_too_large",
    "check_head",
    "check_param_headers",
    "check_params",
    "cors_headers",
    "preflight",
    "validate",
]

_NOTIFICATION_PREFIX: Final = "notifications/"
_TASK_PREFIX: Final = "tasks/"
_VERSIONS: Final = " and ".join(versions.SUPPORTED)
_SPEAKS: Final = f"This endpoint (era-gateway) speaks MCP {_VERSIONS} only"
_UPGRADE: Final = (
    f"{_SPEAKS}, without the initialize handshake of older revisions: "
    f"upgrade the client to a release that supports {_VERSIONS}"
)
_INSTEAD: Final = {
    methods.INITIALIZE: _UPGRADE,
    methods.SET_LEVEL: f"Method not found: send {keys.LOG_LEVEL} in the _meta of each request instead",
    methods.SUBSCRIBE: f"Method not found: name the resource in {methods.LISTEN} instead",
    methods.UNSUBSCRIBE: f"Method not found: close the stream of {methods.LISTEN} instead",
}
"""What took the place of methods that the revision removed."""


def validate(headers: Headers, body: bytes) -> InboundRequest | InboundNotification:
    """Rungs 5 to 11, and of 13 whether 2026-07-28 has the method at all.

    Raises:
        InboundError: whatever the bytes are, nothing else; it carries the request's id once that could be read.
    """
    request_id: RequestId | None = None
    try:
        message = _decode(body)
        if isinstance(message, dict) and is_request_id(message.get("id")):
            request_id = message["id"]
        _check_envelope(message)
        if "id" not in message:
            return _notification(message)
        if request_id is None:
            raise _invalid_request("id must be a string of at most 256 bytes or a 64-bit integer")
        return _request(headers, message, request_id)
    except ProtocolError as error:
        raise InboundError(error, request_id) from None


def _decode(body: bytes) -> Json:
    # Rung 5: a member that stands twice would be read one way here and another way upstream.
    try:
        return decode_strict(body)
    except JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ProtocolError(codes.PARSE_ERROR, f"The body is not JSON: see {place}") from None
    except ValueError:
        fault = "not JSON in UTF-8, nested too deeply, or an object in it has a member twice"
        raise ProtocolError(codes.PARSE_ERROR, f"The body is {fault}") from None


def _check_envelope(message: Json) -> None:
    # Rung 6: one request or notification per POST; no batches, and no responses, since no server asks any more
    # ("Sending Messages").
    if isinstance(message, list):
        raise _invalid_request("Batches are not part of this revision: POST each request by itself")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise _invalid_request('The body must be one JSON-RPC object with "jsonrpc": "2.0"')
    if "method" not in message and ("result" in message or "error" in message):
        raise _invalid_request("Responses are not accepted: answers go into inputResponses of a repeated request")
    method = message.get("method")
    if not isinstance(method, str):
        raise _invalid_request("method must be a string")
    # A call without an id would run and answer nobody.
    if "id" not in message and not method.startswith(_NOTIFICATION_PREFIX):
        raise _invalid_request("A request must have an id; only notifications/* go without")


def _notification(message: JsonObject) -> InboundNotification:
    params = message.get("params")
    return InboundNotification(message["method"], params if isinstance(params, dict) else {})


def _request(headers: Headers, message: JsonObject, request_id: RequestId) -> InboundRequest:
    method: str = message["method"]
    params = message.get("params", {})
    if not isinstance(params, dict):
        raise invalid_params("params must be an object")
    version = _version_header(headers, method, params)
    meta = _meta(params, version, method)
    _check_version(version, meta[keys.PROTOCOL_VERSION])
    check_meta(meta)  # rung 10: capabilities are declared with each request, never remembered ("Statelessness")
    _check_method_header(headers, method)
    _check_name_header(headers, method, params)
    if method not in methods.MODERN_REQUESTS:  # rung 13, first half: never forwarded, some servers never answer it
        raise ProtocolError(codes.METHOD_NOT_FOUND, _INSTEAD.get(method, f"Method not found: {shown(method)}"))
    return _to_request(headers, request_id, method, params, meta)


def _version_header(headers: Headers, method: str, params: JsonObject) -> str:
    # Rung 7: required on every POST ("Protocol Version Header"). Only a legacy client's first contact has none by
    # right, and an unsupported version is all that it can understand.
    if headers.is_repeated(wire.PROTOCOL_VERSION_KEY):
        raise _version_mismatch("was sent more than once", headers.get(wire.PROTOCOL_VERSION_KEY), params)
    raw = headers.get(wire.PROTOCOL_VERSION_KEY)
    if raw:
        return raw.decode("ascii", "backslashreplace")
    if method == methods.INITIALIZE:
        raise _unsupported(params.get("protocolVersion"), _UPGRADE)
    raise _version_mismatch("is missing: it must mirror the version in _meta", None, params)


def _version_mismatch(problem: str, header: bytes | None, params: JsonObject) -> ProtocolError:
    meta = params.get("_meta")
    body = meta.get(keys.PROTOCOL_VERSION) if isinstance(meta, dict) else None
    return header_mismatch(f"{wire.PROTOCOL_VERSION} {problem}", header, body)


def _meta(params: JsonObject, version: str, method: str) -> JsonObject:
    # Rung 8: each request says for itself who asks and in which revision. A legacy client's later requests name their
    # revision in the header alone; the lack of `_meta` is not what keeps them out.
    fault = meta_fault(params)
    if fault is None:
        meta: JsonObject = params["_meta"]
        return meta
    if version in versions.SUPPORTED:
        raise invalid_params(fault)
    raise _unsupported(version, _UPGRADE if method == methods.INITIALIZE else f"{_SPEAKS}: upgrade the client to it")


def _check_version(header: str, body: str) -> None:
    # Rung 9: two values that differ are a mismatch, even if one of them is unsupported.
    if header != body:
        raise header_mismatch(f"{wire.PROTOCOL_VERSION} differs from {keys.PROTOCOL_VERSION} in _meta", header, body)
    if body not in versions.SUPPORTED:
        raise _unsupported(body, f"{_SPEAKS}: send one of data.supported in header and _meta")


def _check_method_header(headers: Headers, method: str) -> None:
    # Rung 11: intermediaries route by these headers instead of the body, so they must say the same
    # ("Server Validation"); names of headers are case-insensitive, values are not ("Case Sensitivity").
    header = headers.get(wire.METHOD_KEY)
    if headers.is_repeated(wire.METHOD_KEY):
        raise header_mismatch(f"{wire.METHOD} was sent more than once", header, method)
    if not header:
        raise header_mismatch(f"{wire.METHOD} is missing: it must mirror method", None, method)
    if not header.isascii() or header.decode("ascii") != method:
        raise header_mismatch(f"{wire.METHOD} differs from method in the body", header, method)


def _check_name_header(headers: Headers, method: str, params: JsonObject) -> None:
    member = methods.TARGET_PARAM.get(method) or _task_member(method, params)
    if member is None:
        return
    header, target = headers.get(wire.NAME_KEY), params.get(member)
    if headers.is_repeated(wire.NAME_KEY):
        raise header_mismatch(f"{wire.NAME} was sent more than once", header, target)
    if not header:
        if isinstance(target, str) and target:
            raise header_mismatch(f"{wire.NAME} is missing: it must mirror params.{member}", None, target)
        return  # nothing to mirror: what is wrong is the body, and rung 13 says so
    try:
        name = wire.decode_sentinel(header)
    except ValueError:
        problem = "has characters that need Base64, or Base64 that does not decode"
        raise header_mismatch(f"{wire.NAME} {problem}", header, target) from None
    if name != target:
        raise header_mismatch(f"{wire.NAME} differs from params.{member}", name, target)


def _task_member(method: str, params: JsonObject) -> str | None:
    # No task is served here, but who sends one follows the extension's rule for the header.
    return "taskId" if method.startswith(_TASK_PREFIX) and "taskId" in params else None


def _to_request(
    headers: Headers, request_id: RequestId, method: str, params: JsonObject, meta: JsonObject
) -> InboundRequest:
    is_asking = method in methods.ASKING  # which are the methods with a target, too
    target = params.get(methods.TARGET_PARAM[method]) if is_asking else None
    answers = params.get("inputResponses") if is_asking else None
    state = params.get("requestState") if is_asking else None
    return InboundRequest(
        id=request_id,
        method=method,
        params=params,
        meta=meta,
        capabilities=meta[keys.CLIENT_CAPABILITIES],
        client_info=meta.get(keys.CLIENT_INFO),
        log_level=meta.get(keys.LOG_LEVEL),
        progress_token=meta.get(keys.PROGRESS_TOKEN),
        target=target if isinstance(target, str) else None,
        param_headers=_param_headers(headers) if method == methods.TOOLS_CALL else {},
        input_responses=answers if isinstance(answers, dict) else None,
        request_state=state if isinstance(state, str) else None,
    )


def _param_headers(headers: Headers) -> dict[str, bytes]:
    found = {}
    for suffix, value in headers.with_prefix(wire.PARAM_PREFIX_KEY):
        name = suffix.decode("latin-1")
        if headers.is_repeated(wire.PARAM_PREFIX_KEY + suffix):
            raise ProtocolError(codes.HEADER_MISMATCH, f"{wire.PARAM_PREFIX}{shown(name)} was sent more than once")
        found[name] = value
    return found


def _unsupported(requested: Json, message: str) -> ProtocolError:
    data = {"supported": list(versions.SUPPORTED), "requested": shown(requested) or ""}
    return ProtocolError(codes.UNSUPPORTED_VERSION, message, data)


def _invalid_request(message: str) -> ProtocolError:
    return ProtocolError(codes.INVALID_REQUEST, message)
