"""A legacy server, as a modern one: leases sessions, drives exchanges, translates what comes of them.

Rule: a request is made on one session; on a new one only if the server refused the old before executing anything.
"""

import asyncio
import secrets
from collections.abc import Callable, Hashable
from functools import partial
from itertools import count

import structlog

from gateway.core.exchange import Exchange
from gateway.core.exchange_events import Fail, Leg, RequireInput
from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller
from gateway.core.recorded import Recorded
from gateway.core.session import SessionKey
from gateway.errors import GatewayError, UpstreamError
from gateway.translate import discovery
from gateway.translate.requests import to_legacy_request
from gateway.upstream.background import Background
from gateway.upstream.client_leg import Ending
from gateway.upstream.client_stream import ClientStream
from gateway.upstream.legacy_call import LegacyCall
from gateway.upstream.legacy_options import LegacyOptions
from gateway.upstream.legacy_results import LegacyResults
from gateway.upstream.legacy_rounds import LegacyRounds
from gateway.upstream.legacy_session import LegacySession, SessionExpired
from gateway.upstream.legacy_sessions import LegacySessions, Wanted
from gateway.upstream.listening import LegacySource, ListeningSessions
from gateway.upstream.preparation import Preparation
from gateway.upstream.recovery import Recovery
from gateway.upstream.retries import Retries, leg_of
from gateway.upstream.shared_sessions import StickySharing
from gateway.upstream.subscriptions import Reports
from gateway.upstream.transport import Transport
from gateway.wire import methods
from gateway.wire.jsonrpc import JsonObject
from gateway.wire.jsonrpc import request as to_request

log = structlog.get_logger()


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
        recovery = Recovery(self._sessions, options, background, self._release)
        self._retries = Retries(
            http.name, options, rounds, self._sessions, recovery, self._results, self._call, self._conclude
        )
        self._id_prefix = secrets.token_hex(6)
        self._ids = count(1)

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
        return await self._call(request, leg_of(request), caller, client)

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

    async def _call(
        self,
        request: InboundRequest,
        leg: Leg,
        caller: Caller,
        client: ClientStream,
        recorded: Recorded | None = None,
    ) -> Outcome:
        wanted = self._sessions.wanted(request, caller)
        self._preparation.check_known(wanted.key, request)
        try:
            return await self._call_in_session(wanted, request, leg, caller, client, recorded)
        except UpstreamError as error:
            pause_s = self._pause_s(request, error)
            if pause_s is None:
                raise
        await asyncio.sleep(pause_s)
        return await self._call_in_session(wanted, request, leg, caller, client, recorded)

    def _pause_s(self, request: InboundRequest, error: UpstreamError) -> float | None:
        """How long to wait before a request is made again that the server turned away for the moment; None: never.

        Only for lists and reads, which are mere looks, and only where the server says when to come back.
        """
        if error.reason != "full" or request.method not in methods.CACHEABLE or error.retry_after_s is None:
            return None
        return error.retry_after_s if error.retry_after_s < self._options.calls.timeout_s else None

    async def _call_in_session(
        self,
        wanted: Wanted,
        request: InboundRequest,
        leg: Leg,
        caller: Caller,
        client: ClientStream,
        recorded: Recorded | None,
    ) -> Outcome:
        for attempt in range(self._sessions.attempts):
            session = await self._sessions.lease(wanted, fresh=attempt > 0)
            try:
                return await self._call_on(
                    session, request, leg, caller, client, recorded, may_outlive=wanted.is_exclusive
                )
            except SessionExpired:
                log.info("session expired", upstream=self.name)
        message = f"Upstream {self.name!r} forgets every session at once"
        raise UpstreamError(self.name, "session_lost", message, retryable=True)

    async def _call_on(
        self,
        session: LegacySession,
        request: InboundRequest,
        leg: Leg,
        caller: Caller,
        client: ClientStream,
        recorded: Recorded | None,
        *,
        may_outlive: bool,
    ) -> Outcome:
        """Make a call on a leased session, which is given back in any case.

        Args:
            recorded: what its questions were answered when it was made before; None: it was not.
            may_outlive: whether the call may go on when the client's request has ended, as it does after a question.
        """
        try:
            await self._preparation.prepare(session, request, leg.log_level)
        except BaseException:
            self._sessions.release(session, clean=True)
            raise
        call = self._new_call(session, request, leg, recorded, may_outlive=may_outlive)
        session.hearing.attach(call.exchange.request_id, call.hear_aside)
        ending = await (call.begin(leg, client) if may_outlive else call.run(leg, client))
        return self._conclude(call, ending, request, caller)

    def _conclude(self, call: LegacyCall, ending: Ending, request: InboundRequest, caller: Caller) -> Outcome:
        """Say how a leg ended, in modern terms."""
        if isinstance(ending, Fail):
            raise ending.error
        server_info = call.session.negotiated.server_info
        if isinstance(ending, RequireInput):
            return self._suspend(call, ending, request, caller)
        message = ending.message
        after_round = call.exchange.rounds > 0 or request.request_state is not None
        if self._results.is_url_round(request.method, message):
            result = self._rounds.suspend_url_round(message["error"], request, caller)
            return self._results.input_required(result, server_info)
        if request.method == methods.TOOLS_LIST:
            is_first_page = request.params.get("cursor") is None
            self._preparation.note_tools(call.session.key, message.get("result"), is_first_page=is_first_page)
        return self._results.outcome(request, message, server_info, after_round=after_round)

    def _suspend(self, call: LegacyCall, ending: RequireInput, request: InboundRequest, caller: Caller) -> Outcome:
        try:
            result = self._rounds.suspend_call(call, ending.input_requests, request, caller)
        except BaseException:  # whatever it is: nobody has the token to come back with
            self._background.run(call.expire())
            raise
        if call.holds_session:
            self._sessions.suspend(call.session)
        return self._results.input_required(result, call.session.negotiated.server_info)

    def _may_be_repeated(self, session: LegacySession, request: InboundRequest) -> bool:
        """Whether the operator vouches for a call, should its replica die while it is suspended."""
        rule = self._options.replay
        if rule is None or request.method != methods.TOOLS_CALL:
            return False
        return rule.allows(request.target or "", self._preparation.hints(session.key))

    def _new_call(
        self,
        session: LegacySession,
        request: InboundRequest,
        leg: Leg,
        recorded: Recorded | None,
        *,
        may_outlive: bool,
    ) -> LegacyCall:
        if recorded is None and may_outlive and self._may_be_repeated(session, request):
            recorded = Recorded()
        request_id = f"{self._id_prefix}-{next(self._ids)}"
        # A later leg may want progress although this one does not; the server can be told only now.
        wants_progress = leg.progress_token is not None or (may_outlive and request.method in methods.ASKING)
        params = to_legacy_request(request.method, request.params, request_id if wants_progress else None)
        exchange = Exchange(
            request.method,
            request_id,
            leg,
            names=self._options.question_names.get(request.target or "", ()),
            unanswerable=None if session.id is not None else self._unanswerable(),
            recorded=recorded,
        )
        message = to_request(request_id, request.method, params)
        return LegacyCall(session, exchange, message, self._options.calls, self._background, self._release)

    def _release(self, call: LegacyCall, clean: bool) -> None:
        call.session.hearing.detach(call.exchange.request_id)
        self._sessions.release(call.session, clean=clean)

    def _note_change(self, message: JsonObject, key: SessionKey) -> None:
        if message["method"] == methods.TOOLS_CHANGED:
            self._preparation.forget_tools()
        self._on_change(message, (key.principal, key.credentials))

    def _unanswerable(self) -> GatewayError:
        message = f"Upstream {self.name!r} asks its client, but keeps no session in which it could hear the answer"
        return UpstreamError(self.name, "nonsense", message)
