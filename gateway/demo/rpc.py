"""The JSON-RPC error that a handler of the demo server raises."""

from gateway.wire import codes
from gateway.wire.jsonrpc import Json, JsonObject, error_object


class RpcError(Exception):
    """An error response: code, message, data (left out when None)."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @classmethod
    def from_object(cls, error: Json) -> "RpcError":
        """The error that a client answered with, as far as it is readable."""
        if not isinstance(error, dict):
            return cls(codes.INTERNAL_ERROR, "The client answered with an unreadable error")
        code = error.get("code")
        readable = code if isinstance(code, int) else codes.INTERNAL_ERROR
        return cls(readable, str(error.get("message", "")), error.get("data"))

    def as_object(self) -> JsonObject:
        """The error object of the response."""
        return error_object(self.code, self.message, self.data)
