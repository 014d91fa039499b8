"""Finds out, once, which era a server is of.

Rule: the first request asks, all others wait for the same answer, and go on without it when their client leaves. An
outage is never remembered: what is configured or was last known counts, and the next request asks again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog

from gateway import __version__
from gateway.core import era
from gateway.core.era import Era, Legacy, Modern, NoVerdict, Verdict
from gateway.errors import UpstreamError
from gateway.upstream.refusal import UpstreamRefused
from gateway.upstream.transport import Answer, Transport
from gateway.wire.jsonrpc import Json, JsonObject, decode, encode

log = structlog.get_logger()

CLIENT_INFO: Final[JsonObject] = {"name": "era-gateway", "version": __version__}

DOUBT_INTERVAL_S: Final = 10.0
"""How long after a doubt there is no other, so that a server in trouble is not asked with every request."""


Initialize = Callable[[], Awaitable[object]]
"""Opens a legacy session; raises `UpstreamError` or `UpstreamRefused` if the server will have none."""


class EraResolver:
    """The era of one upstream.

    Args:
        http: the connections to the server.
        configured: the operator's word, which is never questioned; None to ask the server.
        timeout_s: for the probe.
        is_process: whether the server is started for the probe: then one that neither answers it nor takes `initialize`
            may still be starting, and is asked once more.
        now_s: a monotonic clock.

    Attributes:
        discover_result: what a modern server told of itself when it was probed, None if it did not.
    """

    def __init__(
        self,
        http: Transport,
        *,
        configured: Era | None = None,
        timeout_s: float = 10.0,
        is_process: bool = False,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.discover_result: JsonObject | None = None
        self._http = http
        self._configured = configured
        self._timeout_s = timeout_s
        self._is_process = is_process
        self._now_s = now_s
        self._verdict: Era | None = None
        self._last_known: Era | None = None
        self._doubted_s = float("-inf")
        self._flight: asyncio.Task[Era] | None = None
        self._asked_with: Mapping[str, str] = {}

    @property
    def known(self) -> Era | None:
        """The era as far as it is known, without asking."""
        return self._configured or self._verdict or self._last_known

    async def era_of(self, headers: Mapping[str, str], initialize: Initialize) -> Era:
        """The era; asks the server if nobody has yet.

        Args:
            headers: the credential of the request at hand, to ask with.
            initialize: opens a legacy session with the same credential; tried once when the server refused the probe
                or left it unanswered.

        Raises:
            UpstreamRefused: 401 or 403, to the probe and to `initialize`.
            UpstreamError: no verdict, and none from before; the request was not sent.
        """
        while (found := self._configured or self._verdict) is None:
            flight = self._flight or self._ask(headers, initialize)
            asked_with = self._asked_with
            try:
                # Shielded: a waiter that leaves must not take the answer away from the others.
                return await asyncio.shield(flight)
            except UpstreamRefused:
                if asked_with == headers:
                    raise  # else it was somebody else's credential that was refused
        return found

    def doubt(self) -> bool:
        """Take it that the verdict is wrong; the next request asks again.

        Returns:
            False if that would be too soon after the last time, or the era is configured.
        """
        now_s = self._now_s()
        if self._verdict is None or now_s - self._doubted_s < DOUBT_INTERVAL_S:
            return False
        self._doubted_s = now_s
        self._last_known, self._verdict = self._verdict, None
        return True

    async def close(self) -> None:
        """Stop asking."""
        if self._flight is not None:
            self._flight.cancel()
            await asyncio.wait([self._flight])

    def _ask(self, headers: Mapping[str, str], initialize: Initialize) -> asyncio.Task[Era]:
        self._asked_with = dict(headers)
        self._flight = asyncio.get_running_loop().create_task(self._settle(headers, initialize))
        self._flight.add_done_callback(self._land)
        return self._flight

    def _land(self, flight: asyncio.Task[Era]) -> None:
        self._flight = None
        if not flight.cancelled():
            flight.exception()  # looked at, in case that every waiter has left

    async def _settle(self, headers: Mapping[str, str], initialize: Initialize) -> Era:
        try:
            found = await self._probe(headers)
        except UpstreamError:
            if self._last_known is None:
                raise
            return self._restore(self._last_known)
        if isinstance(found, NoVerdict):
            return await self._settle_without_verdict(found, initialize)
        self.discover_result = found.discover_result if isinstance(found, Modern) else None
        return self._conclude("modern" if isinstance(found, Modern) else "legacy", found)

    async def _settle_without_verdict(self, found: NoVerdict, initialize: Initialize) -> Era:
        if self._last_known is not None:
            return self._restore(self._last_known)
        failure: Exception = _to_failure(self._http.name, found)
        if found.try_initialize:
            fault = await _fault_of(initialize)
            if fault is None:
                return self._conclude("legacy", Legacy("it takes initialize"))
            if self._is_process:
                failure = fault
        if self._is_process and found.reason == "timeout":
            answer = await self._probe({})
            if isinstance(answer, Modern):
                self.discover_result = answer.discover_result
                return self._conclude("modern", answer)
        raise failure

    def _conclude(self, found: Era, verdict: Verdict) -> Era:
        log.info("era found", upstream=self._http.name, era=found, reason=getattr(verdict, "reason", "it says so"))
        return self._restore(found)

    def _restore(self, found: Era) -> Era:
        self._verdict, self._last_known = found, None
        return found

    async def _probe(self, headers: Mapping[str, str]) -> Verdict:
        probe_headers, message = era.probe_request(CLIENT_INFO)
        try:
            async with asyncio.timeout(self._timeout_s):
                reply = await self._http.post(encode(message), {**headers, **probe_headers})
                try:
                    body = await read_answer(reply)
                finally:
                    reply.finish()
        except TimeoutError:
            return NoVerdict("timeout", try_initialize=True)
        except UpstreamError as error:
            if error.reason != "outcome_unknown":
                raise
            return NoVerdict("nonsense", try_initialize=True)
        has_credential = bool(headers) or self._http.has_headers
        return era.verdict(reply.status, reply.headers, body, has_credential=has_credential)


async def _fault_of(initialize: Initialize) -> UpstreamError | UpstreamRefused | None:
    """Why the server will have no legacy session; None if it has."""
    try:
        await initialize()
    except (UpstreamError, UpstreamRefused) as error:
        return error
    return None


async def read_answer(reply: Answer) -> bytes:
    """The message that answers the probe; `b""` if there is none."""
    if reply.kind == "json":
        return await reply.read_message_bytes()
    if reply.kind == "sse":
        async for event in reply.events():
            if _is_answer(event.data):
                return event.data
    return b""


def _is_answer(data: bytes) -> bool:
    try:
        message: Json = decode(data)
    except ValueError:
        return False
    return isinstance(message, dict) and "method" not in message


def _to_failure(upstream: str, found: NoVerdict) -> UpstreamError | UpstreamRefused:
    """What the request that asked is told; it was not sent itself, so it may be sent again."""
    if found.status in (401, 403):
        return UpstreamRefused(found.status, found.challenge, None)
    if found.status is not None:
        what = f"answered with HTTP {found.status}"
    else:
        what = "did not answer in time" if found.reason == "timeout" else "broke the connection"
    message = f"Upstream {upstream!r} {what} when asked for its version"
    return UpstreamError(upstream, found.reason, message, retryable=True, retry_after_s=found.retry_after_s)
