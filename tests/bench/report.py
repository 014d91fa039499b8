"""The table, as Markdown, so that it can stand in the documentation as it is."""

import platform
from collections.abc import Iterable

import psutil

from tests.bench.cases import CEILINGS
from tests.bench.load import Sample
from tests.bench.measure import ColdStart, Row, cpu, p99, rate
from tests.bench.merging import Merging
from tests.bench.rounds import Rounds
from tests.bench.scaling import Scaling
from tests.bench.waiting import Waiting

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
    lines = ["| case | gateway adds to p50 | bare adds | ratio |", "|---|--:|--:|--:|"]
    for row in rows:
        if row.case.connections == 1:
            ours, theirs = (reading.p50_ms - row.direct_p50_ms for reading in (row.gateway, row.bare))
            lines.append(f"| {row.case.name} | {ours:.2f} ms | {theirs:.2f} ms | {ours / theirs:.2f} |")
    return "\n".join(lines) if len(lines) > 2 else ""


def cold(start: ColdStart) -> str:
    """About a fresh gateway."""
    return (
        f"Ready after {start.ready_s:.2f} s with {start.resident_mb:.0f} MB resident; the first call, which includes "
        f"the probe and the handshake, takes {start.first_ms:.1f} ms, the second {start.second_ms:.1f} ms."
    )


def rounds(seen: Rounds) -> str:
    """About calls that ask."""
    return (
        f"{seen.rate:,.0f} dialogues a second, p50 {seen.p50_ms:.0f} ms, p99 {seen.p99_ms:.0f} ms, "
        f"{seen.cpu_s_per_1000:.2f} s of processor time per 1,000."
    )


WAITING_HEAD = """\
| waits | kB each | descriptors each | calls/s with / without | ratio | CPU ratio | p99 ms with / without | p99 ratio |
|---|--:|--:|--:|--:|--:|--:|--:|"""


def waiting(seen: Waiting) -> str:
    """A line about what waits, and the calls beside it."""
    ours, free = seen.turns.reading(0), seen.turns.reading(1)
    kinds = ((seen.suspended, "suspended calls"), (seen.streams, "open streams"))
    cells = [
        " and ".join(f"{count:,} {kind}" for count, kind in kinds if count),
        f"{seen.kb_each:.0f}",
        f"{seen.descriptors_each:.1f}",
        f"{ours.rate:,.0f} / {free.rate:,.0f}",
        f"{seen.turns.ratio(rate):.2f}",
        f"{seen.turns.ratio(cpu):.2f}",
        f"{ours.p99_ms:.1f} / {free.p99_ms:.1f}",
        f"{seen.turns.ratio(p99):.2f}",
    ]
    return "| " + " | ".join(cells) + " |"


def scaling(seen: Iterable[Scaling]) -> str:
    """One process against two."""
    head = ["| target | calls/s of one process | of two | ratio |", "|---|--:|--:|--:|"]
    return "\n".join([*head, *(f"| {one.name} | {one.one:,.0f} | {one.two:,.0f} | {one.ratio:.2f} |" for one in seen)])


def merging(seen: Iterable[Merging]) -> str:
    """Ten upstreams behind one path against one."""
    head = ["| method | calls/s merged | calls/s of one | ratio | CPU ratio |", "|---|--:|--:|--:|--:|"]
    rows = [
        f"| {one.method} | {one.turns.reading(0).rate:,.0f} | {one.turns.reading(1).rate:,.0f} "
        f"| {one.turns.ratio(rate):.2f} | {one.turns.ratio(cpu):.2f} |"
        for one in seen
    ]
    return "\n".join([*head, *rows])


def above_ceiling(rows: Iterable[Row]) -> list[str]:
    """A sentence for each case whose calls cost too much."""
    return [
        f"{row.case.name}: a call costs {row.cpu_ratio:.2f} of the bare proxy's, more than {CEILINGS[row.case.name]}"
        for row in rows
        if row.cpu_ratio > CEILINGS.get(row.case.name, row.cpu_ratio)
    ]
