"""Makes calls on a legacy server: leases sessions, drives exchanges, translates what comes of them.

Rule: a request is made on one session; on a new one only if the server refused the old before executing anything.
"""

import asyncio
import secrets
from itertools import count

import structlog

from gateway.core.exchange import Exchange
from gateway.core.exchange_events import Fail, Leg, RequireInput
from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller
from gateway.core.recorded import Recorded
from gateway.errors import GatewayError, UpstreamError
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
from gateway.upstream.preparation import Preparation
from gateway.wire import methods
from gateway.wire.jsonrpc import request as to_request

log = structlog.get_logger()


class LegacyCalls:
    """The calls on one legacy server.

    Args:
        name: its configured name.
        options: how the operator wants it treated.
        rounds: where its questions go.
        sessions: its sessions.
        preparation: what a session is told, and what must be known, before a call.
        results: translates its answers.
        background: where work goes that nobody waits for.
    """

    def __init__(
        self,
        name: str,
        options: LegacyOptions,
        rounds: LegacyRounds,
        sessions: LegacySessions,
        preparation: Preparation,
        results: LegacyResults,
        background: Background,
    ) -> None:
        self._name = name
        self._options = options
        self._rounds = rounds
        self._sessions = sessions
        self._preparation = preparation
        self._results = results
        self._background = background
        self._id_prefix = secrets.token_hex(6)
        self._ids = count(1)

    async def make(
        self,
        request: InboundRequest,
        leg: Leg,
        caller: Caller,
        client: ClientStream,
        recorded: Recorded | None = None,
    ) -> Outcome:
        """Make a call.

        Args:
            request: the client's request.
            leg: the same, as the exchange takes it.
            caller: whose session it is made on.
            client: where notifications go.
            recorded: what its questions were answered when it was made before; None: it was not.

        Raises:
            ProtocolError: the client's fault, or a limit.
            UpstreamRefused: 401 or 403.
            UpstreamError: the server's fault.
        """
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
                log.info("session expired", upstream=self._name)
        message = f"Upstream {self._name!r} forgets every session at once"
        raise UpstreamError(self._name, "session_lost", message, retryable=True)

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
        return self.conclude(call, ending, request, caller)

    def conclude(self, call: LegacyCall, ending: Ending, request: InboundRequest, caller: Caller) -> Outcome:
        """Say how a leg ended, in modern terms.

        Raises:
            GatewayError: that is how.
        """
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
        return LegacyCall(session, exchange, message, self._options.calls, self._background, self.release)

    def release(self, call: LegacyCall, clean: bool) -> None:
        """A call is done with its session; `clean` says whether the server is done with the call."""
        call.session.hearing.detach(call.exchange.request_id)
        self._sessions.release(call.session, clean=clean)

    def _unanswerable(self) -> GatewayError:
        message = f"Upstream {self._name!r} asks its client, but keeps no session in which it could hear the answer"
        return UpstreamError(self._name, "nonsense", message)
