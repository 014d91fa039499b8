"""A session of the demo server: what its client declared, which calls run, which questions are open."""

import asyncio
import itertools
import secrets
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.demo.call import Call
from gateway.demo.notes import INDEX_URI, Notes
from gateway.demo.rpc import RpcError
from gateway.demo.stream import Stream
from gateway.wire import codes, meta, methods
from gateway.wire.jsonrpc import (
    Json,
    JsonObject,
    RequestId,
    error_object,
    error_response,
    is_request_id,
    notification,
    response,
)

Handler = Callable[[Call, str, JsonObject], Awaitable[JsonObject]]
"""Answers one request: takes the call, the method and the params, returns the result."""

STANDALONE: Final = "get"
"""The name of the stream that belongs to no call."""

_KEPT_STREAMS = 64


class Session:
    """Everything that the server remembers under one `Mcp-Session-Id`.

    Attributes:
        id: the session id.
        version: the negotiated revision.
        capabilities: what the client declared at `initialize`.
        log_level: messages below it are not sent.
        has_listener: whether a GET stream is open.
        subscriptions: the URIs whose updates it wants to hear of.
        notes: the notebook.
        standalone: the stream that belongs to no call.
    """

    def __init__(self, version: str, capabilities: JsonObject, notes: Notes) -> None:
        self.id = secrets.token_hex(16)
        self.version = version
        self.capabilities = capabilities
        self.log_level = "info"
        self.has_listener = False
        self.subscriptions: set[str] = set()
        self.notes = notes
        self._stop_watching = notes.watch(self._tell_of_notes)
        self.standalone = Stream(STANDALONE)
        self._streams = {STANDALONE: self.standalone}
        self._calls: dict[RequestId, asyncio.Task[None]] = {}
        self._questions: dict[RequestId, asyncio.Future[JsonObject]] = {}
        self._question_ids = itertools.count()
        self._stream_names = itertools.count(1)

    def start(self, message: JsonObject, handler: Handler) -> Stream:
        """Begin to answer a request; the response will be the last message of the stream returned.

        Raises:
            RpcError: a call with this id is still running.
        """
        request_id: RequestId = message["id"]
        if request_id in self._calls:
            raise RpcError(codes.INVALID_REQUEST, "A request with this id is still running")
        stream = self._new_stream()
        task = asyncio.create_task(self._answer(message, handler, stream))
        self._calls[request_id] = task
        task.add_done_callback(lambda _: self._end_call(request_id, stream))
        return stream

    def stream(self, name: str) -> Stream | None:
        """The stream of that name, if it is still kept."""
        return self._streams.get(name)

    async def ask(self, stream: Stream, method: str, params: JsonObject) -> JsonObject:
        """Send the client a request on a call's stream and wait for its answer.

        Raises:
            RpcError: the client answered with an error.
        """
        question_id = next(self._question_ids)
        answered: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._questions[question_id] = answered
        try:
            stream.put({"jsonrpc": "2.0", "id": question_id, "method": method, "params": params})
            message = await answered
        finally:
            del self._questions[question_id]
        if "error" in message:
            raise RpcError.from_object(message["error"])
        result = message.get("result")
        if not isinstance(result, dict):
            raise RpcError(codes.INTERNAL_ERROR, f"The client's answer to {method} is not an object")
        return result

    def receive_response(self, message: JsonObject) -> None:
        """Take a client's answer; one to no open question is ignored."""
        answered = self._questions.get(_question_id(message.get("id")))
        if answered is not None and not answered.done():
            answered.set_result(message)

    def receive_notification(self, message: JsonObject) -> None:
        """Take a client's notification; a cancelled call ends without a response."""
        request_id = message.get("params", {}).get("requestId")
        if message["method"] == methods.CANCELLED and is_request_id(request_id) and request_id in self._calls:
            self._calls[request_id].cancel()

    def close(self) -> None:
        """End every call and every stream."""
        self._stop_watching()
        for task in list(self._calls.values()):
            task.cancel()
        for stream in self._streams.values():
            stream.close()

    def _tell_of_notes(self) -> None:
        self.standalone.put(notification(methods.RESOURCES_CHANGED))
        if INDEX_URI in self.subscriptions:
            self.standalone.put(notification(methods.RESOURCE_UPDATED, {"uri": INDEX_URI}))

    def _new_stream(self) -> Stream:
        stream = Stream(f"call{next(self._stream_names)}")
        self._streams[stream.name] = stream
        finished = [name for name, old in self._streams.items() if old.is_closed]
        for name in finished[:-_KEPT_STREAMS]:
            del self._streams[name]
        return stream

    async def _answer(self, message: JsonObject, handler: Handler, stream: Stream) -> None:
        params: JsonObject = message.get("params") or {}
        call = Call(self, stream, (params.get("_meta") or {}).get(meta.PROGRESS_TOKEN))
        request_id: RequestId = message["id"]
        try:
            stream.put(response(request_id, await handler(call, message["method"], params)))
        except RpcError as error:
            stream.put(error_response(request_id, error.as_object()))
        except Exception as error:
            reason = f"Internal error ({type(error).__name__})"
            stream.put(error_response(request_id, error_object(codes.INTERNAL_ERROR, reason)))

    def _end_call(self, request_id: RequestId, stream: Stream) -> None:
        self._calls.pop(request_id, None)
        stream.close()


def _question_id(value: Json) -> int:
    """The id of a question as this server wrote it; some clients echo it as a string. -1 is no question's id."""
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if type(value) is int else -1
