"""Asks several upstreams at once, and waits for none of them longer than for the others' sake it may.

What an upstream said last is kept for each authorization context, and stands in for it while it says nothing. An
upstream that missed its deadline is waited for only briefly from then on, until it answers again; its answer, when it
comes, is kept for the next time.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller, Principal
from gateway.errors import GatewayError, UpstreamError
from gateway.upstream.background import Background
from gateway.upstream.legacy_call import ClientStream
from gateway.wire import codes
from gateway.wire.jsonrpc import JsonObject

log = structlog.get_logger()

DEADLINE_S: Final = 5.0
LATE_DEADLINE_S: Final = 0.25
_MAX_KEPT: Final = 10_000


class Upstream(Protocol):
    """One of the upstreams."""

    @property
    def name(self) -> str:
        """Its configured name."""

    def admits(self, principal: Principal) -> bool:
        """Whether a principal may use it."""

    async def serve(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        """Serve one request. Raises GatewayError."""


class Deaf:
    """A client that hears no notifications: the gateway asks for itself."""

    async def notify(self, _notification: JsonObject) -> None:
        """Drop it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one upstream came to.

    Args:
        result: its result; None if there is none, not even an old one.
        is_stale: whether it is an old one, since the upstream says nothing now.
        is_refused: whether the upstream does not offer the method at all, which is no failure.
        error: why there is no fresh result.
    """

    result: JsonObject | None
    is_stale: bool = False
    is_refused: bool = False
    error: GatewayError | None = None

    @property
    def is_missing(self) -> bool:
        """Whether the upstream should have answered and did not."""
        return self.is_stale or (self.result is None and not self.is_refused)


class FanOut:
    """Asks upstreams concurrently, with a deadline for each.

    Args:
        background: where answers arrive that nobody waits for any more.
        deadline_s: seconds that an upstream is waited for.
    """

    def __init__(self, background: Background, deadline_s: float = DEADLINE_S) -> None:
        self._background = background
        self._deadline_s = deadline_s
        self._late: set[str] = set()
        self._kept: OrderedDict[Hashable, JsonObject] = OrderedDict()

    async def ask(self, requests: Sequence[tuple[Upstream, InboundRequest]], caller: Caller) -> Mapping[str, Answer]:
        """Make one request of each upstream; answers by name, in the order given."""
        answers = await asyncio.gather(*(self._ask(upstream, request, caller) for upstream, request in requests))
        return {upstream.name: answer for (upstream, _request), answer in zip(requests, answers, strict=True)}

    async def _ask(self, upstream: Upstream, request: InboundRequest, caller: Caller) -> Answer:
        key = (upstream.name, caller.principal.id, caller.authorization, request.method, _variant(request))
        asking = asyncio.get_running_loop().create_task(self._serve(upstream, request, caller, key))
        deadline_s = LATE_DEADLINE_S if upstream.name in self._late else self._deadline_s
        try:
            await asyncio.wait([asking], timeout=deadline_s)
        except asyncio.CancelledError:
            asking.cancel()
            raise
        if asking.done():
            answer = asking.result()
        else:
            self._late.add(upstream.name)
            self._background.run(_outlive(asking))
            message = f"Upstream {upstream.name!r} did not answer within {deadline_s:g} s"
            answer = Answer(None, error=UpstreamError(upstream.name, "timeout", message, retryable=True))
        if answer.is_missing and (before := self._kept.get(key)) is not None:
            return Answer(before, is_stale=True, error=answer.error)
        return answer

    async def _serve(self, upstream: Upstream, request: InboundRequest, caller: Caller, key: Hashable) -> Answer:
        try:
            outcome = await upstream.serve(request, caller, Deaf())
        except GatewayError as error:
            self._late.discard(upstream.name)
            is_refused = getattr(error, "code", None) == codes.METHOD_NOT_FOUND
            return Answer(None, is_refused=is_refused, error=error)
        self._late.discard(upstream.name)
        result = outcome.body.get("result")
        if isinstance(result, dict):
            self._keep(key, result)
            return Answer(result)
        said = outcome.body["error"]
        message = f"Upstream {upstream.name!r} answered with an error: {said.get('message')}"
        failure = UpstreamError(upstream.name, "nonsense", message)
        return Answer(None, is_refused=said.get("code") == codes.METHOD_NOT_FOUND, error=failure)

    def _keep(self, key: Hashable, result: JsonObject) -> None:
        self._kept[key] = result
        self._kept.move_to_end(key)
        if len(self._kept) > _MAX_KEPT:
            self._kept.popitem(last=False)


async def _outlive(asking: "asyncio.Task[Answer]") -> None:
    await asyncio.wait([asking])


def _variant(request: InboundRequest) -> tuple[object, str]:
    """What else a list depends on: where it begins, and what the client can do."""
    return request.params.get("cursor"), repr(sorted(request.capabilities))
