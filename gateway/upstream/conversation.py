"""One conversation on a pipe: which message answers which request, and what belongs to none.

Rule: a response goes to the request whose id it has, progress to the one whose token it has, what a subscription brings
to the one that opened it. What names no request (a question, a log message) can only belong to the one that is being
served, if there is just one; else it goes to the session's own stream, where nobody takes it for another call's.
2025-11-25 and 2026-07-28, basic/transports, "stdio".
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from gateway.core.incoming import split
from gateway.errors import UpstreamError
from gateway.upstream.faults import broken_stream, too_large
from gateway.upstream.pipe import Pipe
from gateway.upstream.piped_answer import PipedAnswer
from gateway.upstream.piped_messages import begins_as_message, is_message, read, request_named_by
from gateway.upstream.transport import Answer
from gateway.wire import codes, methods
from gateway.wire.jsonrpc import (
    JsonObject,
    encode,
    error_object,
    error_response,
    notification,
    response,
)

log = structlog.get_logger()

ABANDONED_S: Final = 10.0
"""How long a request that was given up may still have something to say that must not be taken for another's."""

LAST_WORDS_S: Final = 1.0
"""How long a pipe that takes no more messages may be in telling why."""

_MOST_UNHEARD: Final = 200
_GONE: Final = (404, 410)
_ACCEPTED: Final = 202


@dataclass(frozen=True, slots=True)
class _Call:
    method: str
    answer: PipedAnswer


class Conversation:
    """A conversation; it is the `Hearer` of its pipe.

    Args:
        name: the upstream's configured name.
        max_message_bytes: what the pipe's limit is, to be told.
        is_shared: whether requests of many clients share it, as a modern server lets them: then a request that is given
            up is cancelled here, the server may ask nothing, and what belongs to no request is nobody's.
        on_end: told once when the server has ended it.

    Attributes:
        pipe: what it is held on, None until that is open.
        over: set when the server is gone.
        how: what it did then, to follow its name in a sentence.
        used_s: when something was last asked, on the loop's clock.
    """

    def __init__(
        self, name: str, *, max_message_bytes: int, is_shared: bool, on_end: Callable[["Conversation"], None]
    ) -> None:
        self.pipe: Pipe | None = None
        self.over = asyncio.Event()
        self.how = "was ended"
        self.used_s = 0.0
        self._name = name
        self._max_message_bytes = max_message_bytes
        self.is_shared = is_shared
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._calls: dict[str, _Call] = {}
        self._abandoned: dict[str, asyncio.TimerHandle] = {}
        self._aside: PipedAnswer | None = None
        self._unheard: deque[bytes] = deque(maxlen=_MOST_UNHEARD)
        self._sendings: set[asyncio.Task[Answer | None]] = set()

    @property
    def is_over(self) -> bool:
        """Whether the server is gone."""
        return self.over.is_set()

    @property
    def is_busy(self) -> bool:
        """Whether requests are in flight."""
        return bool(self._calls)

    # --- sending ---

    async def post(self, message: JsonObject, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send a message; see `Transport.post`. 404 when the conversation is over: it was not sent."""
        self.used_s = self._loop.time()
        if self.is_over or self.pipe is None:
            return PipedAnswer.bare(404)
        if "id" in message and "method" in message:
            return await self._request(self.pipe, message, body, headers)
        refusal = await self.pipe.send(body, headers)
        return refusal or PipedAnswer.bare(_ACCEPTED)

    def listen(self) -> PipedAnswer:
        """Open the session's own stream; one that was open before ends."""
        if self.is_over:
            return PipedAnswer.bare(404)
        if self._aside is not None:
            self._aside.end()
        self._aside = aside = PipedAnswer(on_close=lambda: self._stop_listening(aside))
        while self._unheard:
            aside.push(self._unheard.popleft())
        return aside

    def _stop_listening(self, aside: PipedAnswer) -> None:
        if self._aside is aside:
            self._aside = None

    async def _request(self, pipe: Pipe, message: JsonObject, body: bytes, headers: Mapping[str, str]) -> Answer:
        request_id = message["id"]
        while (earlier := self._calls.get(request_id)) is not None:
            await earlier.answer.ended.wait()
        answer = PipedAnswer(on_close=lambda: self._abandon(request_id))
        self._calls[request_id] = _Call(message["method"], answer)
        sending = self._loop.create_task(pipe.send(body, headers))
        try:
            refusal = await self._sent_or_answered(sending, answer)
        except BaseException:
            answer.close()
            raise
        if refusal is not None:
            self._calls.pop(request_id, None)
            if refusal.status in _GONE:
                self._end_soon(refusal)
            return refusal
        return answer

    def _end_soon(self, refusal: Answer) -> None:
        """The server takes no more messages. A pipe that says so itself is about to tell how the server ended."""
        if isinstance(refusal, PipedAnswer):
            self._loop.call_later(LAST_WORDS_S, self.end, "closed its input")
        else:
            self.end("forgot its session")

    async def _sent_or_answered(self, sending: asyncio.Task[Answer | None], answer: PipedAnswer) -> Answer | None:
        """Wait until a request is on its way; some servers answer before they say that they have it."""
        self._sendings.add(sending)
        sending.add_done_callback(self._sendings.discard)
        arrival = self._loop.create_task(answer.arrived.wait())
        try:
            await asyncio.wait({sending, arrival}, return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            sending.cancel()
            raise
        finally:
            arrival.cancel()
        if sending.done():
            return sending.result()
        sending.add_done_callback(_seen)
        return None

    def _send_soon(self, message: JsonObject) -> None:
        if self.pipe is None or self.is_over:
            return
        sending = self._loop.create_task(self.pipe.send(encode(message), {}))
        self._sendings.add(sending)
        sending.add_done_callback(self._sendings.discard)
        sending.add_done_callback(_seen)

    def _abandon(self, request_id: str) -> None:
        """Nobody wants to hear more of a request that the server may still be at."""
        if self._calls.pop(request_id, None) is None:
            return
        self._abandoned[request_id] = self._loop.call_later(ABANDONED_S, self._abandoned.pop, request_id)
        if self.is_shared:
            reason = {"requestId": request_id, "reason": "the client closed the request"}
            self._send_soon(notification(methods.CANCELLED, reason))

    # --- hearing ---

    def hear(self, data: bytes) -> bool:
        """Take what came on the pipe; False if it is no message."""
        if not begins_as_message(data):
            return False
        decoded, data = read(data)
        messages = [message for message in split(decoded) if is_message(message)]
        for message in messages:
            self._sort(message, data if message is decoded else encode(message))
        return bool(messages)

    def hear_overlong(self, edges: bytes) -> None:
        """Fail the request that a message over the limit answers; all of them, if that cannot be told."""
        named = [request_id for request_id in self._calls if encode(request_id) in edges]
        for request_id in named if len(named) == 1 else list(self._calls):
            self._calls.pop(request_id).answer.end(too_large(self._name, self._max_message_bytes))

    def end(self, how: str = "was ended", reason: str = "outcome_unknown") -> None:
        """The server is gone: what it has not answered has an outcome that nobody knows."""
        if self.is_over:
            return
        self.how = how
        self.over.set()
        for call in self._calls.values():
            call.answer.end(self._failure(call.method, how, reason))
        if self._aside is not None:
            self._aside.end()
        for timer in self._abandoned.values():
            timer.cancel()
        self._calls.clear()
        self._abandoned.clear()
        self._unheard.clear()
        self._on_end(self)

    def _failure(self, method: str, how: str, reason: str) -> UpstreamError:
        if method == methods.INITIALIZE:
            message = f"Upstream {self._name!r} {how} during initialize"
            return UpstreamError(self._name, "unreachable", message, retryable=True)
        message = f"Upstream {self._name!r} {how} before it answered: the outcome of the request is unknown"
        return UpstreamError(self._name, reason, message)

    def _sort(self, message: JsonObject, raw: bytes) -> None:
        method = message.get("method")
        if method is None:
            self._respond(message, raw)
        elif "id" in message and self.is_shared:
            self._turn_down(message)
        elif (named := request_named_by(message)) in self._calls:
            self._deliver(str(named), message, raw)
        elif named is None or method == methods.CANCELLED:
            self._pass_on(message, raw)

    def _respond(self, message: JsonObject, raw: bytes) -> None:
        request_id = message.get("id")
        if not isinstance(request_id, str) or request_id not in self._calls:
            if not self._is_meant_for_the_only_call(message):
                log.debug("response to no request", upstream=self._name)
                return
            [request_id] = self._calls
            raw = encode({**message, "id": request_id})
        answer = self._calls.pop(request_id).answer
        answer.push(raw)
        answer.end()

    def _is_meant_for_the_only_call(self, message: JsonObject) -> bool:
        """Whether an error whose id is null or made up can only be about the one request that there is."""
        request_id = message.get("id")
        is_foreign = isinstance(request_id, int) or request_id in self._abandoned
        return "error" in message and not is_foreign and len(self._calls) == 1 and not self._abandoned

    def _deliver(self, request_id: str, message: JsonObject, raw: bytes) -> None:
        call, method = self._calls[request_id], message["method"]
        call.answer.push(raw, may_drop=method not in (methods.ACKNOWLEDGED, methods.CANCELLED))
        if method == methods.CANCELLED:
            # On stdio this is how a server ends a subscription; a stream would simply close.
            del self._calls[request_id]
            call.answer.end(broken_stream(self._name))

    def _pass_on(self, message: JsonObject, raw: bytes) -> None:
        """To the one request that is being served, or to the session's own stream."""
        is_notification = "id" not in message
        call = self._only_call(message)
        if call is not None:
            call.answer.push(raw, may_drop=is_notification)
        elif self._aside is not None:
            self._aside.push(raw, may_drop=is_notification)
        elif not self.is_shared:
            self._unheard.append(raw)

    def _only_call(self, message: JsonObject) -> _Call | None:
        calls = [call for call in self._calls.values() if call.method != methods.LISTEN]
        if len(calls) != 1 or self._abandoned:
            return None
        # During the handshake nobody can attend to anything but a ping; the rest is heard when it is over.
        is_early = calls[0].method == methods.INITIALIZE and message["method"] != methods.PING
        return None if is_early else calls[0]

    def _turn_down(self, message: JsonObject) -> None:
        """A modern server sends no requests; one that does all the same must not wait for ever."""
        if message["method"] == methods.PING:
            self._send_soon(response(message["id"], {}))
            return
        error = error_object(codes.METHOD_NOT_FOUND, "2026-07-28 has no requests of servers")
        self._send_soon(error_response(message["id"], error))


def _seen(sending: asyncio.Task[Answer | None]) -> None:
    """What became of a message that nobody waits for; one that could not be sent shows in the end of the pipe."""
    if not sending.cancelled():
        error = sending.exception()
        if error is not None and not isinstance(error, UpstreamError):
            log.error("message not sent", error=type(error).__name__, exc_info=error)
