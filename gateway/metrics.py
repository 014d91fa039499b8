"""What `/metrics` tells, in the words of Prometheus: read from what the gateway holds, at the moment of asking.

Nothing is kept for it but a few counts, so that a request pays next to nothing. No label takes a value from a client or
a server: upstreams have the operator's names, methods are those of the protocol.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from gateway import __version__
from gateway.core.counts import RoundCounts
from gateway.server.tally import BOUNDS_MS, Tally

_PREFIX: Final = "era_gateway_"
_ROUND_EVENTS: Final = {
    "suspended": "questions that were put to a client",
    "resumed": "retries that were taken up where their round is kept",
    "expired": "rounds that nobody came back for",
    "relayed": "retries that another replica was asked to serve",
    "taken_over": "rounds whose replica was dead",
    "recovered": "calls of those that were gone on with on the server's own session",
    "replayed": "calls of those that were made again",
    "lost": "calls that nobody could go on with",
}


class UpstreamView(Protocol):
    """An upstream, as far as it shows here."""

    requests: int

    @property
    def failures(self) -> Mapping[str, int]:
        """Those that it failed, by reason."""

    @property
    def session_count(self) -> int:
        """Open sessions."""


class StoreView(Protocol):
    """The shared store, as far as it shows here."""

    is_up: bool

    @property
    def traffic(self) -> "TrafficView":
        """Counts."""


class TrafficView(Protocol):
    """What the store was asked."""

    commands: int
    failures: int
    bytes_sent: int


@dataclass(frozen=True, slots=True)
class View:
    """What is looked at.

    Args:
        is_ready: whether requests are taken.
        tallies: the requests, by endpoint: the name of an upstream, or `*` for all of them together.
        upstreams: by name.
        processes: how many run, by the name of the upstream that has a command.
        suspended: rounds that wait here.
        counts: what became of rounds.
        listeners: streams of changes.
        store: the shared store, if there is one.
    """

    is_ready: bool
    tallies: Mapping[str, Tally]
    upstreams: Mapping[str, UpstreamView]
    processes: Mapping[str, int]
    suspended: int
    counts: RoundCounts
    listeners: int
    store: StoreView | None


class _Collector(Collector):
    def __init__(self, view: View) -> None:
        self._view = view

    def collect(self) -> Iterator[Metric]:
        """Every metric, as it stands."""
        view = self._view
        yield InfoMetricFamily(f"{_PREFIX}build", "the release", {"version": __version__})
        yield GaugeMetricFamily(f"{_PREFIX}ready", "whether requests are taken", int(view.is_ready))
        yield from _requests(view.tallies)
        yield from _upstreams(view.upstreams)
        yield _by_upstream(GaugeMetricFamily, "processes", "processes of stdio servers", view.processes)
        yield GaugeMetricFamily(f"{_PREFIX}rounds_suspended", "rounds that wait for their client", view.suspended)
        rounds = CounterMetricFamily(f"{_PREFIX}rounds", "; ".join(_describe()), labels=["event"])
        for event in _ROUND_EVENTS:
            rounds.add_metric([event], getattr(view.counts, event))
        yield rounds
        yield GaugeMetricFamily(f"{_PREFIX}listeners", "open streams of changes", view.listeners)
        if view.store is not None:
            yield from _store(view.store)


def _describe() -> Iterator[str]:
    return (f"{event}: {what}" for event, what in _ROUND_EVENTS.items())


def _requests(tallies: Mapping[str, Tally]) -> Iterator[Metric]:
    requests = CounterMetricFamily(
        f"{_PREFIX}requests", "requests that have ended", labels=["endpoint", "method", "status", "outcome"]
    )
    durations = HistogramMetricFamily(f"{_PREFIX}request_seconds", "how long requests took", labels=["endpoint"])
    bounds = [*(str(bound / 1000) for bound in BOUNDS_MS), "+Inf"]
    for endpoint, tally in tallies.items():
        for (method, status, outcome), count in sorted(tally.ends.items()):
            requests.add_metric([endpoint, method, str(status), outcome], count)
        buckets = list(zip(bounds, accumulate(tally.durations), strict=True))
        durations.add_metric([endpoint], buckets, tally.total_ms / 1000)
    yield requests
    yield durations


def _upstreams(upstreams: Mapping[str, UpstreamView]) -> Iterator[Metric]:
    requests = {name: upstream.requests for name, upstream in upstreams.items()}
    sessions = {name: upstream.session_count for name, upstream in upstreams.items()}
    failures = CounterMetricFamily(
        f"{_PREFIX}upstream_failures", "requests that an upstream failed", labels=["upstream", "reason"]
    )
    for name, upstream in upstreams.items():
        for reason, count in sorted(upstream.failures.items()):
            failures.add_metric([name, reason], count)
    yield _by_upstream(CounterMetricFamily, "upstream_requests", "requests that an upstream was to serve", requests)
    yield failures
    yield _by_upstream(GaugeMetricFamily, "sessions", "open sessions with legacy servers", sessions)


def _by_upstream(
    family: type[CounterMetricFamily] | type[GaugeMetricFamily], name: str, what: str, values: Mapping[str, int]
) -> Metric:
    metric = family(f"{_PREFIX}{name}", what, labels=["upstream"])
    for upstream, value in values.items():
        metric.add_metric([upstream], value)
    return metric


def _store(store: StoreView) -> Iterator[Metric]:
    yield GaugeMetricFamily(f"{_PREFIX}store_up", "whether the shared store can be reached", int(store.is_up))
    traffic = store.traffic
    yield CounterMetricFamily(f"{_PREFIX}store_commands", "commands sent to the shared store", traffic.commands)
    yield CounterMetricFamily(f"{_PREFIX}store_failures", "commands without an answer", traffic.failures)
    yield CounterMetricFamily(f"{_PREFIX}store_sent_bytes", "bytes of these commands", traffic.bytes_sent)


def exposition(view: View) -> bytes:
    """Every metric in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(view))
    ProcessCollector(registry=registry)
    return generate_latest(registry)
