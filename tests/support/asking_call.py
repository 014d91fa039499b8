"""One call on an `AskingServer`, and the streams on which the server speaks."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web

from gateway.wire.jsonrpc import JsonObject, RequestId, encode, error_object, notification, request

if TYPE_CHECKING:
    from tests.support.asking_server import AskingServer, Session


class RpcError(Exception):
    """A tool ends its call with a JSON-RPC error; or a question came back with one."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(f"{code} {message}")
        self.error = error_object(code, message, data)


class Stream:
    """What the server has said in one place; outlives the HTTP response that carries it.

    Args:
        name: prefix of its event ids; None: events have none.

    Attributes:
        repeats: whether a reader that picks it up gets all of it once more, as some servers' stores have it.
    """

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.is_ended = False
        self.repeats = False
        self.readers = 0
        self._messages: list[bytes] = []
        self._wake = asyncio.Event()
        self._cuts = 0

    @property
    def last(self) -> bytes:
        """What was said last, b"" if nothing was."""
        return self._messages[-1] if self._messages else b""

    def send(self, message: JsonObject) -> None:
        """Say something, whether or not anybody listens."""
        self._messages.append(encode(message))
        self._wake.set()

    def end(self) -> None:
        """There is no more to say."""
        self.is_ended = True
        self._wake.set()

    def cut(self) -> None:
        """End the response that carries the stream, and not the stream."""
        self._cuts += 1
        self._wake.set()

    async def pump(
        self, response: web.StreamResponse, start: int = 0, *, prime: bool = True, most: int | None = None
    ) -> None:
        """Carry the stream from an event on, until it ends or is cut, or so many messages have been carried."""
        cuts, position = self._cuts, start
        if prime and self.name is not None:
            await response.write(f"retry: 10\nid: {self.name}-{start}\ndata:\n\n".encode())
        self.readers += 1
        try:
            while True:
                for event in self._events(position):
                    if position - start == most:
                        return
                    await response.write(event)
                    position += 1
                if self.is_ended or self._cuts != cuts or position - start == most:
                    return
                self._wake.clear()
                await self._wake.wait()
        finally:
            self.readers -= 1

    def _events(self, position: int) -> Iterator[bytes]:
        while position < len(self._messages):
            event_id = b"" if self.name is None else f"id: {self.name}-{position + 1}\n".encode()
            yield b"%sdata: %s\n\n" % (event_id, self._messages[position])
            position += 1


@dataclass(slots=True)
class Question:
    """A question on its way; `answer` becomes the client's whole message."""

    id: RequestId
    answer: "asyncio.Future[JsonObject]"


@dataclass(frozen=True)
class Answer:
    """A response that a client posted."""

    session: str
    id: RequestId
    body: JsonObject
    was_awaited: bool


class Call:
    """What a tool, prompt or resource of the server is given.

    Attributes:
        name: of the tool, prompt or resource.
        arguments: of the call.
        stream: the one that answers the POST.
    """

    def __init__(self, server: "AskingServer", session: "Session", message: JsonObject, stream: Stream) -> None:
        params = message.get("params") or {}
        self.server = server
        self.session = session
        self.id: RequestId = message["id"]
        self.name: str = params.get("name", params.get("uri", ""))
        self.arguments: JsonObject = params.get("arguments") or {}
        self.meta: JsonObject = params.get("_meta") or {}
        self.stream = stream

    def put(self, method: str, params: JsonObject | None = None, *, request_id: RequestId | None = None) -> Question:
        """Ask without waiting: on the call's own stream, or on the session's if the server does not correlate."""
        question_id = next(self.session.ids) if request_id is None else request_id
        question = Question(question_id, asyncio.get_running_loop().create_future())
        self.session.pending[question_id] = question
        self._say(request(question_id, method, params))
        return question

    async def ask(self, method: str, params: JsonObject | None = None, **more: Any) -> JsonObject:
        """Ask, and wait for the result. Raises RpcError for an error."""
        return await self.answer_to(self.put(method, params, **more))

    async def answer_to(self, question: Question) -> JsonObject:
        """Wait for the result of a question. Raises RpcError for an error."""
        message = await question.answer
        if "error" in message:
            raise RpcError(**message["error"])
        result: JsonObject = message["result"]
        return result

    def withdraw(self, question: Question) -> None:
        """No longer want to know."""
        self.session.pending.pop(question.id, None)
        self._say(notification("notifications/cancelled", {"requestId": question.id, "reason": "gave up"}))

    def progress(self, value: float) -> None:
        """Tell how far the call is, with the token that it came with."""
        params = {"progressToken": self.meta.get("progressToken"), "progress": value}
        self.stream.send(notification("notifications/progress", params))

    def log(self, level: str, text: str) -> None:
        """Log something on the call's stream."""
        self.stream.send(notification("notifications/message", {"level": level, "data": text}))

    def _say(self, message: JsonObject) -> None:
        if self.server.correlated:
            self.stream.send(message)
        elif self.session.aside.readers:
            self.session.aside.send(message)
        else:
            self.server.unheard.append(message)
