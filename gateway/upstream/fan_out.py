"""Asks several upstreams at once, and waits for none of them longer than for the others' sake it may.

What an upstream said last is kept for each authorization context, and stands in for it while it says nothing. An
upstream that missed its deadline is waited for only briefly from then on, until it answers in time again; the answer
that came too late is kept for the next time, and meanwhile the same is not asked again.
"""

import asyncio
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller
from gateway.errors import GatewayError, UpstreamError, to_reply
from gateway.upstream.contexts import Deaf, Upstream, context_of, in_short
from gateway.upstream.shelf import Shelf
from gateway.wire import codes
from gateway.wire.jsonrpc import JsonObject

log = structlog.get_logger()

LATE_DEADLINE_S: Final = 0.25
"""How long an upstream is waited for that missed its deadline the last time."""

KEPT_BYTES: Final = 64 * 1024 * 1024
_REFUSALS: Final = (codes.METHOD_NOT_FOUND, codes.INVALID_PARAMS)
_DENIALS: Final = (401, 403)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one upstream came to.

    Args:
        result: its result; None if there is none, not even an old one.
        is_stale: whether it is an old one, since the upstream says nothing now.
        failure: why there is no fresh result.
        asked_at_s: when the result was asked for.
    """

    result: JsonObject | None
    is_stale: bool = False
    failure: Outcome | None = None
    asked_at_s: float = 0.0

    @property
    def code(self) -> int | None:
        """The error code of its failure."""
        code: int | None = self.failure.body["error"]["code"] if self.failure is not None else None
        return code

    @property
    def is_refused(self) -> bool:
        """Whether the upstream does not offer the method at all, which is no failure."""
        return self.code == codes.METHOD_NOT_FOUND

    @property
    def is_missing(self) -> bool:
        """Whether the upstream should have answered and did not."""
        return self.failure is not None and not self.is_refused


class FanOut:
    """Asks upstreams concurrently, with a deadline for each.

    Args:
        deadline_s: seconds that an upstream is waited for.
        now_s: a monotonic clock.
        kept_bytes: how much of what was said may be kept.
    """

    def __init__(
        self, deadline_s: float, now_s: Callable[[], float] = time.monotonic, kept_bytes: int = KEPT_BYTES
    ) -> None:
        self._deadline_s = deadline_s
        self._now_s = now_s
        self._late: set[str] = set()
        self._kept = Shelf(kept_bytes)
        self._changed_at_s: dict[tuple[str, str], float] = {}
        self._overdue: dict[Hashable, asyncio.Task[Answer]] = {}

    async def ask(
        self, requests: Sequence[tuple[Upstream, InboundRequest]], caller: Caller, *, max_age_s: float = 0.0
    ) -> Mapping[str, Answer]:
        """Make one request of each upstream; answers by name, in the order given.

        Args:
            requests: what to ask whom.
            caller: in whose name.
            max_age_s: how old an answer may be that is given without asking.
        """
        asking = (self._ask(upstream, request, caller, max_age_s) for upstream, request in requests)
        answers = await asyncio.gather(*asking)
        return {upstream.name: answer for (upstream, _request), answer in zip(requests, answers, strict=True)}

    def patience_s(self, upstream: str) -> float:
        """How long an upstream may be waited for."""
        return min(self._deadline_s, LATE_DEADLINE_S) if upstream in self._late else self._deadline_s

    def forget(self, upstream: str, method: str) -> None:
        """A list has changed: what is kept of it is good for an outage, and for nothing else."""
        self._changed_at_s[upstream, method] = self._now_s()

    async def close(self) -> None:
        """End what nobody waits for any more."""
        tasks = list(self._overdue.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # --- one of them ---

    async def _ask(self, upstream: Upstream, request: InboundRequest, caller: Caller, max_age_s: float) -> Answer:
        cursor = request.params.get("cursor")
        key = (*context_of(upstream, request, caller), request.method, cursor and in_short(cursor))
        kept = self._kept.get(key)
        changed_at_s = self._changed_at_s.get((upstream.name, request.method), float("-inf"))
        if kept is not None and kept.kept_at_s > max(self._now_s() - max_age_s, changed_at_s):
            return Answer(kept.result(), asked_at_s=kept.kept_at_s)
        answer = await self._in_time(upstream, request, caller, key)
        if answer.failure is not None and _is_outage(answer.failure) and (before := self._kept.get(key)) is not None:
            return Answer(before.result(), is_stale=True, failure=answer.failure, asked_at_s=before.kept_at_s)
        return answer

    async def _in_time(self, upstream: Upstream, request: InboundRequest, caller: Caller, key: Hashable) -> Answer:
        overdue = self._overdue.get(key)
        asking = overdue or asyncio.get_running_loop().create_task(self._serve(upstream, request, caller, key))
        patience_s = self.patience_s(upstream.name)
        try:
            await asyncio.wait([asking], timeout=patience_s)
        except asyncio.CancelledError:
            if overdue is None:
                asking.cancel()
            raise
        if asking.done():
            return asking.result()
        self._late.add(upstream.name)
        if overdue is None:
            self._outlive(key, asking)
        message = f"Upstream {upstream.name!r} did not answer within {patience_s:g} s"
        error = UpstreamError(upstream.name, "timeout", message, retryable=True)
        return _failed(upstream.name, request, Outcome.of_error(to_reply(error)))

    def _outlive(self, key: Hashable, asking: "asyncio.Task[Answer]") -> None:
        """Let an answer come when it may; of several to one question, only the first is waited for again."""
        if key in self._overdue:
            asking.cancel()
            return
        self._overdue[key] = asking
        asking.add_done_callback(lambda _asking: self._overdue.pop(key))

    async def _serve(self, upstream: Upstream, request: InboundRequest, caller: Caller, key: Hashable) -> Answer:
        asked_at_s = self._now_s()
        outcome = await _outcome(upstream, request, caller)
        if self._now_s() - asked_at_s <= self._deadline_s:
            self._late.discard(upstream.name)
        result = outcome.body.get("result")
        if not isinstance(result, dict):
            return _failed(upstream.name, request, outcome)
        self._kept.put(key, result, now_s=asked_at_s)
        return Answer(result, asked_at_s=asked_at_s)


async def _outcome(upstream: Upstream, request: InboundRequest, caller: Caller) -> Outcome:
    try:
        return await upstream.serve(request, caller, Deaf())
    except GatewayError as error:
        return Outcome.of_error(to_reply(error))
    except Exception:  # of one upstream: the others are not to suffer for it
        log.exception("unforeseen failure", upstream=upstream.name, rpc_method=request.method)
        failure = UpstreamError(upstream.name, "nonsense", f"Upstream {upstream.name!r} could not be asked")
        return Outcome.of_error(to_reply(failure))


def _failed(upstream: str, request: InboundRequest, outcome: Outcome) -> Answer:
    error = outcome.body["error"]
    if error["code"] != codes.METHOD_NOT_FOUND:
        log.info("upstream left out", upstream=upstream, rpc_method=request.method, reason=error["message"])
    return Answer(None, failure=outcome)


def _is_outage(outcome: Outcome) -> bool:
    """Whether a failure says nothing of what the upstream would answer, as a refusal does."""
    return outcome.status not in _DENIALS and outcome.body["error"]["code"] not in _REFUSALS
