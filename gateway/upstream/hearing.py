"""What is heard on a session, and whose it is: pings are answered, changes passed on, the rest goes to a call."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from gateway.core.exchange_events import Asked, Withdrew
from gateway.core.incoming import Changed, Incoming, Pinged, call_named_by, sort
from gateway.wire import codes
from gateway.wire.jsonrpc import Json, JsonObject, error_object, error_response, response

Hearer = Callable[[Incoming], Awaitable[None]]
"""Takes what the server says outside of the answer to a request."""


class GetStream(Protocol):
    """What reads the session's GET stream."""

    is_open: bool
    is_taken: bool

    async def opened(self) -> None:
        """Return when the stream is open, or is known not to be offered, or takes too long over it."""

    async def close(self) -> None:
        """Stop reading."""


class Hearing:
    """The ear of one session.

    Args:
        reply_soon: sends answers of the gateway's own, without waiting.
        on_change: told of changed lists and resources.

    Attributes:
        is_alone: tells whether there are no calls on the session but these, for a question (True) or a mere
            notification; None: there never are.
    """

    def __init__(self, reply_soon: Callable[[list[JsonObject]], None], on_change: Callable[[JsonObject], None]) -> None:
        self._reply_soon = reply_soon
        self._on_change = on_change
        self._calls: dict[str, Hearer] = {}
        self.is_alone: Callable[[bool], Awaitable[bool]] | None = None

    def attach(self, request_id: str, hearer: Hearer) -> None:
        """Let a call hear what comes on the GET stream and belongs to it."""
        self._calls[request_id] = hearer

    def detach(self, request_id: str) -> None:
        """The call has ended."""
        del self._calls[request_id]

    async def hear(self, message: Json) -> None:
        """Attend to a message that came outside of any call's own stream.

        A call that holds the session alone can be told what belongs to it. With several, only what names its call can;
        a question is then turned down rather than put to somebody else's client.
        """
        request_id = call_named_by(message)
        incoming = self.sort(message, request_id, is_own_stream=False)
        if incoming is None:
            return
        if isinstance(incoming, Withdrew) or (request_id is None and await self._is_for_the_only_call(incoming)):
            hearers = list(self._calls.values())
        else:
            hearers = [self._calls[request_id]] if request_id in self._calls else []
        for hearer in hearers:
            await hearer(incoming)
        if not hearers and isinstance(incoming, Asked):
            error = error_object(codes.INTERNAL_ERROR, "No client to ask")
            self._reply_soon([error_response(message["id"], error)])

    async def _is_for_the_only_call(self, incoming: Incoming) -> bool:
        if len(self._calls) == 1 and self.is_alone is not None and not await self.is_alone(isinstance(incoming, Asked)):
            return False
        return len(self._calls) == 1

    def sort(self, message: Json, request_id: str | None, *, is_own_stream: bool) -> Incoming | None:
        """Sort a message; pings are answered and changes passed on here and now."""
        incoming = sort(message, request_id, is_own_stream=is_own_stream)
        if isinstance(incoming, Pinged):
            self._reply_soon([response(incoming.request_id, {})])
            return None
        if isinstance(incoming, Changed):
            self._on_change(incoming.message)
            return None
        return incoming
