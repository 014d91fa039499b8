"""Takes the numbers: interleaved rounds of load, cold starts, and the latency of the upstream itself."""

import http.client
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
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


@dataclass(frozen=True, slots=True)
class Side:
    """One of several targets that take turns."""

    target: Target
    load: Load


@dataclass(frozen=True, slots=True)
class Turns:
    """What the sides of a comparison did, round by round."""

    rounds: list[list[Reading]]

    def reading(self, side: int) -> Reading:
        """The medians of one side."""
        return _median_of([one[side] for one in self.rounds])

    def ratio(self, value: Callable[[Reading], float], side: int = 0, to: int = 1) -> float:
        """The median of the ratios of one side to another, round by round."""
        return median(value(one[side]) / value(one[to]) for one in self.rounds)


def alternate(sides: Sequence[Side], rounds: int, warm_up_s: float) -> Turns:
    """Puts the load on each side in turn, in another order each time: a busy machine disturbs all alike."""
    for side in sides:
        put_load(replace(side.load, seconds=warm_up_s))
    return Turns([_round(sides, number) for number in range(rounds)])


def measure_case(case: Case, plan: Plan, gateway: Target, bare: Target, upstream: Target) -> Row:
    """One case, on the gateway and on the bare proxy in turn."""
    sides = [Side(target, _load(case, target, plan.seconds)) for target in (gateway, bare)]
    turns = alternate(sides, plan.rounds, plan.warm_up_s)
    direct = put_load(_load(case, upstream, plan.seconds / 2, legacy=True))
    return Row(
        case,
        turns.reading(0),
        turns.reading(1),
        rate_ratio=turns.ratio(rate),
        cpu_ratio=turns.ratio(cpu),
        direct_p50_ms=direct.p50_ms,
    )


def rate(reading: Reading) -> float:
    """Calls a second."""
    return reading.rate


def cpu(reading: Reading) -> float:
    """Processor time for a call."""
    return reading.cpu_s_per_1000


def p99(reading: Reading) -> float:
    """The latency that one call in a hundred exceeds."""
    return reading.p99_ms


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


def _round(sides: Sequence[Side], number: int) -> list[Reading]:
    shift = number % len(sides)
    order = [*range(shift, len(sides)), *range(shift)]
    seen = {which: read(sides[which]) for which in order}
    return [seen[which] for which in range(len(sides))]


def read(side: Side) -> Reading:
    """Puts a load on a target once, and looks at what it cost there."""
    before = side.target.cpu_s()
    sample = put_load(side.load)
    cpu_s = side.target.cpu_s() - before
    return Reading(
        sample.rate,
        sample.p50_ms,
        sample.p99_ms,
        cpu_s_per_1000=cpu_s / sample.calls * 1000,
        resident_mb=side.target.resident_mb(),
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
