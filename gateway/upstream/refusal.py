"""An upstream's 401 and 403: whose fault that is depends on whose credential it was."""

from typing import Final

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.errors import UpstreamError
from gateway.translate.rpc_errors import to_modern_error
from gateway.upstream.transport import Answer
from gateway.wire import codes
from gateway.wire.jsonrpc import Json, JsonObject, RequestId, error_object

_TEXT: Final = {401: "The upstream requires authorization", 403: "The upstream forbids this request"}


class UpstreamRefused(Exception):  # noqa: N818 -- what the upstream did, to be judged by who owns the credential
    """An upstream answered 401 or 403.

    Args:
        status: the HTTP status.
        challenge: its `WWW-Authenticate`, None if there was none.
        error: the JSON-RPC error in its body, None if there was none.
        is_answer: whether that error answers the very request, so that it is the server's own word on it.
    """

    def __init__(
        self, status: int, challenge: str | None, error: JsonObject | None, *, is_answer: bool = False
    ) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.challenge = challenge
        self.error = error
        self.is_answer = is_answer

    def to_outcome(self, request: InboundRequest, upstream: str, *, is_callers: bool) -> Outcome:
        """What the client is told.

        Args:
            request: the client's.
            upstream: the configured name of who refused it.
            is_callers: whether the credential was the caller's own: then the status and the challenge are, too.

        Raises:
            UpstreamError: the credential was the gateway's. That is no fault of the client's, and no challenge for it.
        """
        error = None if self.error is None else to_modern_error(request.method, request.params, self.error)
        if is_callers:
            headers = (("www-authenticate", self.challenge),) if self.challenge else ()
            refusal = error or error_object(codes.INVALID_REQUEST, _TEXT[self.status])
            return Outcome({"error": refusal}, self.status, headers)
        if error is not None and self.is_answer and self.status == 403:
            return Outcome.of_server_error(error)
        message = f"Upstream {upstream!r} does not accept the gateway's credentials (HTTP {self.status})"
        raise UpstreamError(upstream, "unauthorized", message) from self


def refusal_of(reply: Answer, answer: Json, request_id: RequestId | None = None) -> UpstreamRefused:
    """Read a 401 or 403.

    Args:
        reply: the HTTP answer.
        answer: the JSON in its body.
        request_id: of the request, where it is the client's.
    """
    message = answer if isinstance(answer, dict) else {}
    error = message.get("error")
    return UpstreamRefused(
        reply.status,
        reply.headers.get("WWW-Authenticate"),
        error if isinstance(error, dict) else None,
        is_answer=request_id is not None and message.get("id") == request_id,
    )
