"""The table, as Markdown, so that it can stand in the documentation as it is."""

import platform
from collections.abc import Iterable

import psutil

from tests.bench.cases import FLOORS
from tests.bench.load import Sample
from tests.bench.measure import ColdStart, Row
from tests.bench.rounds import Rounds

HEAD = """\
| case | target | calls/s | p50 ms | p99 ms | CPU s / 1,000 calls | memory MB | calls/s ratio | CPU ratio |
|---|---|--:|--:|--:|--:|--:|--:|--:|"""


def machine() -> str:
    """The machine by its cores only, and the interpreter."""
    return f"{psutil.cpu_count()} cores, Python {platform.python_version()}, one process per proxy"


def ceiling(sample: Sample) -> str:
    """The line about the arrangement itself."""
    return f"upstream alone, json-1k-c32: {sample.rate:,.0f} calls/s"


def rows_of(row: Row) -> str:
    """Two lines of the table; a case with one connection gets the added latency as a third."""
    lines = []
    for name, reading in (("gateway", row.gateway), ("bare", row.bare)):
        cells = [
            row.case.name if name == "gateway" else "",
            name,
            f"{reading.rate:,.0f}",
            f"{reading.p50_ms:.2f}",
            f"{reading.p99_ms:.2f}",
            f"{reading.cpu_s_per_1000:.3f}",
            f"{reading.resident_mb:.0f}",
            f"{row.rate_ratio:.2f}" if name == "gateway" else "",
            f"{row.cpu_ratio:.2f}" if name == "gateway" else "",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    if row.case.connections == 1:
        lines.append(f"| | direct | | {row.direct_p50_ms:.2f} | | | | | |")
    return "\n".join(lines)


def added_latency(rows: Iterable[Row]) -> str:
    """What each proxy adds to the median call on one connection."""
    lines = [
        f"added p50, {row.case.name}: gateway {row.gateway.p50_ms - row.direct_p50_ms:+.2f} ms, "
        f"bare {row.bare.p50_ms - row.direct_p50_ms:+.2f} ms"
        for row in rows
        if row.case.connections == 1
    ]
    return "\n".join(lines)


def cold(start: ColdStart) -> str:
    """The line about a fresh gateway."""
    return (
        f"cold start: ready after {start.ready_s:.2f} s with {start.resident_mb:.0f} MB resident; "
        f"first call (probe and handshake included) {start.first_ms:.1f} ms, second {start.second_ms:.1f} ms"
    )


def rounds(seen: Rounds) -> str:
    """The line about calls that ask."""
    return (
        f"rounds (call, question, answer, result; 32 at a time): {seen.rate:,.0f}/s, p50 {seen.p50_ms:.0f} ms, "
        f"p99 {seen.p99_ms:.0f} ms, {seen.cpu_s_per_1000:.2f} CPU s per 1,000; "
        f"{seen.suspended_kb:.0f} kB for each of {seen.suspended} suspended calls"
    )


def below_floor(rows: Iterable[Row]) -> list[str]:
    """A sentence for each floor that is missed by calls and by processor time: a busy machine spoils one only."""
    return [
        f"{row.case.name}: ratio {row.rate_ratio:.2f} is below the floor of {FLOORS[row.case.name]}"
        for row in rows
        if max(row.rate_ratio, 1 / row.cpu_ratio) < FLOORS.get(row.case.name, 0.0)
    ]
