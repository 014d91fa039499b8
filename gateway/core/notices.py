"""What a server tells of a call while it works: progress and log messages, for the client's current request.

Each leg of a call brings its own progress token and log level. What is told while the client is away with questions is
held, within bounds, and told first when it comes back.
"""

from collections import deque
from typing import Final

from gateway.core.exchange_events import Leg, Relay
from gateway.translate import notifications
from gateway.wire import meta, methods
from gateway.wire.jsonrpc import JsonObject, notification

MAX_HELD: Final = 100
"""How many notifications wait for a client that is away; of more, the oldest are dropped."""


class Notices:
    """The notifications of one call.

    Args:
        request_id: the id of the call towards the server; also its progress token there.
        leg: the client's request.
    """

    def __init__(self, request_id: str, leg: Leg) -> None:
        self._request_id = request_id
        self._leg = leg
        self._progress: float | None = None
        self._held: deque[JsonObject] | None = None

    def begin(self, leg: Leg) -> list[Relay]:
        """A new leg: what was held goes out under its token, from its level on."""
        self._leg, self._progress = leg, None
        held, self._held = self._held or (), None
        return [relay for message in held for relay in self.relay(message)]

    def hold(self, message: JsonObject) -> None:
        """The client is away."""
        if self._held is None:
            self._held = deque(maxlen=MAX_HELD)
        self._held.append(message)

    def relay(self, message: JsonObject) -> list[Relay]:
        """What the client is told of a notification."""
        params = message.get("params")
        if not isinstance(params, dict):
            return []
        if message["method"] == methods.PROGRESS:
            return self._relay_progress(params)
        if message["method"] == methods.MESSAGE and notifications.passes(self._leg.log_level, params):
            return [Relay(notification(methods.MESSAGE, notifications.to_modern_message(params)))]
        return []

    def _relay_progress(self, params: JsonObject) -> list[Relay]:
        """Only this call's token, and only values that grow (2026-07-28, basic/patterns/progress)."""
        token, value = self._leg.progress_token, notifications.progress_of(params)
        if token is None or value is None or params.get(meta.PROGRESS_TOKEN) != self._request_id:
            return []
        if self._progress is not None and value <= self._progress:
            return []
        self._progress = value
        return [Relay(notification(methods.PROGRESS, notifications.to_modern_progress(params, token)))]
