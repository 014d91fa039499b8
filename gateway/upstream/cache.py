"""Keeps the lists and resources of one upstream for as long as they are good, each for those to whom they were given.

Rule: an answer is for its authorization context alone, unless operator and server both say that everybody is told the
same. Whoever wants what is being asked for already waits for that answer; it is given to nobody who may not keep it.

What was asked for before a change must not be taken for what is so after it. Therefore versions are part of every key:
a change makes new ones, and nothing from before is found under them.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from gateway.core import caching
from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller
from gateway.errors import ProtocolError, to_reply
from gateway.upstream.client_stream import ClientStream
from gateway.upstream.contexts import Context, Upstream, context_of
from gateway.upstream.shelf import Shelf
from gateway.wire import methods
from gateway.wire.jsonrpc import JsonObject

CACHE_BYTES: Final = 64 * 1024 * 1024
"""What the caches of all upstreams may hold together."""

_EVERYBODY: Final = ("", "")
_MOST_VERSIONS: Final = 10_000


class _Key(NamedTuple):
    context: Context
    method: str
    identity: str
    version: tuple[int, int]

    def for_everybody(self) -> "_Key":
        return self._replace(context=self.context._replace(owner=_EVERYBODY))


@dataclass(eq=False, slots=True)
class _Flight:
    """A question that is on its way.

    Args:
        key: what is asked.
        context: in whose name.
        task: gets the answer.
        waiting: how many want it.
    """

    key: _Key
    context: Context
    task: "asyncio.Task[Outcome]"
    waiting: int = 0


class CachedUpstream:
    """An upstream whose answers are kept.

    Args:
        upstream: gives the answers.
        shelf: where they are kept, together with those of other upstreams.
        may_share: whether the operator allows what the server calls public to be given to everybody.
        now_s: a monotonic clock.
    """

    def __init__(
        self, upstream: Upstream, shelf: Shelf, *, may_share: bool, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = upstream.name
        self.admits = upstream.admits
        self.owner = upstream.owner
        self._upstream = upstream
        self._shelf = shelf
        self._may_share = may_share
        self._now_s = now_s
        self._versions: Counter[str] = Counter()
        self._resource_versions: Counter[str] = Counter()
        self._flights: dict[_Key, _Flight] = {}

    async def serve(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        """Serve one request. Raises GatewayError."""
        if caching.may_be_cached(request):
            return await self._serve_cached(request, caller, client)
        return await self._ask(request, caller, client)

    def note_change(self, message: JsonObject | None) -> None:
        """The server says that something has changed; None: something may have."""
        if message is None:
            self._outdate(*caching.CACHED)
        elif message["method"] == methods.RESOURCE_UPDATED:
            self._outdate_resources(message)
        else:
            self._outdate(*caching.changed_lists(message))

    # --- what is kept ---

    async def _serve_cached(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        key = self._key(request, caller)
        kept = self._kept(key)
        if kept is not None:
            return kept
        if request.progress_token is not None or request.log_level is not None:
            return await self._fetch(key, request, caller, client)  # it wants to hear of it: nobody else is to wait
        flight = self._flights.get(key.for_everybody() if self._may_share else key)
        if flight is None:
            return await self._wait_for(self._take_off(key, request, caller, client))
        outcome = await self._wait_for(flight)
        if "error" in outcome.body and flight.context == key.context:
            return outcome
        return self._kept(key) or await self._ask(request, caller, client)

    def _key(self, request: InboundRequest, caller: Caller) -> _Key:
        of_resource = 0
        if request.method == methods.RESOURCES_READ:
            of_resource = self._resource_versions[request.params["uri"]]
        version = (self._versions[request.method], of_resource)
        return _Key(context_of(self, request, caller), request.method, caching.identity(request), version)

    def _kept(self, key: _Key) -> Outcome | None:
        for one in (key, key.for_everybody()) if self._may_share else (key,):
            kept = self._shelf.get(one)
            if kept is not None and kept.expires_s > self._now_s():
                return caching.with_time_left(kept.result(), kept.expires_s - self._now_s())
        return None

    async def _fetch(self, key: _Key, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        asked_at_s = self._now_s()
        outcome = await self._ask(request, caller, client)
        ttl_s = caching.kept_for_s(outcome)
        if ttl_s > 0:
            is_for_all = self._may_share and caching.is_public(outcome)
            shelf_key = key.for_everybody() if is_for_all else key
            self._shelf.put(shelf_key, outcome.body["result"], now_s=asked_at_s, expires_s=asked_at_s + ttl_s)
        return outcome

    async def _ask(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        try:
            outcome = await self._upstream.serve(request, caller, client)
        except ProtocolError as error:
            self._outdate(*caching.doubted_lists(request, Outcome.of_error(to_reply(error))))
            raise
        self._outdate(*caching.doubted_lists(request, outcome))
        return outcome

    # --- those who wait for the same ---

    def _take_off(self, key: _Key, request: InboundRequest, caller: Caller, client: ClientStream) -> _Flight:
        task = asyncio.get_running_loop().create_task(self._fetch(key, request, caller, client))
        flight = _Flight(key.for_everybody() if self._may_share else key, key.context, task)
        self._flights[flight.key] = flight
        task.add_done_callback(lambda _task: self._land(flight))
        return flight

    async def _wait_for(self, flight: _Flight) -> Outcome:
        """The outcome of a flight, which ends with the last who wants it. Raises what it raises."""
        flight.waiting += 1
        try:
            await asyncio.wait([flight.task])
        finally:
            flight.waiting -= 1
            if flight.waiting == 0 and not flight.task.done():
                self._land(flight)  # at once: nobody must get on any more
                flight.task.cancel()
        return flight.task.result()

    def _land(self, flight: _Flight) -> None:
        if self._flights.get(flight.key) is flight:
            del self._flights[flight.key]

    # --- what is out of date ---

    def _outdate(self, *answers_to: str) -> None:
        self._versions.update(answers_to)

    def _outdate_resources(self, message: JsonObject) -> None:
        uris = caching.updated_resources(message)
        if uris is None or len(self._resource_versions) + len(uris) > _MOST_VERSIONS:
            self._resource_versions.clear()
            self._outdate(methods.RESOURCES_READ)
        else:
            self._resource_versions.update(uris)
