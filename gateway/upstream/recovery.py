"""Goes on with a call whose replica is dead: on the server's own session, at the place where its stream was left.

2025-11-25, basic/transports, "Session Management" and "Resumability and Redelivery": a session is known by its id, not
by a connection; so whoever has the id and the last event id goes on where another stopped.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from gateway.core.exchange import Exchange
from gateway.core.exchange_events import Leg
from gateway.core.inbound_request import InboundRequest
from gateway.core.recorded import Recorded
from gateway.core.recovery import RecoveryPoint
from gateway.core.session import Negotiated
from gateway.errors import GatewayError, ProtocolError, UpstreamError
from gateway.upstream.background import Background
from gateway.upstream.legacy_call import LegacyCall
from gateway.upstream.legacy_options import LegacyOptions
from gateway.upstream.legacy_session import SessionExpired
from gateway.upstream.legacy_sessions import LegacySessions, Wanted
from gateway.upstream.recovered_call import RecoveredCall
from gateway.wire import methods
from gateway.wire.jsonrpc import JsonObject, notification

log = structlog.get_logger()

_FAREWELL_S: Final = 5.0


class Recovery:
    """Recovers the calls of one legacy upstream.

    Args:
        sessions: its sessions.
        options: how the operator wants it treated.
        background: where work goes that nobody waits for.
        release: called when a call is done with its session.
    """

    def __init__(
        self,
        sessions: LegacySessions,
        options: LegacyOptions,
        background: Background,
        release: Callable[[LegacyCall, bool], None],
    ) -> None:
        self._sessions = sessions
        self._options = options
        self._background = background
        self._release = release

    async def resume(
        self, point: RecoveryPoint, request: InboundRequest, leg: Leg, wanted: Wanted, recorded: Recorded | None
    ) -> RecoveredCall:
        """The call that another replica left, on its session.

        Args:
            point: where it stands; it is resumable.
            request: the retry.
            leg: the same, as the exchange takes it.
            wanted: whose session it is.
            recorded: its answers so far, if it may be made again.
        """
        session = self._sessions.adopt(wanted, point.session_id or "", _negotiated(point))
        names = self._options.question_names.get(request.target or "", ())
        exchange = Exchange(request.method, point.request_id, leg, names=names, recorded=recorded)
        call = RecoveredCall(session, exchange, point, self._options.calls, self._background, self._release)
        session.hearing.attach(point.request_id, call.hear_aside)
        try:
            await self._sessions.listen(session)
        except BaseException:
            self._release(call, False)
            raise
        return call

    def end(self, point: RecoveryPoint, wanted: Wanted) -> None:
        """Tell the server, in the background, that nobody goes on with a call, if it can be told."""
        if point.session_id is not None:
            self._background.run(self._end(point, point.session_id, wanted))

    async def _end(self, point: RecoveryPoint, session_id: str, wanted: Wanted) -> None:
        session = self._sessions.revive(wanted, session_id, _negotiated(point))
        params = {"requestId": point.request_id, "reason": "the gateway lost the call"}
        try:
            async with asyncio.timeout(_FAREWELL_S):
                await session.post(notification(methods.CANCELLED, params))
        except (TimeoutError, SessionExpired, UpstreamError):
            log.info("a lost call could not be cancelled", upstream=session.name)
        await self._sessions.end_revived(session)


def answers_to_repeat(point: RecoveryPoint, recorded: JsonObject, answers: JsonObject) -> tuple[JsonObject, Recorded]:
    """What a call is made again with.

    Args:
        point: where it stood.
        recorded: what its questions have been answered before this retry.
        answers: those of this retry.

    Returns:
        The answers to questions that were not asked yet; and those to questions that were, each for its own.
    """
    known = Recorded(recorded)
    for question in point.standing.questions:
        if question.name in answers:
            known.note(question, answers[question.name])
    asked = {question.name for question in point.standing.questions}
    ahead = {name: answer for name, answer in answers.items() if name not in asked}
    return {**point.standing.ahead, **ahead}, known


def is_lost(call: RecoveredCall, error: GatewayError) -> bool:
    """Whether a call could not be picked up: its server knows nothing of it any more, or will not say."""
    if isinstance(error, ProtocolError):
        return isinstance(error.data, dict) and error.data.get("reason") == "lost"
    return isinstance(error, UpstreamError) and error.reason != "timeout" and not call.has_picked_up


def _negotiated(point: RecoveryPoint) -> Negotiated:
    return Negotiated(point.version, {"protocolVersion": point.version}, {}, point.server_info)
