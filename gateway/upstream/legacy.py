"""A legacy server, as a modern one: what there is of it, and who serves what."""

from collections.abc import Callable, Hashable
from functools import partial

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller
from gateway.core.session import SessionKey
from gateway.translate import discovery
from gateway.upstream.background import Background
from gateway.upstream.client_stream import ClientStream
from gateway.upstream.legacy_calls import LegacyCalls
from gateway.upstream.legacy_options import LegacyOptions
from gateway.upstream.legacy_results import LegacyResults
from gateway.upstream.legacy_rounds import LegacyRounds
from gateway.upstream.legacy_sessions import LegacySessions
from gateway.upstream.listening import LegacySource, ListeningSessions
from gateway.upstream.preparation import Preparation
from gateway.upstream.recovery import Recovery
from gateway.upstream.retries import Retries, leg_of
from gateway.upstream.shared_sessions import StickySharing
from gateway.upstream.subscriptions import Reports
from gateway.upstream.transport import Transport
from gateway.wire import methods
from gateway.wire.jsonrpc import JsonObject


class LegacyUpstream:
    """One legacy server.

    Args:
        http: the connections to it.
        options: how the operator wants it treated.
        rounds: where its questions go; None for a round that no client can be asked.
        background: where work goes that nobody waits for.
        on_change: told of changed lists and resources, and of whose session they were heard on.
        now_s: a monotonic clock.
        sharing: with whom sticky sessions are shared; None: nobody.
    """

    def __init__(
        self,
        http: Transport,
        options: LegacyOptions,
        rounds: LegacyRounds,
        background: Background,
        on_change: Callable[[JsonObject, Hashable], None],
        now_s: Callable[[], float],
        sharing: StickySharing | None = None,
    ) -> None:
        self._on_change = on_change
        self.name = http.name
        self._options = options
        self._rounds = rounds
        self._background = background
        self._sessions = LegacySessions(http, options, background, self._note_change, now_s, sharing)
        self._preparation = Preparation(http.name, now_s, min(options.connect_timeout_s, options.calls.timeout_s))
        self._results = LegacyResults(http.name, options)
        self._calls = LegacyCalls(
            http.name, options, rounds, self._sessions, self._preparation, self._results, background
        )
        recovery = Recovery(self._sessions, options, background, self._calls.release)
        self._retries = Retries(http.name, options, rounds, self._sessions, recovery, self._results, self._calls)

    async def serve(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        """Serve one request of a modern client.

        Raises:
            ProtocolError: the client's fault, or a limit.
            UpstreamRefused: 401 or 403.
            UpstreamError: the server's fault.
        """
        if request.method == methods.DISCOVER:
            return await self._discover(request, caller)
        if request.request_state is not None and request.method in methods.ASKING:
            return await self._retries.serve(request, caller, client)
        return await self._calls.make(request, leg_of(request), caller, client)

    def knows_round(self, request: InboundRequest, caller: Caller) -> bool:
        """Whether a request is the retry of a round on this server, so that it need not be asked of what era it is."""
        return request.method in methods.ASKING and self._rounds.is_ours(request, caller)

    async def greet(self, request: InboundRequest, caller: Caller) -> None:
        """Find out whether this is a legacy server at all: open the session that the request would be made on.

        Raises:
            UpstreamRefused, UpstreamError: it is not, or not now.
        """
        session = await self._sessions.lease(self._sessions.wanted(request, caller))
        self._sessions.release(session, clean=True)

    def kind_of_listener(self, request: InboundRequest, caller: Caller) -> str:
        """What the listeners of one caller must have in common to share a source."""
        return self._sessions.kind_of_listener(request, caller)

    def source(self, request: InboundRequest, caller: Caller, reports: Reports) -> LegacySource:
        """Where the changes for a caller's listeners come from."""
        wanted = self._sessions.wanted_for_listening(request, caller)
        sessions = ListeningSessions(partial(self._sessions.open_to_listen, wanted), self._sessions.end_listening)
        found = partial(self._note_change, key=wanted.key)
        return LegacySource(self.name, sessions, self._options.watch_s, found, reports, self._background)

    def sweep(self) -> None:
        """End sessions that have been idle for too long."""
        self._sessions.sweep()

    async def close(self) -> None:
        """End every session."""
        await self._sessions.close()

    @property
    def session_count(self) -> int:
        """How many sessions are open."""
        return len(self._sessions)

    # --- one request ---

    async def _discover(self, request: InboundRequest, caller: Caller) -> Outcome:
        session = await self._sessions.lease(self._sessions.wanted(request, caller))
        try:
            if session.listener is not None:
                await session.listener.opened()
            return Outcome.of_result(
                discovery.to_discover_result(
                    session.negotiated.result,
                    absent=self._results.absent,
                    watchable=session.listener is not None and (session.listener.is_open or session.listener.is_taken),
                    polled=self._options.watch_s is not None,
                    ttl_ms=self._options.ttl_ms,
                    cache_scope=self._options.cache_scope,
                )
            )
        finally:
            self._sessions.release(session, clean=True)

    def _note_change(self, message: JsonObject, key: SessionKey) -> None:
        if message["method"] == methods.TOOLS_CHANGED:
            self._preparation.forget_tools()
        self._on_change(message, (key.principal, key.credentials))
