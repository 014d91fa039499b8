"""What a tool of the demo server may do while it runs: report progress, log, ask the client."""

from typing import Protocol

from gateway.demo.notes import Notes
from gateway.demo.stream import Stream
from gateway.wire import meta, methods
from gateway.wire.jsonrpc import JsonObject, RequestId, notification


class _Session(Protocol):
    capabilities: JsonObject
    log_level: str
    subscriptions: set[str]
    notes: Notes

    async def ask(self, stream: Stream, method: str, params: JsonObject) -> JsonObject: ...


class Call:
    """One running request.

    Args:
        session: the session that it came in.
        stream: where its messages go.
        progress_token: what the client wants progress under, if it does.
    """

    def __init__(self, session: _Session, stream: Stream, progress_token: RequestId | None) -> None:
        self._session = session
        self._stream = stream
        self._progress_token = progress_token

    @property
    def notes(self) -> Notes:
        """The notebook."""
        return self._session.notes

    @property
    def subscriptions(self) -> set[str]:
        """The URIs whose updates the session wants to hear of."""
        return self._session.subscriptions

    def is_able(self, capability: str) -> bool:
        """Whether the client declared a capability; a server must not ask for what was not declared."""
        return isinstance(self._session.capabilities.get(capability), dict)

    def set_level(self, level: str) -> None:
        """Let through the session's log messages from that level on."""
        self._session.log_level = level

    def report(self, progress: float, total: float, message: str) -> None:
        """Send a progress notification, if the client asked for them."""
        if self._progress_token is None:
            return
        params = {
            "progressToken": self._progress_token,
            "progress": progress,
            "total": total,
            "message": message,
        }
        self._stream.put(notification(methods.PROGRESS, params))

    def log(self, level: str, data: str) -> None:
        """Send a log message, if it is at or above the session's level."""
        if meta.LOG_RANK[level] >= meta.LOG_RANK[self._session.log_level]:
            params = {"level": level, "logger": "demo", "data": data}
            self._stream.put(notification(methods.MESSAGE, params))

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Ask the client and wait for its answer, as long as that takes.

        Raises:
            RpcError: the client answered with an error.
        """
        return await self._session.ask(self._stream, method, params)
