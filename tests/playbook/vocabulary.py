"""The words of the dialogues: what a server may say, what a client may answer, and what the gateway makes of it."""

from collections.abc import Mapping
from typing import Any

from gateway.core.exchange import Exchange
from gateway.core.exchange_events import (
    Asked,
    Broke,
    Complete,
    Fail,
    Leg,
    Notified,
    Post,
    Relay,
    RequireInput,
    Responded,
    TimedOut,
)
from gateway.errors import GatewayError, ProtocolError, UpstreamError
from gateway.wire.jsonrpc import JsonObject, RequestId

EVERYTHING: JsonObject = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
"""The capabilities of a client that may be asked anything."""

CALL_ID = "call-7"
SCHEMA: JsonObject = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FORM: JsonObject = {"message": "Who are you?", "requestedSchema": SCHEMA}
PAGE: JsonObject = {"mode": "url", "message": "Sign in", "url": "https://pay.test/x?y=1", "elicitationId": "el-9"}
PROMPT: JsonObject = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 9}

ADA: JsonObject = {"action": "accept", "content": {"name": "Ada"}}
BOB: JsonObject = {"action": "accept", "content": {"name": "Bob"}}
DECLINED: JsonObject = {"action": "decline"}
SAID: JsonObject = {"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "m"}
ROOTS: JsonObject = {"roots": [{"uri": "file:///srv"}]}

RESULT: JsonObject = {"jsonrpc": "2.0", "id": CALL_ID, "result": {"content": []}}
DONE = Responded(RESULT)
DELIVERED = Complete(RESULT)

SILENT = UpstreamError("docs", "timeout", "Upstream 'docs' sent nothing for 60 s")
CUT = UpstreamError("docs", "outcome_unknown", "Upstream 'docs' broke off")
LOST = ProtocolError(
    -32602,
    "The call behind this request state is lost; it must be made anew, and may already have had effects",
    {"reason": "lost"},
)

BROKEN = Broke(resumable=False, error=CUT)
PAUSED = Broke(resumable=True, error=CUT)
TIMED_OUT = TimedOut(SILENT)


# --- the client ---


def leg(
    answers: Mapping[str, JsonObject] | None = None,
    *,
    capabilities: JsonObject = EVERYTHING,
    progress: RequestId | None = None,
    logs: str | None = None,
) -> Leg:
    """A request of the client."""
    return Leg(capabilities, progress, logs, answers or {})


def call(
    answers: Mapping[str, JsonObject] | None = None,
    *,
    method: str = "tools/call",
    names: tuple[str, ...] = (),
    unanswerable: GatewayError | None = None,
    **more: Any,
) -> Exchange:
    """The first request of the client, on its way to the server."""
    return Exchange(method, CALL_ID, leg(answers, **more), names=names, unanswerable=unanswerable)


def inputs(**questions: JsonObject) -> RequireInput:
    """What the client is asked, by name."""
    return RequireInput(questions)


def asks(method: str, params: JsonObject) -> JsonObject:
    """One entry of `inputRequests`."""
    return {"method": method, "params": params}


A_FORM = asks("elicitation/create", FORM)
A_PAGE = asks("elicitation/create", {key: value for key, value in PAGE.items() if key != "elicitationId"})
A_PROMPT = asks("sampling/createMessage", PROMPT)
A_ROOTS = asks("roots/list", {})


def progress(token: RequestId, value: float) -> Relay:
    """Progress, as the client sees it."""
    return Relay(_note("notifications/progress", {"progressToken": token, "progress": value}))


def log_line(level: str, data: str) -> Relay:
    """A log message, as the client sees it."""
    return Relay(_note("notifications/message", {"level": level, "data": data}))


def undeclared(required: JsonObject) -> Fail:
    """`-32021`, with exactly what was missing."""
    message = "Missing required client capability"
    return Fail(ProtocolError(-32021, message, {"requiredCapabilities": required}))


# --- the server ---


def form(request_id: RequestId, **params: Any) -> Asked:
    """The server asks the user to fill in a form."""
    return question(request_id, "elicitation/create", {**FORM, **params})


def page(request_id: RequestId) -> Asked:
    """The server asks the user to visit a page."""
    return question(request_id, "elicitation/create", PAGE)


def sample(request_id: RequestId, **params: Any) -> Asked:
    """The server asks the client's model."""
    return question(request_id, "sampling/createMessage", {**PROMPT, **params})


def roots(request_id: RequestId) -> Asked:
    """The server asks for the client's roots; most send no parameters."""
    return Asked({"jsonrpc": "2.0", "id": request_id, "method": "roots/list"})


def question(request_id: RequestId, method: str, params: Any) -> Asked:
    """Any request of the server."""
    return Asked({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def progressed(value: float, token: RequestId = CALL_ID) -> Notified:
    """The server tells how far the call is."""
    return Notified(_note("notifications/progress", {"progressToken": token, "progress": value}))


def logged(level: str, data: str) -> Notified:
    """The server logs something."""
    return Notified(_note("notifications/message", {"level": level, "data": data}))


# --- what the server hears ---


def answered(request_id: RequestId, result: JsonObject) -> Post:
    """The answer to a question."""
    return Post({"jsonrpc": "2.0", "id": request_id, "result": result})


def refused(request_id: RequestId, message: str, code: int = -32603) -> Post:
    """An error in place of an answer."""
    return Post({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}})


def walked_away(request_id: RequestId) -> Post:
    """What a form is answered when its user walked away."""
    return answered(request_id, {"action": "cancel"})


def nobody_answered(request_id: RequestId) -> Post:
    """What sampling and roots are answered then, since they have no word for it."""
    return refused(request_id, "The client did not answer")


def cancelled(reason: str) -> Post:
    """The call is cancelled at the server."""
    return Post(_note("notifications/cancelled", {"requestId": CALL_ID, "reason": reason}))


def _note(method: str, params: JsonObject) -> JsonObject:
    return {"jsonrpc": "2.0", "method": method, "params": params}
