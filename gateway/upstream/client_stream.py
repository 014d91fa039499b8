"""Where an upstream tells a client what is not the answer to its request."""

from typing import Protocol

from gateway.wire.jsonrpc import JsonObject


class ClientStream(Protocol):
    """Where notifications for the client go, while it is being served."""

    async def notify(self, notification: JsonObject) -> None:
        """Send a notification on the stream of the client's current request."""
