"""Turns what a legacy server answered into outcomes for a modern client."""

from typing import Final

import structlog

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.errors import UpstreamError
from gateway.translate import results, rpc_errors
from gateway.translate.splicing import splice
from gateway.upstream.legacy_options import LegacyOptions
from gateway.wire import codes, meta, methods
from gateway.wire.jsonrpc import Json, JsonObject, error_object

log = structlog.get_logger()

_DECLINED: Final = "The page that this call needs was not opened: the user declined"


class LegacyResults:
    """Translates the answers of one upstream, and remembers which of its promises it does not keep.

    Args:
        upstream: its configured name.
        options: how the operator wants it treated.

    Attributes:
        absent: methods that the server's capabilities promise and that it does not know.
    """

    def __init__(self, upstream: str, options: LegacyOptions) -> None:
        self.absent: frozenset[str] = frozenset()
        self._upstream = upstream
        self._options = options
        self._warned: set[str] = set()

    def is_url_round(self, method: str, message: JsonObject) -> bool:
        """Whether an answer says that a page must be visited first."""
        return method in methods.ASKING and rpc_errors.is_url_round(message.get("error"))

    def outcome(
        self, request: InboundRequest, message: JsonObject, server_info: JsonObject | None, *, after_round: bool
    ) -> Outcome:
        """Translate a response.

        Raises:
            UpstreamError: the result is not usable.
        """
        if "error" in message:
            return self._failure(request, message["error"], server_info)
        try:
            result = results.to_modern_result(
                request.method,
                message["result"],
                server_info=server_info,
                ttl_ms=self._options.ttl_ms,
                cache_scope=self._options.cache_scope,
                after_round=after_round,
                on_warning=self._warn,
            )
        except ValueError as error:
            message_ = f"Upstream {self._upstream!r} sent an unusable result: {error}"
            raise UpstreamError(self._upstream, "nonsense", message_) from error
        return Outcome.of_result(splice(message, result))

    def input_required(self, result: JsonObject, server_info: JsonObject | None) -> Outcome:
        """Questions for the client, with who asks them."""
        if server_info is not None:
            result = {**result, "_meta": {meta.SERVER_INFO: server_info}}
        return Outcome.of_result(result)

    def declined(self, request: InboundRequest) -> Outcome:
        """What becomes of a call whose page the user would not visit; it is not made again."""
        if request.method != methods.TOOLS_CALL:
            return Outcome.of_server_error(error_object(codes.INVALID_PARAMS, _DECLINED))
        content = [{"type": "text", "text": _DECLINED}]
        return Outcome.of_result({"resultType": "complete", "content": content, "isError": True})

    def _failure(self, request: InboundRequest, error: Json, server_info: JsonObject | None) -> Outcome:
        is_unknown_method = isinstance(error, dict) and error.get("code") == codes.METHOD_NOT_FOUND
        if is_unknown_method and request.method in methods.LIST_KEYS:
            self._note_absent(request.method)
            return Outcome.of_result(results.empty_list(request.method, server_info=server_info))
        modern = rpc_errors.to_modern_error(request.method, request.params, error)
        if modern["code"] == codes.METHOD_NOT_FOUND:
            return Outcome({"error": modern}, status=404)
        return Outcome.of_server_error(modern)

    def _note_absent(self, method: str) -> None:
        if method not in self.absent:
            self.absent |= {method}
            log.warning("declared but not served", upstream=self._upstream, rpc_method=method)

    def _warn(self, text: str) -> None:
        """A list is fetched often; what is wrong with it is said once."""
        if text not in self._warned and len(self._warned) < 10_000:
            self._warned.add(text)
            log.warning("list entry mended or left out", upstream=self._upstream, what=text)
