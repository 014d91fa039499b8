"""Rounds on a legacy upstream: a question leaves as `input_required` with a sealed state, and its answers find the
suspended call again.

2026-07-28, basic/patterns/mrtr.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from gateway.core.claims import Stage
from gateway.core.counts import RoundCounts
from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import ANONYMOUS, Caller
from gateway.core.questions import Question, undeclared
from gateway.core.recovery import Provision, page_members, provide, questions_in
from gateway.core.request_state import RequestState, RequestStateSealer, digest, lost, refused, request_digest
from gateway.errors import ProtocolError
from gateway.translate import rpc_errors
from gateway.translate.capabilities import merge, missing_for
from gateway.upstream.client_stream import ClientStream
from gateway.upstream.legacy_call import LegacyCall
from gateway.upstream.round_directory import RoundDirectory
from gateway.upstream.suspended import SuspendedCall, UrlRound, point_of
from gateway.wire import methods
from gateway.wire.jsonrpc import JsonObject


class LegacyRounds:
    """Seals and opens the rounds of one upstream.

    Args:
        upstream: its configured name.
        directory: where suspended rounds are kept.
        sealer: seals request states.
        passes_authorization: whether the server sees the callers' own credentials.
        resumes: whether calls are gone on with whose replica is dead.
        is_tied: tells whether a session of the server ends with the process that opened it.
    """

    def __init__(
        self,
        upstream: str,
        directory: RoundDirectory,
        sealer: RequestStateSealer,
        *,
        passes_authorization: bool,
        resumes: bool = False,
        is_tied: Callable[[str], bool] = lambda _session_id: False,
    ) -> None:
        self._resumes = resumes
        self._is_tied = is_tied
        self._passes_authorization = passes_authorization
        self._upstream = upstream
        self._directory = directory
        self._sealer = sealer

    def suspend_call(
        self, call: LegacyCall, input_requests: JsonObject, request: InboundRequest, caller: Caller
    ) -> JsonObject:
        """Keep a call until its client returns.

        Args:
            call: what waits.
            input_requests: what it asks.
            request: the request that it asks during.
            caller: whose it is.

        Returns:
            The `input_required` result.

        Raises:
            ProtocolError: there is no room; the call must be ended. A call that already had a round keeps its place.
        """
        if call.exchange.rounds == 1:
            self._directory.admit(caller.principal, self._upstream)
        provision = self._provide(call) if self._directory.is_shared else Provision()
        call.session.is_spent |= provision.names_session and call.session.is_exclusive
        return self._suspend(SuspendedCall(call, provision.is_enough), input_requests, request, caller, provision)

    def _provide(self, call: LegacyCall) -> Provision:
        """Provide for the death of this replica."""
        point, recorded = point_of(call), call.exchange.recorded
        if point.session_id is not None and self._is_tied(point.session_id):
            point = point.tied()
        return provide(point, None if recorded is None else recorded.to_members(), resumes=self._resumes)

    def suspend_url_round(self, error: JsonObject, request: InboundRequest, caller: Caller) -> JsonObject:
        """Turn 2025-11-25's "URL elicitation required" into a round.

        Raises:
            ProtocolError: `-32021` when the request did not declare `elicitation.url`, or there is no room.
        """
        questions = tuple(
            Question(f"elicitation_{number}", number, methods.ELICIT, params)
            for number, params in enumerate(rpc_errors.url_questions(error), 1)
        )
        missing = merge(missing_for(q.method, q.params, request.capabilities) for q in questions)
        if missing is not None:
            raise undeclared(missing)
        self._directory.admit(caller.principal, self._upstream)
        return self.ask(questions, request, caller)

    def ask(self, questions: tuple[Question, ...], request: InboundRequest, caller: Caller) -> JsonObject:
        """The `input_required` result for questions that no call is waiting on."""
        input_requests = {question.name: question.to_input_request() for question in questions}
        pages = page_members(questions) if self._directory.is_shared else None
        round_ = UrlRound(questions, is_resumable=pages is not None)
        return self._suspend(round_, input_requests, request, caller, Provision(pages))

    def read(self, request: InboundRequest, caller: Caller) -> RequestState:
        """Open the token of a retry, and compare what it is bound to.

        Raises:
            ProtocolError: the frozen refusal.
        """
        state = self._sealer.open(
            request.request_state or "",
            upstream=self._upstream,
            principal_id=self._owner(caller),
            request=request_digest(request.method, request.params),
        )
        if state.kind != "suspended":
            raise refused("of another era")
        return state

    def is_here(self, state: RequestState) -> bool:
        """Whether this process is the one that keeps, or kept, a round, and serves its retry for nobody else."""
        return state.owner == self._directory.owner and not self._directory.is_relayed(state.handle)

    async def claim(
        self, state: RequestState, request: InboundRequest, client: ClientStream
    ) -> SuspendedCall | UrlRound:
        """Check the answers of a retry, and claim its round: all of it before anything else happens.

        Raises:
            ProtocolError: the frozen refusal; or `-32602` naming the answer that does not fit, after which the same
                token may be used again.
        """
        round_ = self._directory.find(state.handle)
        if round_ is None:
            raise refused("used or expired")
        answers = request.input_responses or {}
        if isinstance(round_, SuspendedCall):
            round_.call.exchange.check(answers)
        else:
            round_.check(answers)
        claimed: SuspendedCall | UrlRound | None = await self._directory.acquire(state.handle, client)
        if claimed is None:
            raise refused("used or expired")
        return claimed

    async def forward(
        self, state: RequestState, request: InboundRequest, caller: Caller, client: ClientStream
    ) -> Outcome:
        """Have the replica that keeps a round serve its retry.

        Raises:
            OwnerLost: that replica is dead, and the round is ours.
            GatewayError: what it came to, or why it cannot be reached.
        """

        def check() -> None:
            for question in questions_in(state.recovery or {}):
                if question.name in answers:
                    question.check(answers[question.name])

        answers = request.input_responses or {}
        return await self._directory.forward(self._upstream, state, request, caller, client, check)

    async def note_posted(self, state: RequestState) -> None:
        """The server has taken the answers to a round of ours."""
        await self._directory.note(state.handle, Stage.POSTED)

    async def lose(self, state: RequestState) -> ProtocolError:
        """Nobody can go on with the call of a round of ours; what every copy of its retry is told."""
        self._directory.counts.lost += 1
        await self._directory.note(state.handle, Stage.LOST)
        return lost()

    def running(self, state: RequestState, round_: SuspendedCall) -> AbstractContextManager[None]:
        """While a claimed round is worked on."""
        return self._directory.running(state.handle, round_)

    @property
    def counts(self) -> RoundCounts:
        """What became of the rounds of this process."""
        return self._directory.counts

    def is_ours(self, request: InboundRequest, caller: Caller) -> bool:
        """Whether a request is the retry of a round on a legacy server."""
        if request.request_state is None:
            return False
        try:
            self.read(request, caller)
        except ProtocolError:
            return False
        return True

    def occupied(self, caller: Caller) -> AbstractContextManager[None]:
        """Keep the place of a call that goes on, until it asks again or ends."""
        return self._directory.occupied(caller.principal, self._upstream)

    def _owner(self, caller: Caller) -> str:
        """Whose rounds a caller may go on with.

        Who has a name keeps it when a credential is renewed. Without one, the credential is all that tells users apart,
        and the server would not be asked again: what it has to say comes on a stream that is open already.
        """
        if not self._passes_authorization or caller.principal.id != ANONYMOUS.id or caller.authorization is None:
            return caller.principal.id
        return f"{caller.principal.id} {digest(caller.authorization)}"

    def _suspend(
        self,
        round_: SuspendedCall | UrlRound,
        input_requests: JsonObject,
        request: InboundRequest,
        caller: Caller,
        provision: Provision,
    ) -> JsonObject:
        handle = self._directory.keep(round_, caller.principal, self._upstream)
        state = RequestState(
            kind="suspended",
            upstream=self._upstream,
            principal=digest(self._owner(caller)),
            request=request_digest(request.method, request.params),
            expires_s=time.time() + self._directory.ttl_s,
            handle=handle,
            owner=self._directory.owner,
            recovery=provision.recovery,
            answers=provision.answers,
        )
        return {
            "resultType": "input_required",
            "inputRequests": input_requests,
            "requestState": self._sealer.seal(state),
        }
