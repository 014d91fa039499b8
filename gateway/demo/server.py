"""The demo server's Streamable HTTP endpoint (2025-11-25, basic/transports)."""

from collections.abc import AsyncIterator
from typing import Final, TypeGuard
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from gateway.demo import handlers
from gateway.demo.notes import Notes
from gateway.demo.rpc import RpcError
from gateway.demo.session import STANDALONE, Session
from gateway.demo.stream import Stream
from gateway.wire import codes, methods, versions
from gateway.wire.jsonrpc import Json, JsonObject, decode, encode, error_response, is_request_id, response
from gateway.wire.sse import encode_event

PATH: Final = "/mcp"
SESSION_HEADER: Final = "Mcp-Session-Id"

_SUPPORTED = versions.LEGACY[:2]
_MAX_SESSIONS = 1000
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def create_app() -> Starlette:
    """The demo server: MCP at `/mcp`, and `/healthz` for whoever watches over it."""
    endpoint = Endpoint()
    return Starlette(
        routes=[
            Route(PATH, endpoint.handle, methods=["GET", "POST", "DELETE"]),
            Route("/healthz", lambda _: PlainTextResponse("ok")),
        ]
    )


class RefusedError(Exception):
    """A request that gets an HTTP error: its status, a JSON-RPC code, and what is wrong."""

    def __init__(self, status: int, message: str, code: int = codes.INVALID_REQUEST) -> None:
        super().__init__(message)
        self.status = status
        self.error = RpcError(code, message)


class Endpoint:
    """The sessions, the notebook that they share, and the HTTP rules for getting at them."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._notes = Notes()

    async def handle(self, request: Request) -> Response:
        """Answer one HTTP request."""
        try:
            _check_origin(request)
            if request.method == "POST":
                return await self._post(request)
            session = self._session_of(request)
            if request.method == "DELETE":
                self._close(session)
                return Response(status_code=204)
            return _listen(request, session)
        except RefusedError as refused:
            return _json(error_response(None, refused.error.as_object()), refused.status)

    async def _post(self, request: Request) -> Response:
        _check_accept(request, "application/json", "text/event-stream")
        message = _readable(await request.body(), request)
        if message.get("method") == methods.INITIALIZE:
            return self._initialize(message)
        session = self._session_of(request)
        if "method" in message and "id" in message:
            return await _reply(session, message)
        if "method" in message:
            session.receive_notification(message)
        else:
            session.receive_response(message)
        return Response(status_code=202)

    def _initialize(self, message: JsonObject) -> Response:
        params = message.get("params", {})
        asked, capabilities = params.get("protocolVersion"), params.get("capabilities")
        if "id" not in message or not isinstance(asked, str) or not isinstance(capabilities, dict):
            raise RefusedError(400, "initialize needs an id, protocolVersion and capabilities", codes.INVALID_PARAMS)
        session = Session(asked if asked in _SUPPORTED else versions.LATEST_LEGACY, capabilities, self._notes)
        self._sessions[session.id] = session
        if len(self._sessions) > _MAX_SESSIONS:
            self._close(next(iter(self._sessions.values())))
        result = {
            "protocolVersion": session.version,
            "capabilities": handlers.CAPABILITIES,
            "serverInfo": handlers.SERVER_INFO,
            "instructions": handlers.INSTRUCTIONS,
        }
        return _json(response(message["id"], result), headers={SESSION_HEADER: session.id})

    def _session_of(self, request: Request) -> Session:
        session_id = request.headers.get(SESSION_HEADER)
        if session_id is None:
            raise RefusedError(400, "Missing session ID: send initialize first")
        session = self._sessions.get(session_id)
        if session is None:
            raise RefusedError(404, "Session not found: send initialize again")
        version = request.headers.get("MCP-Protocol-Version", session.version)
        if version not in _SUPPORTED:
            raise RefusedError(400, f"Unsupported protocol version; supported: {', '.join(_SUPPORTED)}")
        return session

    def _close(self, session: Session) -> None:
        del self._sessions[session.id]
        session.close()


async def _reply(session: Session, message: JsonObject) -> Response:
    """Run a request: JSON if the response is the first thing to say, else an event stream."""
    try:
        stream = session.start(message, handlers.handle)
    except RpcError as error:
        return _json(error_response(message["id"], error.as_object()), 400)
    first = await stream.first()
    if first is not None and "method" not in first:
        return _json(first)
    return _event_stream(_events(session, stream))


def _listen(request: Request, session: Session) -> Response:
    """Open the session's own stream, or go on with any stream behind the event that the client saw last."""
    _check_accept(request, "text/event-stream")
    from_now = f"{STANDALONE}-{len(session.standalone)}"
    name, _, number = request.headers.get("Last-Event-ID", from_now).rpartition("-")
    stream = session.stream(name)
    if stream is None or not number.isdecimal():
        raise RefusedError(400, "Unknown Last-Event-ID")
    if name != STANDALONE:
        return _event_stream(_events(session, stream, int(number)))
    if session.has_listener:
        raise RefusedError(409, "This session already has a GET stream")
    return _event_stream(_standalone_events(session, stream, int(number)))


async def _standalone_events(session: Session, stream: Stream, after: int) -> AsyncIterator[bytes]:
    session.has_listener = True
    try:
        async for event in _events(session, stream, after):
            yield event
    finally:
        session.has_listener = False


async def _events(session: Session, stream: Stream, after: int = 0) -> AsyncIterator[bytes]:
    """The messages of a stream as events; in front, for a client that knows it, an empty one to resume after."""
    if session.version >= versions.LATEST_LEGACY:
        yield f"id: {stream.name}-{after}\ndata: \n\n".encode()
    async for number, message in stream.read(after):
        yield f"id: {stream.name}-{number}\n".encode() + encode_event(encode(message))


def _event_stream(events: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(events, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


def _json(message: JsonObject, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(encode(message), status, headers, "application/json")


def _check_origin(request: Request) -> None:
    """A page on another site must not reach a server on this machine (DNS rebinding)."""
    origin = request.headers.get("Origin")
    if origin is not None and urlsplit(origin).hostname not in _LOOPBACK:
        raise RefusedError(403, "Origin not allowed")


def _check_accept(request: Request, *media_types: str) -> None:
    accepted = request.headers.get("Accept", "")
    if not all(media_type in accepted for media_type in media_types):
        raise RefusedError(406, f"Accept must list {' and '.join(media_types)}")


def _readable(body: bytes, request: Request) -> JsonObject:
    """The JSON-RPC message of a POST."""
    if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
        raise RefusedError(415, "Content-Type must be application/json")
    try:
        message = decode(body)
    except ValueError:
        raise RefusedError(400, "Parse error", codes.PARSE_ERROR) from None
    if not _is_message(message):
        raise RefusedError(400, "Not a JSON-RPC message")
    return message


def _is_message(value: Json) -> TypeGuard[JsonObject]:
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        return False
    if "id" in value and not is_request_id(value["id"]):
        return False
    if "method" not in value:
        return "id" in value and ("result" in value or "error" in value)
    return isinstance(value["method"], str) and isinstance(value.get("params", {}), dict)
