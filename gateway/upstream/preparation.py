"""What must be settled on a legacy session before a call is sent: capability, header marks, log level."""

from collections.abc import Callable

import structlog

from gateway.core.inbound import check_param_headers
from gateway.core.inbound_request import InboundRequest
from gateway.core.session import SessionKey
from gateway.errors import ProtocolError, UpstreamError
from gateway.upstream.legacy_session import LegacySession
from gateway.upstream.refusal import UpstreamRefused
from gateway.upstream.replay import Hints
from gateway.upstream.tool_marks import Marks, ToolMarks
from gateway.wire import codes, meta, methods
from gateway.wire.jsonrpc import Json

log = structlog.get_logger()


class Preparation:
    """Prepares the calls of one legacy upstream.

    Args:
        upstream: its configured name.
        now_s: a monotonic clock.
        patience_s: how long a look at the server's tools may take.
    """

    def __init__(self, upstream: str, now_s: Callable[[], float], patience_s: float) -> None:
        self._upstream = upstream
        self._marks = ToolMarks(now_s, patience_s)

    def check_known(self, key: SessionKey, request: InboundRequest) -> None:
        """Refuse a request that contradicts what is freshly known of its tool, before any session is needed for it.

        Raises:
            ProtocolError: `-32020`.
        """
        if request.method != methods.TOOLS_CALL or self._marks.is_stale(key):
            return
        if (marks := self._marks.known(key)) is not None:
            _check(request, marks)

    async def prepare(self, session: LegacySession, request: InboundRequest, log_level: str | None) -> None:
        """Make a session ready for a request.

        Raises:
            ProtocolError: `-32601`, the server does not offer the method; `-32020`, the headers contradict the tool.
            SessionExpired: the server does not know the session.
        """
        self._require_capability(session, request.method)
        if request.method == methods.TOOLS_CALL:
            await self._check_marks(session, request)
        if log_level is not None:
            await self._set_log_level(session, log_level)

    def note_tools(self, key: SessionKey, result: Json, *, is_first_page: bool) -> None:
        """Take note of a tools list that passes by."""
        self._marks.note(key, result, is_first_page=is_first_page)

    def hints(self, key: SessionKey) -> Hints:
        """What the server says of the effects of its tools, as far as it is known."""
        return self._marks.hints(key)

    def forget_tools(self) -> None:
        """The tools have changed."""
        self._marks.forget()

    def _require_capability(self, session: LegacySession, method: str) -> None:
        """A method whose capability the server does not have is not offered; one that declares nothing is asked."""
        capabilities = session.negotiated.capabilities
        needed = methods.CAPABILITY.get(method)
        if capabilities and needed is not None and capabilities.get(needed) is None:
            raise ProtocolError(codes.METHOD_NOT_FOUND, f"Upstream {self._upstream!r} does not offer {method}")

    async def _check_marks(self, session: LegacySession, request: InboundRequest) -> None:
        """2026-07-28, basic/transports/streamable-http, "Custom Headers"; looks again before it contradicts."""
        marks = self._marks.known(session.key)
        if marks is not None:
            try:
                _check(request, marks)
                return
            except ProtocolError:
                if not self._marks.is_stale(session.key):
                    raise
        _check(request, await self._marks.learn(session))

    async def _set_log_level(self, session: LegacySession, level: str) -> None:
        """Make the session as talkative as a call wants; what is too much for it is filtered on the way back."""
        if session.negotiated.capabilities.get("logging") is None:
            return
        if session.share is not None:
            level = meta.LOG_LEVELS[0]  # other replicas have calls on it, too, and must not hear less than they want
        if session.log_level is not None and meta.LOG_RANK[session.log_level] <= meta.LOG_RANK[level]:
            return
        try:
            await session.ask(methods.SET_LEVEL, {"level": level})
        except (UpstreamError, UpstreamRefused) as error:
            log.info("log level not set", upstream=self._upstream, reason=getattr(error, "reason", "refused"))
            return
        session.log_level = level


def _check(request: InboundRequest, marks: Marks) -> None:
    check_param_headers(request, marks.get(request.target or "", ()))
