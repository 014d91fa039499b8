"""Takes the numbers: interleaved rounds of load, cold starts, and the latency of the upstream itself."""

import http.client
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from tests.bench.cases import Case, Plan
from tests.bench.load import Load, Sample
from tests.bench.messages import modern_call
from tests.bench.processes import Target, put_load, start_gateway


@dataclass(frozen=True, slots=True)
class Reading:
    """One target's median over the rounds of one case."""

    rate: float
    p50_ms: float
    p99_ms: float
    cpu_s_per_1000: float
    resident_mb: float


@dataclass(frozen=True, slots=True)
class Row:
    """One case: both targets, the medians of their ratios round by round, and p50 without any proxy."""

    case: Case
    gateway: Reading
    bare: Reading
    rate_ratio: float
    cpu_ratio: float
    direct_p50_ms: float


@dataclass(frozen=True, slots=True)
class ColdStart:
    """A fresh gateway: from the command to ready, and its first two calls."""

    ready_s: float
    first_ms: float
    second_ms: float
    resident_mb: float


def measure_case(case: Case, plan: Plan, gateway: Target, bare: Target, upstream: Target) -> Row:
    """Puts the load on both targets in turn, round by round, so that a busy machine disturbs both alike."""
    for target in (gateway, bare):
        put_load(_load(case, target, plan.warm_up_s))
    rounds = [_round(case, plan, gateway, bare, number) for number in range(plan.rounds)]
    direct = put_load(_load(case, upstream, plan.seconds / 2, legacy=True))
    ours, theirs = ([one[side] for one in rounds] for side in (0, 1))
    return Row(
        case,
        _median_of(ours),
        _median_of(theirs),
        rate_ratio=median(a.rate / b.rate for a, b in rounds),
        cpu_ratio=median(a.cpu_s_per_1000 / b.cpu_s_per_1000 for a, b in rounds),
        direct_p50_ms=direct.p50_ms,
    )


def upstream_alone(upstream: Target, seconds: float) -> Sample:
    """What the upstream and the load generator manage by themselves: the ceiling of the whole arrangement."""
    return put_load(Load(upstream.port, "json_1k", 32, seconds, legacy=True))


def cold_starts(count: int, upstream: Target, folder: Path) -> ColdStart:
    """Starts fresh gateways one after the other, and calls each twice; the medians."""
    seen = [_cold_start(upstream, folder) for _ in range(count)]
    return ColdStart(
        ready_s=median(one.ready_s for one in seen),
        first_ms=median(one.first_ms for one in seen),
        second_ms=median(one.second_ms for one in seen),
        resident_mb=median(one.resident_mb for one in seen),
    )


def _cold_start(upstream: Target, folder: Path) -> ColdStart:
    started = perf_counter()
    gateway = start_gateway(upstream, folder)
    ready_s = perf_counter() - started
    resident_mb = gateway.resident_mb()
    try:
        first_ms, second_ms = _timed_calls(gateway.port)
    finally:
        gateway.stop()
    return ColdStart(ready_s, first_ms, second_ms, resident_mb)


def _timed_calls(port: int) -> Iterator[float]:
    """Milliseconds of two calls, one after the other, on one connection."""
    head, _, body = modern_call("json_1k", 1, port, asking=False).partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for _ in range(2):
        started = perf_counter()
        connection.request("POST", "/mcp", body, headers)
        reply = connection.getresponse()
        if b'"result"' not in reply.read():
            raise SystemExit(f"bench: the first calls failed with HTTP {reply.status}")
        yield (perf_counter() - started) * 1000
    connection.close()


def _round(case: Case, plan: Plan, gateway: Target, bare: Target, number: int) -> tuple[Reading, Reading]:
    if number % 2:
        theirs = _read(case, bare, plan.seconds)
        return _read(case, gateway, plan.seconds), theirs
    return _read(case, gateway, plan.seconds), _read(case, bare, plan.seconds)


def _read(case: Case, target: Target, seconds: float) -> Reading:
    before = target.cpu_s()
    sample = put_load(_load(case, target, seconds))
    cpu_s = target.cpu_s() - before
    return Reading(
        sample.rate,
        sample.p50_ms,
        sample.p99_ms,
        cpu_s_per_1000=cpu_s / sample.calls * 1000,
        resident_mb=target.resident_mb(),
    )


def _load(case: Case, target: Target, seconds: float, *, legacy: bool = False) -> Load:
    return Load(target.port, case.tool, case.connections, seconds, asking=case.asking, legacy=legacy)


def _median_of(readings: list[Reading]) -> Reading:
    return Reading(
        rate=median(one.rate for one in readings),
        p50_ms=median(one.p50_ms for one in readings),
        p99_ms=median(one.p99_ms for one in readings),
        cpu_s_per_1000=median(one.cpu_s_per_1000 for one in readings),
        resident_mb=median(one.resident_mb for one in readings),
    )
