"""One call on a modern server: what is sent, and what of the things that come back the client may see.

Rule: nothing is copied from the client's HTTP request; headers are built anew from the body. Ids and tokens on the
server's side are the gateway's own, since many clients share the server; they are put back on the way out.
2026-07-28, basic/transports/streamable-http, basic/patterns/progress, basic/patterns/subscriptions.
"""

from typing import Final

from gateway.core.inbound_request import InboundRequest
from gateway.core.incoming import is_foreign, is_response
from gateway.translate.notifications import passes, progress_of, to_modern_change, to_modern_message, to_modern_progress
from gateway.wire import headers, meta, methods
from gateway.wire.jsonrpc import Json, JsonObject, notification, request
from gateway.wire.versions import MODERN

UNSERVED_EXTENSIONS: Final = frozenset({"io.modelcontextprotocol/tasks"})
"""Extensions whose methods the front door does not know: neither side may be told that the other has them."""

_CHANGES: Final = frozenset(
    {methods.TOOLS_CHANGED, methods.PROMPTS_CHANGED, methods.RESOURCES_CHANGED, methods.RESOURCE_UPDATED}
)


class ModernCall:
    """A request on its way through.

    Args:
        request: the client's.
        request_id: the gateway's own id for it, unique; also its progress token and subscription id upstream.
        server_state: the server's own `requestState`, None if it sent none.

    Attributes:
        request: as above.
        id: the gateway's id for it.
        is_acknowledged: whether a subscription is established.
    """

    def __init__(self, request: InboundRequest, request_id: str, server_state: str | None) -> None:
        self.request = request
        self.id = request_id
        self.is_acknowledged = False
        self._server_state = server_state
        self._progress: int | float | None = None

    def headers(self) -> dict[str, str]:
        """The headers that belong to the message."""
        method = self.request.method
        built = {headers.PROTOCOL_VERSION: MODERN, headers.METHOD: method}
        target = self.request.params.get(methods.TARGET_PARAM.get(method, ""))
        if isinstance(target, str):
            built[headers.NAME] = headers.encode_header_value(target)
        for suffix, value in self.request.param_headers.items():
            if value.isascii():
                built[headers.PARAM_PREFIX + suffix] = value.decode("ascii")
        return built

    def message(self) -> JsonObject:
        """The request for the server; the client's own is not changed."""
        about = dict(self.request.meta)
        about[meta.CLIENT_CAPABILITIES] = without_unserved(self.request.capabilities)
        if self.request.progress_token is not None:
            about[meta.PROGRESS_TOKEN] = self.id
        params = {**self.request.params, "_meta": about}
        if self.request.request_state is not None:
            del params["requestState"]
            if self._server_state is not None:
                params["requestState"] = self._server_state
        return request(self.id, self.request.method, params)

    def is_response(self, message: Json, *, is_alone: bool = False) -> bool:
        """Whether a message is the response to this call.

        Args:
            message: one decoded message.
            is_alone: it is all that the server answered with; then an error needs no id to be about this call.
        """
        if not isinstance(message, dict) or "method" in message:
            return False
        if message.get("id") == self.id:
            return "result" in message or "error" in message
        return is_alone and "error" in message and is_response(message) and not is_foreign(message.get("id"))

    def relay(self, message: Json) -> JsonObject | None:
        """What the client sees of a notification; None: nothing.

        A modern server sends no requests, and what it says of other things belongs to no call's stream.
        """
        if not isinstance(message, dict) or "id" in message:
            return None
        method, params = message.get("method"), message.get("params")
        if not isinstance(params, dict):
            params = {}
        if self.request.method == methods.LISTEN:
            return self._relay_subscription(method, params)
        if method == methods.PROGRESS:
            return self._relay_progress(params)
        if method == methods.MESSAGE and passes(self.request.log_level, params):
            return notification(methods.MESSAGE, to_modern_message(params))
        return None

    def _relay_progress(self, params: JsonObject) -> JsonObject | None:
        token, progress = self.request.progress_token, progress_of(params)
        if token is None or progress is None or params.get(meta.PROGRESS_TOKEN) != self.id:
            return None
        if self._progress is not None and progress <= self._progress:
            return None
        self._progress = progress
        return notification(methods.PROGRESS, to_modern_progress(params, token))

    def _relay_subscription(self, method: Json, params: JsonObject) -> JsonObject | None:
        if method == methods.CANCELLED and params.get("requestId") == self.id:
            return notification(methods.CANCELLED, {**params, "requestId": self.request.id})
        about = params.get("_meta")
        subscription = about.get(meta.SUBSCRIPTION_ID) if isinstance(about, dict) else None
        if subscription not in (None, self.id):
            return None
        if method == methods.ACKNOWLEDGED and not self.is_acknowledged:
            self.is_acknowledged = True
        elif method not in _CHANGES or not self.is_acknowledged:
            return None
        return notification(str(method), to_modern_change(params, self.request.id))


def without_unserved(capabilities: JsonObject) -> JsonObject:
    """Capabilities of either side without the extensions that the gateway does not serve."""
    extensions = capabilities.get("extensions")
    if not isinstance(extensions, dict) or UNSERVED_EXTENSIONS.isdisjoint(extensions):
        return capabilities
    kept = {name: value for name, value in extensions.items() if name not in UNSERVED_EXTENSIONS}
    return {**capabilities, "extensions": kept}
