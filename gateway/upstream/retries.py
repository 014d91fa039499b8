"""Serves the retries of rounds on a legacy server: here, at the replica that keeps the call, or in place of a dead one.

Rule: a call is gone on with by whoever has claimed its round, and made again only where the operator vouches for it.
"""

from collections.abc import Mapping
from functools import partial

import structlog

from gateway.core.claims import OwnerLost
from gateway.core.exchange_events import Fail, Leg
from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller
from gateway.core.recorded import Recorded
from gateway.core.recovery import RecoveryPoint, to_pages
from gateway.core.request_state import RequestState
from gateway.upstream.client_stream import ClientStream
from gateway.upstream.legacy_calls import LegacyCalls
from gateway.upstream.legacy_options import LegacyOptions
from gateway.upstream.legacy_results import LegacyResults
from gateway.upstream.legacy_rounds import LegacyRounds
from gateway.upstream.legacy_sessions import LegacySessions
from gateway.upstream.recovery import Recovery, answers_to_repeat, is_lost
from gateway.upstream.suspended import SuspendedCall, UrlRound
from gateway.wire.jsonrpc import JsonObject

log = structlog.get_logger()


class Retries:
    """The retries of one legacy upstream.

    Args:
        name: its configured name.
        options: how the operator wants it treated.
        rounds: where its questions went.
        sessions: its sessions.
        recovery: goes on with calls of dead replicas.
        results: translates its answers.
        calls: makes its calls.
    """

    def __init__(
        self,
        name: str,
        options: LegacyOptions,
        rounds: LegacyRounds,
        sessions: LegacySessions,
        recovery: Recovery,
        results: LegacyResults,
        calls: LegacyCalls,
    ) -> None:
        self._name = name
        self._options = options
        self._rounds = rounds
        self._sessions = sessions
        self._recovery = recovery
        self._results = results
        self._calls = calls

    async def serve(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        """Serve a retry.

        Raises:
            ProtocolError: the token is not accepted, an answer does not fit, or the call is lost.
            GatewayError: how the call ended.
        """
        state = self._rounds.read(request, caller)
        if not self._rounds.is_here(state):
            return await self._serve_elsewhere(state, request, caller, client)
        round_ = await self._rounds.claim(state, request, client)
        if isinstance(round_, UrlRound):
            return await self._serve_url_round(round_, request, caller, client)
        call = round_.call
        if call.holds_session:
            self._sessions.unsuspend(call.session)
            call.session.renew_credentials(self._sessions.credentials(caller))
        with self._rounds.occupied(caller), self._rounds.running(state, round_):
            ending = await call.answer(leg_of(request), client, partial(self._rounds.note_posted, state))
        return self._calls.conclude(call, ending, request, caller)

    async def _serve_elsewhere(
        self, state: RequestState, request: InboundRequest, caller: Caller, client: ClientStream
    ) -> Outcome:
        """Have another replica serve a retry; if that one is dead, go on with the call as far as is allowed."""
        try:
            return await self._rounds.forward(state, request, caller, client)
        except OwnerLost as owner:
            is_posted = owner.is_posted
        members = state.recovery or {}
        if (pages := to_pages(members)) is not None:
            round_ = UrlRound(pages)
            if is_posted is not False and not round_.open_questions(request.input_responses or {}):
                raise await self._lose(state)  # it may have been made by the one that died over it
            return await self._serve_url_round(round_, request, caller, client)
        if not members:
            raise await self._lose(state)
        point = RecoveryPoint.from_members(members)
        if self._options.resumes and point.is_resumable:
            outcome = await self._resume(point, state, request, caller, client, is_posted=is_posted)
            if outcome is not None:
                return outcome
        else:
            self._recovery.end(point, self._sessions.wanted(request, caller))
        if state.answers is None or self._options.replay is None:
            raise await self._lose(state)
        log.info("suspended call made again", upstream=self._name)
        self._rounds.counts.replayed += 1
        ahead, recorded = answers_to_repeat(point, state.answers, request.input_responses or {})
        return await self._calls.make(request, leg_of(request, ahead), caller, client, recorded)

    async def _resume(
        self,
        point: RecoveryPoint,
        state: RequestState,
        request: InboundRequest,
        caller: Caller,
        client: ClientStream,
        *,
        is_posted: bool | None,
    ) -> Outcome | None:
        """Go on with a call whose replica is dead, where its stream was left; None if its server will not have it."""
        leg, wanted = leg_of(request), self._sessions.wanted(request, caller)
        recorded = None if state.answers is None else Recorded(state.answers)
        call = await self._recovery.resume(point, request, leg, wanted, recorded)
        on_posted = partial(self._rounds.note_posted, state)
        with self._rounds.occupied(caller), self._rounds.running(state, SuspendedCall(call, is_resumable=True)):
            ending = await call.recover(leg, client, on_posted, is_posted=is_posted)
        if isinstance(ending, Fail) and is_lost(call, ending.error):
            log.info("suspended call not resumed", upstream=self._name, reason=getattr(ending.error, "reason", None))
            return None
        log.info("suspended call resumed", upstream=self._name)
        self._rounds.counts.recovered += 1
        return self._calls.conclude(call, ending, request, caller)

    async def _lose(self, state: RequestState) -> Exception:
        log.warning("suspended call lost", upstream=self._name)
        return await self._rounds.lose(state)

    async def _serve_url_round(
        self, round_: UrlRound, request: InboundRequest, caller: Caller, client: ClientStream
    ) -> Outcome:
        answers = request.input_responses or {}
        if round_.is_declined(answers):
            return self._results.declined(request)
        if still_open := round_.open_questions(answers):
            return Outcome.of_result(self._rounds.ask(still_open, request, caller))
        return await self._calls.make(request, leg_of(request, {}), caller, client)


def leg_of(request: InboundRequest, answers: Mapping[str, JsonObject] | None = None) -> Leg:
    """A request, as an exchange takes it; with other answers than its own, if they are given."""
    own = request.input_responses or {}
    return Leg(request.capabilities, request.progress_token, request.log_level, own if answers is None else answers)
