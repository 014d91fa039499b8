"""Puts the rooms together: from settings to an application that can be served.

The only place, beside the command line, that knows the configuration; it introduces the shells to each other.
"""

import asyncio
import contextlib
import gc
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import structlog
from starlette.applications import Starlette

from gateway import telemetry
from gateway.config import model
from gateway.core.cursors import Cursors
from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller
from gateway.core.request_state import RequestStateSealer
from gateway.core.tokens import Sealer
from gateway.metrics import View, exposition
from gateway.plans import (
    authenticator,
    front_door,
    merge_options,
    offer_of,
    round_limits,
    shared_store,
    state_keys,
    upstream_plan,
)
from gateway.rounds.memory import MemoryRounds
from gateway.server.drain import DrainTimes, serve_out
from gateway.server.endpoint import ClientStream, Endpoint, Upstream
from gateway.server.gate import Gate, draining
from gateway.server.graceful import Departure
from gateway.server.replies import ReplyTimes
from gateway.server.site import Site
from gateway.upstream.any_era import AnyEraUpstream
from gateway.upstream.background import Background
from gateway.upstream.build import build_upstream
from gateway.upstream.cache import CACHE_BYTES, CachedUpstream
from gateway.upstream.contexts import Upstream as FrontUpstream
from gateway.upstream.merged import MergedUpstream
from gateway.upstream.offering import OfferedUpstream
from gateway.upstream.shelf import Shelf
from gateway.upstream.subscriptions import StreamLimit
from gateway.wire.jsonrpc import JsonObject

if TYPE_CHECKING:  # their package is an extra of the distribution
    from gateway.rounds.shared import SharedRounds
    from gateway.store.sticky import StickyStore

log = structlog.get_logger()

_SWEEP_S = 5.0
_FAREWELL_S = 1.0
"""What remains for ending sessions when calls took all of `server.drain`, or after a second signal."""


class Gateway:
    """Everything that one process serves.

    Args:
        settings: what the operator decided.
    """

    def __init__(self, settings: model.Settings) -> None:
        self._settings = settings
        self._gate = Gate()
        self._background = Background()
        self._limit = StreamLimit(settings.server.max_listeners)
        self._token_sealer = Sealer(state_keys(settings.state))
        self.store = shared_store(settings.state)
        self.rounds = self._open_rounds(settings.rounds)
        self._sealer = RequestStateSealer(self._token_sealer, time.time)
        self._merged: MergedUpstream | None = None
        self._shelf = Shelf(CACHE_BYTES)
        self._caches: dict[str, CachedUpstream] = {}
        self.upstreams = {name: self._build(name, upstream) for name, upstream in settings.upstreams.items()}
        self.fronts = {name: self._in_front_of(each, settings.upstreams[name]) for name, each in self.upstreams.items()}
        self._is_serving = False
        self._departure: Departure | None = None
        self._drained_by_s: float | None = None
        paths = self._paths()
        self._served = self._endpoints(paths)
        self.site = Site(
            self._served,
            self.readiness,
            self._lifespan,
            self._gate,
            hint="the endpoints are " + ", ".join(paths),
        )

    def _open_rounds(self, rounds: model.Rounds) -> "MemoryRounds | SharedRounds":
        limits = round_limits(rounds)
        if self.store is None:
            return MemoryRounds(limits, self._background.run)
        from gateway.rounds.shared import SharedRounds

        return SharedRounds(limits, self.store, self._token_sealer, self._serve_relayed, self._background.run)

    async def _serve_relayed(
        self, upstream: str, request: InboundRequest, caller: Caller, client: ClientStream
    ) -> Outcome:
        """Serve a retry that another replica has taken in."""
        return await self.upstreams[upstream].serve(request, caller, client)

    def _build(self, name: str, settings: model.Upstream) -> AnyEraUpstream:
        plan = upstream_plan(name, settings, self._settings)
        told = partial(self._note_change, name)
        return build_upstream(plan, self.rounds, self._sealer, self._limit, told, self._sticky_store(name))

    def _sticky_store(self, name: str) -> "StickyStore | None":
        """Where replicas share the sticky sessions with an upstream."""
        if self.store is None:
            return None
        from gateway.store.sticky import StickyStore

        return StickyStore(self.store, self._token_sealer, name)

    def _note_change(self, name: str, change: JsonObject | None) -> None:
        """A server says that something has changed; None: it may have said so unheard."""
        if (cache := self._caches.get(name)) is not None:
            cache.note_change(change)
        if self._merged is not None:
            self._merged.note_change(name, change)

    def _in_front_of(self, upstream: AnyEraUpstream, settings: model.Upstream) -> FrontUpstream:
        """What clients see of an upstream; nothing stands in between where nothing is configured."""
        front: FrontUpstream = upstream
        cache, offer = self._settings.cache_of(settings), offer_of(settings)
        if cache.ttl_s > 0:
            may_share = cache.scope == "public" and settings.auth.type != "passthrough"
            front = self._caches[upstream.name] = CachedUpstream(upstream, self._shelf, may_share=may_share)
        return OfferedUpstream(front, offer) if offer else front

    def _paths(self) -> dict[str, Upstream]:
        """The upstream behind each path: behind the plain one all of them, unless there is just one."""
        path, fronts = self._settings.server.path, self.fronts
        if self._settings.is_merged:
            self._merged = self._merge(list(fronts.values()))
        front = self._merged or next(iter(fronts.values()))
        return {path: front, **{f"{path}/{name}": upstream for name, upstream in fronts.items()}}

    def _merge(self, fronts: Sequence[FrontUpstream]) -> MergedUpstream:
        cursors = Cursors(self._token_sealer, self._settings.rounds.ttl_s, time.time)
        return MergedUpstream(fronts, merge_options(self._settings), cursors)

    def _endpoints(self, paths: Mapping[str, Upstream]) -> dict[str, Endpoint]:
        server = self._settings.server
        door = front_door(server)
        who = authenticator(self._settings.auth)
        times = ReplyTimes(server.stream_after_s, server.keepalive_s)
        return {
            path: Endpoint(upstream, door, who, times, self._gate, self._affinity(path))
            for path, upstream in paths.items()
        }

    def _affinity(self, path: str) -> Sequence[bytes]:
        """The headers by which sessions of the upstreams behind a path are chosen."""
        upstreams = self._settings.upstreams
        own = upstreams.get(path.removeprefix(f"{self._settings.server.path}/"))
        headers = {each.sessions.affinity for each in ([own] if own is not None else upstreams.values())}
        return [header.lower().encode("ascii") for header in sorted(filter(None, headers))]

    def readiness(self) -> Mapping[str, object]:
        """What `/readyz` tells."""
        eras = {name: upstream.era or "unknown" for name, upstream in self.upstreams.items()}
        store = "none" if self.store is None else "up" if self.store.is_up else "down"
        return {
            "ready": self._is_serving,
            "draining": self._gate.is_leaving,
            "store": store,
            "upstreams": eras,
            "suspended": len(self.rounds),
        }

    def exposition(self) -> bytes:
        """What `/metrics` tells."""
        path = self._settings.server.path
        own = {name: self._served[f"{path}/{name}"].tally for name in self.upstreams}
        return exposition(
            View(
                is_ready=self._is_serving,
                tallies={"*": self._served[path].tally, **own},
                upstreams=self.upstreams,
                processes=self._processes(),
                suspended=len(self.rounds),
                counts=self.rounds.counts,
                listeners=self._limit.count,
                store=self.store,
            )
        )

    def _processes(self) -> Mapping[str, int]:
        """How many processes run of each upstream that has a command."""
        counts = {
            name: self.upstreams[name].pipe_count for name, own in self._settings.upstreams.items() if own.command
        }
        return {name: count for name, count in counts.items() if count is not None}

    @contextlib.asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(telemetry.log_loop_failure)
        sweeper = loop.create_task(self._sweep())
        self.rounds.start()
        self._is_serving = True
        _spare_the_collector()
        try:
            yield
        finally:
            self._is_serving = False
            sweeper.cancel()
            await self.close()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            for upstream in self.upstreams.values():
                upstream.sweep()

    async def drain(self, departure: Departure) -> None:
        """Serve what is open, and the rounds that are kept here; then hand over what another replica can go on with."""
        self._departure = departure
        self.leave()
        times = DrainTimes(self._settings.server.lame_duck_s, self._settings.server.drain_s)
        log.info("draining", in_flight=departure.in_flight(), suspended=len(self.rounds))
        await serve_out(
            departure,
            self._gate,
            times,
            at_work=lambda: departure.in_flight() + self.rounds.relayed,
            is_needed=lambda: len(self.rounds) > 0,
            on_closed=self.end_streams,
        )
        self._gate.is_shut = True
        left = len(self.rounds)
        await departure.until_over(self.rounds.hand_over(draining()), _FAREWELL_S)
        ended = len(self.rounds)
        log.info("drained", in_flight=departure.in_flight(), handed_over=left - ended, ended=ended)

    def leave(self) -> None:
        """Say that no more requests are wanted; from now on `server.drain` runs."""
        self._is_serving = False
        self._drained_by_s = time.monotonic() + self._settings.server.drain_s

    def end_streams(self) -> None:
        """End the listeners' streams, which would never end by themselves."""
        for upstream in self.upstreams.values():
            upstream.end_streams()

    async def close(self) -> None:
        """End every round and every session, in what is left of `server.drain`; at once after a second signal."""
        if self._departure is None:
            await self._close()
        else:
            await self._departure.until_over(self._close(), _FAREWELL_S)

    async def _close(self) -> None:
        await self.rounds.close()
        if self._merged is not None:
            await self._merged.close()
        await self._background.close(self._grace_s())
        grace_s = self._grace_s()
        await asyncio.gather(*(upstream.close(grace_s) for upstream in self.upstreams.values()))

    def _grace_s(self) -> float:
        if self._drained_by_s is None:
            self._drained_by_s = time.monotonic() + self._settings.server.drain_s
        return max(_FAREWELL_S, self._drained_by_s - time.monotonic())


def _spare_the_collector() -> None:
    """What lives as long as the process is never looked at again, and young objects are looked at less often.

    A request leaves few cycles behind; with the default thresholds the collector runs several times in each.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
