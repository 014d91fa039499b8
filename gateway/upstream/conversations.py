"""The conversations with one server: opened while there is room, and ended without leaving anything behind."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from gateway.errors import UpstreamError
from gateway.upstream.conversation import Conversation
from gateway.upstream.faults import unreachable
from gateway.upstream.pipe import Opener, Pipe

_FULL_RETRY_S: Final = 2


class Conversations:
    """All the pipes of one upstream.

    Args:
        name: its configured name.
        open_pipe: opens a pipe.
        max_message_bytes: the limit of a pipe's messages.
        most: how many there may be at once, those included that are being ended; None: any number.
    """

    def __init__(self, name: str, open_pipe: Opener, *, max_message_bytes: int, most: int | None) -> None:
        self.name = name
        self._open_pipe = open_pipe
        self._max_message_bytes = max_message_bytes
        self._most = most
        self._count = 0
        self._freed = asyncio.Event()
        self._open: set[Conversation] = set()
        self._opening: set[asyncio.Task[Pipe]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def __len__(self) -> int:
        return self._count

    async def open(
        self, headers: Mapping[str, str], *, is_shared: bool, make_room: Callable[[], bool] = lambda: False
    ) -> Conversation:
        """Begin a conversation.

        Args:
            headers: the credentials, for a pipe that can carry them.
            is_shared: see `Conversation`.
            make_room: ends a conversation that is not needed; False if there is none.

        Raises:
            Refused, UpstreamError: the server will have none, or there is no room.
        """
        await self._enter(make_room)
        conversation = Conversation(
            self.name, max_message_bytes=self._max_message_bytes, is_shared=is_shared, on_end=self.end
        )
        opening = asyncio.get_running_loop().create_task(self._open_entered(conversation, headers))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)
        try:
            # Shielded: a process that is half started has to be started wholly before it can be ended in order.
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(lambda done: self._end_unwanted(conversation, done))
            raise
        if self._is_closed:
            self.end(conversation)
            raise self._closed()
        return conversation

    def end(self, conversation: Conversation) -> None:
        """End a conversation, in the background."""
        conversation.end()
        if conversation in self._open and conversation.pipe is not None:
            self._open.discard(conversation)
            ending = asyncio.get_running_loop().create_task(self._end(conversation.pipe))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End them all, begin none any more, and return when nothing is left of any."""
        self._is_closed = True
        if self._opening:
            await asyncio.wait(self._opening)
        for conversation in list(self._open):
            self.end(conversation)
        if self._ending:
            await asyncio.wait(self._ending)

    async def _open_entered(self, conversation: Conversation, headers: Mapping[str, str]) -> Pipe:
        try:
            pipe = await self._open_pipe(conversation, headers)
        except BaseException:
            self._leave()
            raise
        conversation.pipe = pipe
        self._open.add(conversation)
        if conversation.is_over:  # it ended before anybody knew that it had begun
            self.end(conversation)
        return pipe

    def _end_unwanted(self, conversation: Conversation, opening: asyncio.Task[Pipe]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            self.end(conversation)

    async def _end(self, pipe: Pipe) -> None:
        try:
            await pipe.close()
        finally:
            self._leave()

    # --- room ---

    async def _enter(self, make_room: Callable[[], bool]) -> None:
        if self._is_closed:
            raise self._closed()
        while self._most is not None and self._count >= self._most:
            if not make_room() and not self._ending:
                raise self._full(self._most)
            self._freed.clear()
            await self._freed.wait()
        self._count += 1

    def _leave(self) -> None:
        self._count -= 1
        self._freed.set()

    def _full(self, most: int) -> UpstreamError:
        message = f"Upstream {self.name!r} has no room for another conversation; all {most} are in use"
        return UpstreamError(self.name, "full", message, retryable=True, retry_after_s=_FULL_RETRY_S)

    def _closed(self) -> UpstreamError:
        return unreachable(self.name, "the gateway is ending its conversations")
