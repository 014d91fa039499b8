"""What a request came to, ready for the shell that replies."""

from dataclasses import dataclass

from gateway.errors import ErrorReply
from gateway.wire.jsonrpc import JsonObject

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The members that follow the id in a JSON-RPC response, and the HTTP status to send them with.

    Args:
        body: `{"result": ...}` or `{"error": ...}`.
        status: the HTTP status; meant only while no stream has begun.
        headers: extra response headers, lower-case names.
    """

    body: JsonObject
    status: int = 200
    headers: Headers = ()

    @staticmethod
    def of_result(result: JsonObject) -> "Outcome":
        """A result, with 200."""
        return Outcome({"result": result})

    @staticmethod
    def of_server_error(error: JsonObject) -> "Outcome":
        """An error that the server's own execution produced: 200, since a 4xx would end some clients' connections."""
        return Outcome({"error": error})

    @staticmethod
    def of_error(reply: ErrorReply) -> "Outcome":
        """An error of the gateway's own making."""
        return Outcome({"error": reply.error}, reply.status, reply.headers)
