"""What is asked of a server on a pipe outside of any session: which era it is of, and all that a modern one is asked.

Rule: the first question on a new pipe is `server/discover`, whoever wants something. If the answer is a modern server's
the pipe is kept, and takes the requests of everybody side by side. If it is an error, the pipe is still good for one
`initialize`. If there is none for a while, the server may not know the method, or not have started yet: it is left
alone, and can be asked again for the answer that it may have given by then.
2026-07-28, basic/transports/stdio, "Backward Compatibility".
"""

import asyncio
from typing import Final

from gateway.core import era
from gateway.core.era import Modern
from gateway.errors import UpstreamError
from gateway.upstream.conversation import Conversation
from gateway.upstream.conversations import Conversations
from gateway.upstream.era import CLIENT_INFO, read_answer
from gateway.upstream.faults import broken_stream, unreachable
from gateway.upstream.piped_answer import PipedAnswer
from gateway.upstream.transport import Answer
from gateway.wire.jsonrpc import JsonObject, encode

SPARE_S: Final = 15.0
"""How long a pipe waits for the `initialize` that should follow a refused question."""

_FOREIGN: Final = 400
_SILENT: Final = 504


class _Asked:
    """A pipe on which the question has been put.

    Args:
        name: the upstream's configured name.
        conversation: what is held on the pipe.

    Attributes:
        reply: the server's answer; raises UpstreamError if it ended instead.
        is_modern: whether it answered as a modern server.
        waiters: how many requests wait for the answer.
    """

    def __init__(self, name: str, conversation: Conversation) -> None:
        self.conversation = conversation
        self.is_modern = False
        self.waiters = 0
        self._name = name
        self.reply = asyncio.get_running_loop().create_task(self._ask())
        self.reply.add_done_callback(_seen)

    @property
    def is_good(self) -> bool:
        """Whether this is a modern server, or may still turn out to be one."""
        return not self.conversation.is_over and (self.is_modern or not self.reply.done())

    @property
    def is_needed(self) -> bool:
        """Whether somebody waits for what comes on the pipe."""
        return self.waiters > 0 or (self.is_modern and self.conversation.is_busy)

    async def _ask(self) -> bytes:
        _headers, message = era.probe_request(CLIENT_INFO)
        reply = await read_answer(await self.conversation.post(message, encode(message), {}))
        if not reply:
            raise broken_stream(self._name)
        self.is_modern = isinstance(era.verdict(None, {}, reply), Modern)
        return reply


class Sessionless:
    """See the module.

    Args:
        conversations: where pipes are opened.
        quiet_s: how long an answer to the question is waited for.
        idle_s: how long the pipe of a modern server is kept when nobody asks anything.
    """

    def __init__(self, conversations: Conversations, *, quiet_s: float, idle_s: float) -> None:
        self._conversations = conversations
        self._quiet_s = quiet_s
        self._idle_s = idle_s
        self._asked: _Asked | None = None
        self._spare: Conversation | None = None
        self._opening = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None

    async def request(self, message: JsonObject, body: bytes) -> Answer:
        """Make a request.

        Returns:
            Its answer; 504 for a question for the era that has none yet; 400 when this is no modern server.

        Raises:
            Refused, UpstreamError: there is no pipe to be had, or the server ended before it answered.
        """
        asked, is_new = await self._ask()
        asked.waiters += 1
        try:
            if message["id"] == era.PROBE_ID and (is_new or not asked.reply.done()):
                return await self._answer_to_probe(asked)
            await self._until_answered(asked)
        finally:
            asked.waiters -= 1
        if not asked.is_modern:
            self._keep_as_spare(asked)
            return PipedAnswer.bare(_FOREIGN)
        return await asked.conversation.post(message, body, {})

    def take_spare(self) -> Conversation | None:
        """A pipe whose server has refused the question and is good for one `initialize`; None if there is none."""
        if self._asked is not None and not self._asked.is_good:
            self._keep_as_spare(self._asked)
        spare, self._spare = self._spare, None
        return None if spare is None or spare.is_over else spare

    async def is_modern_before(self, other: PipedAnswer) -> bool:
        """Wait for `other`; whether the answer to a question that is late comes first, and is a modern server's."""
        asked = self._asked
        if asked is None or asked.conversation.is_over:
            return False
        arrival = asyncio.get_running_loop().create_task(other.arrived.wait())
        try:
            await asyncio.wait({arrival, asked.reply}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            arrival.cancel()
        return asked.is_modern

    def let_go(self) -> None:
        """The server has been found to be a legacy one: nothing is asked outside of sessions."""
        if self._asked is not None and not self._asked.is_modern:
            self._end_asked(self._asked)
        self._end_spare()

    def make_room(self) -> bool:
        """End a pipe that nobody waits for; False if there is none."""
        if self._end_spare():
            return True
        asked = self._asked
        if asked is None or asked.is_needed:
            return False
        self._end_asked(asked)
        return True

    def close(self) -> None:
        """Forget the pipes; `conversations` ends them."""
        self._asked = self._spare = None
        if self._timer is not None:
            self._timer.cancel()

    # --- the question ---

    async def _ask(self) -> tuple[_Asked, bool]:
        """The pipe on which the question has been put, and whether that was now."""
        async with self._opening:
            asked = self._asked
            if asked is not None and asked.is_good:
                return asked, False
            if asked is not None:
                self._end_asked(asked)
            self._end_spare()
            conversation = await self._conversations.open({}, is_shared=True)
            self._asked = asked = _Asked(self._conversations.name, conversation)
            self._sweep_after(self._idle_s)
            return asked, True

    async def _answer_to_probe(self, asked: _Asked) -> Answer:
        await asyncio.wait({asked.reply}, timeout=self._quiet_s)
        if not asked.reply.done():
            return PipedAnswer.bare(_SILENT)
        reply = asked.reply.result()
        if not asked.is_modern:
            self._keep_as_spare(asked)
        return PipedAnswer.of_message(reply)

    async def _until_answered(self, asked: _Asked) -> None:
        try:
            await asyncio.shield(asked.reply)
        except UpstreamError:
            raise unreachable(self._conversations.name, "it ended before it was asked anything") from None

    # --- pipes that are not needed ---

    def _keep_as_spare(self, asked: _Asked) -> None:
        if self._asked is not asked:
            return
        self._asked = None
        if not asked.conversation.is_over:
            self._spare = asked.conversation
            self._spare.is_shared = False
            self._sweep_after(SPARE_S)

    def _end_spare(self) -> bool:
        spare, self._spare = self._spare, None
        if spare is not None:
            self._conversations.end(spare)
        return spare is not None

    def _end_asked(self, asked: _Asked) -> None:
        self._asked = None
        self._conversations.end(asked.conversation)

    def _sweep_after(self, pause_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(pause_s, self._sweep)

    def _sweep(self) -> None:
        """End what nobody has used for a while."""
        self._end_spare()
        asked = self._asked
        if asked is None:
            return
        if asked.is_needed:
            self._sweep_after(self._idle_s)
            return
        rest_s = asked.conversation.used_s + self._idle_s - asyncio.get_running_loop().time()
        if rest_s > 0:
            self._sweep_after(rest_s)
        else:
            self._end_asked(asked)


def _seen(reply: asyncio.Task[bytes]) -> None:
    if not reply.cancelled():
        reply.exception()
