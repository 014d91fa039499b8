"""A transport over pipes: a pipe stands for a session.

POST of `initialize` opens a pipe, and its answer names the session; what is POSTed with that name goes to that pipe;
GET hears what belongs to no request; DELETE ends the pipe. A pipe whose server has ended answers 404, and what was in
flight on it breaks at once. Requests outside of sessions are those of a modern server, and the question whether it is
one; a pipe that can only be of legacy servers has none.
"""

import asyncio
import contextlib
import secrets
from collections.abc import Mapping
from typing import Final

from gateway.errors import UpstreamError
from gateway.upstream.conversation import LAST_WORDS_S, Conversation
from gateway.upstream.conversations import Conversations
from gateway.upstream.era import read_answer
from gateway.upstream.pipe import Opener, Refused
from gateway.upstream.piped_answer import PipedAnswer
from gateway.upstream.sessionless import Sessionless
from gateway.upstream.transport import SESSION_ID, Answer, Transport
from gateway.wire import methods
from gateway.wire.jsonrpc import JsonObject, decode

QUIET_S: Final = 5.0
"""How long a server may take over the question for its era, before `initialize` is tried on another pipe."""

_FOREIGN: Final = 400
_NOT_ALLOWED: Final = 405


class PipeTransport:
    """See the module; a `Transport`.

    Args:
        name: the upstream's configured name.
        open_pipe: opens a pipe.
        max_message_bytes: the limit of a pipe's messages.
        most: how many pipes there may be at once; None: any number.
        may_be_modern: whether a modern server could be at the other end.
        idle_s: how long a pipe outside of sessions is kept when nobody asks anything on it.
        quiet_s: how long the answer to the question for the era is waited for.
        has_headers: whether any headers are configured, a credential perhaps.
        beneath: the transport that the pipes use; it is closed after them.
    """

    def __init__(
        self,
        name: str,
        open_pipe: Opener,
        *,
        max_message_bytes: int,
        most: int | None = None,
        may_be_modern: bool = True,
        idle_s: float = 300.0,
        quiet_s: float = QUIET_S,
        has_headers: bool = False,
        beneath: Transport | None = None,
    ) -> None:
        self.name = name
        self.has_headers = has_headers
        self._quiet_s = quiet_s
        self._conversations = Conversations(name, open_pipe, max_message_bytes=max_message_bytes, most=most)
        self._sessionless = Sessionless(self._conversations, quiet_s=quiet_s, idle_s=idle_s) if may_be_modern else None
        self._sessions: dict[str, Conversation] = {}
        self._beneath = beneath
        self._prefix = f"pipe-{secrets.token_hex(4)}-"

    def __len__(self) -> int:
        """How many pipes there are, those included that are being ended."""
        return len(self._conversations)

    def owns(self, session_id: str | None) -> bool:
        """Whether a session is one of this transport's, be it open or not."""
        return session_id is not None and session_id.startswith(self._prefix)

    async def post(self, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send a message; see `Transport`."""
        message = decode(body)
        try:
            return await self._post(message, body, headers)
        except Refused as refused:
            return refused.answer

    async def get(self, headers: Mapping[str, str]) -> Answer:
        """Hear what belongs to no request of a session; see `Transport`."""
        session_id = headers.get(SESSION_ID)
        if session_id is None:
            return PipedAnswer.bare(_NOT_ALLOWED)
        conversation = self._sessions.get(session_id)
        return PipedAnswer.bare(404) if conversation is None else conversation.listen()

    async def delete(self, headers: Mapping[str, str]) -> Answer:
        """End a session, in the background; see `Transport`."""
        conversation = self._sessions.pop(headers.get(SESSION_ID, ""), None)
        if conversation is None:
            return PipedAnswer.bare(404)
        self._conversations.end(conversation)
        return PipedAnswer.bare(200)

    async def close(self) -> None:
        """End every pipe, open none any more, and return when nothing is left of any."""
        if self._sessionless is not None:
            self._sessionless.close()
        self._sessions.clear()
        await self._conversations.close()
        if self._beneath is not None:
            await self._beneath.close()

    async def _post(self, message: JsonObject, body: bytes, headers: Mapping[str, str]) -> Answer:
        session_id = headers.get(SESSION_ID)
        if session_id is not None:
            return await self._post_in_session(session_id, message, body, headers)
        if message.get("method") == methods.INITIALIZE:
            return await self._initialize(message, body, headers)
        if self._sessionless is None or "id" not in message:
            return PipedAnswer.bare(_NOT_ALLOWED)
        return await self._sessionless.request(message, body)

    async def _post_in_session(
        self, session_id: str, message: JsonObject, body: bytes, headers: Mapping[str, str]
    ) -> Answer:
        conversation = self._sessions.get(session_id)
        if conversation is None:
            return PipedAnswer.bare(404)
        if conversation.is_over:
            del self._sessions[session_id]
        elif self._sessionless is not None and message.get("method") == methods.INITIALIZED:
            self._sessionless.let_go()
        return await conversation.post(message, body, headers)

    # --- sessions ---

    async def _initialize(self, message: JsonObject, body: bytes, headers: Mapping[str, str]) -> Answer:
        spare = None if self._sessionless is None else self._sessionless.take_spare()
        if spare is not None and (answer := await self._initialize_on_spare(spare, message, body)) is not None:
            return answer
        conversation = await self._conversations.open(
            headers,
            is_shared=False,
            make_room=(lambda: False) if self._sessionless is None else self._sessionless.make_room,
        )
        try:
            answer = await conversation.post(message, body, headers)
            is_modern = isinstance(answer, PipedAnswer) and await self._is_modern_before(answer)
        except BaseException:
            self._conversations.end(conversation)
            raise
        if isinstance(answer, PipedAnswer) and answer.status == 404:
            raise await self._to_failure(conversation)
        if not isinstance(answer, PipedAnswer) or is_modern:
            self._conversations.end(conversation)
            return PipedAnswer.bare(_FOREIGN) if is_modern else answer
        answer.headers = self._name_session(conversation)
        return answer

    async def _is_modern_before(self, answer: PipedAnswer) -> bool:
        """Whether the server turns out to be a modern one that was slow to start, before it answers `initialize`."""
        return self._sessionless is not None and await self._sessionless.is_modern_before(answer)

    async def _to_failure(self, conversation: Conversation) -> UpstreamError:
        """A server that takes no message has ended; how, it may be about to tell."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2 * LAST_WORDS_S):
                await conversation.over.wait()
        self._conversations.end(conversation)
        message = f"Upstream {self.name!r} {conversation.how} during initialize"
        return UpstreamError(self.name, "unreachable", message, retryable=True)

    async def _initialize_on_spare(self, spare: Conversation, message: JsonObject, body: bytes) -> Answer | None:
        """Begin a session where the question for the era was refused; None if the server will not have it there."""
        try:
            async with asyncio.timeout(self._quiet_s):
                reply = await read_answer(await spare.post(message, body, {}))
        except (TimeoutError, UpstreamError):
            reply = b""
        except BaseException:
            self._conversations.end(spare)
            raise
        if not reply or "result" not in decode(reply):
            self._conversations.end(spare)
            return None
        return PipedAnswer.of_message(reply, self._name_session(spare))

    def _name_session(self, conversation: Conversation) -> Mapping[str, str]:
        session_id = self._prefix + secrets.token_hex(8)
        self._sessions[session_id] = conversation
        return {SESSION_ID: session_id}
