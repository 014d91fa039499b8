"""Builds one upstream from a plan: the connections, both eras, and what chooses between them."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.core.affinity import affinity_to
from gateway.core.era import Era
from gateway.core.inbound_request import InboundRequest
from gateway.core.principal import Caller
from gateway.core.request_state import RequestStateSealer, digest
from gateway.core.sticky import SharingTimes
from gateway.upstream.any_era import AnyEraUpstream
from gateway.upstream.background import Background
from gateway.upstream.call_clock import CallLimits
from gateway.upstream.connect import Place, connect
from gateway.upstream.either_http import EitherHttp
from gateway.upstream.era import EraResolver
from gateway.upstream.legacy import LegacyUpstream
from gateway.upstream.legacy_options import LegacyOptions
from gateway.upstream.legacy_rounds import LegacyRounds
from gateway.upstream.modern import ModernOptions, ModernUpstream
from gateway.upstream.modern_listening import ModernSource
from gateway.upstream.modern_rounds import ModernRounds
from gateway.upstream.pool_limits import PoolLimits, Reuse
from gateway.upstream.replay import ReplayRule
from gateway.upstream.round_directory import RoundDirectory
from gateway.upstream.shared_sessions import SharedSessions, StickySharing
from gateway.upstream.stdio import Command
from gateway.upstream.subscriptions import Key, OnChange, Reports, Source, StreamLimit, Subscriptions
from gateway.upstream.transport import Transport

_LONGEST_WAIT_S: Final = 10.0
"""How long a call waits for room, although it would wait longer for a process to start."""


@dataclass(frozen=True, slots=True)
class UpstreamPlan:
    """What the operator wants of one upstream; durations in seconds, `era` None to find out."""

    name: str
    place: Place
    era: Era | None
    timeout_s: float
    max_duration_s: float
    passes_authorization: bool
    passes_client_info: bool
    reuse: Reuse
    gather_s: float
    gather_max_s: float
    question_names: Mapping[str, Sequence[str]]
    ttl_ms: int
    cache_scope: str
    watch_s: float | None
    resumes: bool
    replay: ReplayRule | None
    affinity: str | None


def build_upstream(
    plan: UpstreamPlan,
    directory: RoundDirectory,
    sealer: RequestStateSealer,
    limit: StreamLimit,
    on_change: OnChange,
    sticky: SharedSessions | None = None,
) -> AnyEraUpstream:
    """Build an upstream; nothing is connected yet.

    Args:
        plan: what the operator wants.
        directory: where suspended rounds are kept.
        sealer: seals request states.
        limit: how many listeners the process may have.
        on_change: told of every change of a list or resource that the gateway hears of.
        sticky: where replicas share sticky sessions; None: there is one process.
    """
    place = plan.place
    http = connect(plan.name, place)
    background = Background()
    resolver = EraResolver(
        http,
        configured="legacy" if place.transport == "sse" else plan.era,
        timeout_s=place.connect_timeout_s,
        is_process=place.is_process,
    )

    def credentials(caller: Caller) -> Mapping[str, str]:
        passes = plan.passes_authorization and caller.authorization
        return {"Authorization": caller.authorization} if passes and caller.authorization else {}

    async def credentials_soon(caller: Caller) -> Mapping[str, str]:
        return credentials(caller)

    def owner(caller: Caller) -> tuple[str, str]:
        passed = credentials(caller).get("Authorization")
        return caller.principal.id, digest(passed) if passed else ""

    def whose(caller: Caller) -> tuple[str, str]:
        principal, passed = owner(caller)
        named = affinity_to(plan.affinity, caller)
        return principal, f"{passed} {digest(named)}" if named else passed

    def key_of(request: InboundRequest, caller: Caller) -> Key:
        return owner(caller), legacy.kind_of_listener(request, caller) if resolver.known != "modern" else ""

    def open_source(request: InboundRequest, caller: Caller, reports: Reports) -> Source:
        if resolver.known != "modern":
            return legacy.source(request, caller, reports)
        return ModernSource(plan.name, lambda request, stream: modern.serve(request, caller, stream), reports)

    subscriptions = Subscriptions(key_of, open_source, limit, background, on_change)
    legacy = LegacyUpstream(
        http,
        _legacy_options(plan),
        LegacyRounds(
            plan.name,
            directory,
            sealer,
            passes_authorization=plan.passes_authorization,
            resumes=plan.resumes,
            is_tied=_tied_sessions(place, http),
        ),
        background,
        subscriptions.publish,
        time.monotonic,
        None if sticky is None else _sharing(plan, http, sticky, background),
    )
    rounds = ModernRounds(plan.name, sealer, directory.ttl_s)
    modern = ModernUpstream(
        http,
        credentials=credentials_soon,
        seal=rounds.seal,
        unseal=rounds.unseal,
        doubt=resolver.doubt,
        options=_modern_options(plan),
    )
    return AnyEraUpstream(
        http,
        legacy,
        modern,
        resolver,
        background,
        credentials,
        whose,
        subscriptions,
        passes_authorization=plan.passes_authorization,
    )


def _sharing(
    plan: UpstreamPlan, http: Transport, sticky: SharedSessions, background: Background
) -> StickySharing | None:
    """How sticky sessions are shared; None where a session is tied to this process."""
    place = plan.place
    if isinstance(place.target, Command) or place.transport == "sse":
        return None
    times = SharingTimes(place.idle_s, place.connect_timeout_s)
    is_tied = _tied_sessions(place, http)
    return StickySharing(plan.name, place.target, sticky, times, is_tied, background, time.monotonic)


def _tied_sessions(place: Place, http: Transport) -> Callable[[str], bool]:
    """Tells whether a session ends with the process that opened it."""
    if isinstance(http, EitherHttp):
        return http.is_tied
    always = place.is_process or place.transport == "sse"
    return lambda _session_id: always


def _legacy_options(plan: UpstreamPlan) -> LegacyOptions:
    place = plan.place
    return LegacyOptions(
        calls=CallLimits(plan.timeout_s, plan.max_duration_s, plan.gather_s, plan.gather_max_s),
        pool=PoolLimits(
            plan.reuse,
            place.max_sessions,
            place.idle_s,
            min(place.connect_timeout_s, _LONGEST_WAIT_S),
            is_scarce=place.is_process,
        ),
        connect_timeout_s=place.connect_timeout_s,
        passes_authorization=plan.passes_authorization,
        passes_client_info=plan.passes_client_info,
        question_names=plan.question_names,
        ttl_ms=plan.ttl_ms,
        cache_scope=plan.cache_scope,
        watch_s=plan.watch_s,
        resumes=plan.resumes,
        replay=plan.replay,
        affinity=plan.affinity,
    )


def _modern_options(plan: UpstreamPlan) -> ModernOptions:
    return ModernOptions(
        timeout_s=plan.timeout_s,
        max_duration_s=plan.max_duration_s,
        passes_authorization=plan.passes_authorization,
        ttl_ms=plan.ttl_ms,
        cache_scope=plan.cache_scope,
    )
