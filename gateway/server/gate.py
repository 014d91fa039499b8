"""Whether new requests are let in: a process that is about to end serves the rounds that it keeps, and nothing new."""

from typing import Final

from starlette.types import Message, Send

from gateway.core.inbound_request import InboundRequest
from gateway.errors import ProtocolError
from gateway.wire import codes

_RETRY_AFTER_S: Final = 1
_CLOSE: Final = (b"connection", b"close")


class Gate:
    """The gate of one process.

    Attributes:
        is_leaving: connections are not kept for a next request, so that none is sent on one that is about to close.
        is_closed: nothing new is let in.
        is_shut: no retry is let in either; other replicas go on with what was kept here.
    """

    def __init__(self) -> None:
        self.is_leaving = False
        self.is_closed = False
        self.is_shut = False

    def check(self, request: InboundRequest) -> None:
        """Let a request in; a retry belongs to a call that is in already.

        Raises:
            ProtocolError: 503 with `Retry-After`: another replica serves it.
        """
        if self.is_shut or (self.is_closed and request.request_state is None):
            raise draining()

    def show_out(self, send: Send) -> Send:
        """Close a connection after this reply."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), _CLOSE]}
            await send(message)

        return sending


def draining() -> ProtocolError:
    """What a client is told that has to go to another replica."""
    return ProtocolError(
        codes.INTERNAL_ERROR,
        "This replica of the gateway is about to end; send the same request again",
        {"reason": "draining", "retryable": True},
        status=503,
        reason="draining",
        headers=(("retry-after", str(_RETRY_AFTER_S)),),
    )
