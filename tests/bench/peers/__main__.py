"""Runs the comparison: `python -m tests.bench.peers [--write] [--rounds N] [--seconds S]`."""

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.bench import page, plot
from tests.bench.load import Load
from tests.bench.measure import Side, Turns, alternate, cpu, rate
from tests.bench.peers.handshake import Opened
from tests.bench.peers.starting import PEERS, Peer, start_peer
from tests.bench.processes import NotReadyError, Target, start_bare, start_gateway, start_upstream
from tests.bench.report import machine

_CASES: Final = (("json_1k", 1), ("json_1k", 32), ("sse_1k", 32))
_DRAWN: Final = ("json_1k", 32)
_HEAD: Final = """\
| case | target | calls/s | p50 ms | p99 ms | CPU s / 1,000 calls | calls per core-second | the gateway's multiple |
|---|---|--:|--:|--:|--:|--:|--:|"""


def main() -> int:
    """Measures what can be started, and says what cannot."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.peers", description="The gateway beside its peers.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--write", action="store_true", help="put the results into docs/performance.md")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        text = _compare(stack, arguments.rounds, arguments.seconds, arguments.write)
    if arguments.write:
        page.put("peers", text)
    return 0


def _compare(stack: ExitStack, rounds: int, seconds: float, writes: bool) -> str:
    """Measures the cases one after the other; the Markdown of the results."""
    folder = Path(stack.enter_context(TemporaryDirectory(prefix="era-gateway-peers-")))
    upstream = start_upstream()
    stack.callback(upstream.stop)
    ours = [start_gateway(upstream, folder), start_bare(upstream)]
    for target in ours:
        stack.callback(target.stop)
    peers, absent = _start_peers(stack, upstream, folder)
    lines = [f"{machine()}; each target in turn, {rounds} rounds of {seconds:g} s.", "", _HEAD]
    print("\n".join(lines), flush=True)
    for tool, connections in _CASES:
        sides = [Side(target, Load(target.port, tool, connections, seconds)) for target in ours]
        sides += [
            Side(target, peer.load(opened, target.port, tool, connections, seconds)) for peer, target, opened in peers
        ]
        turns = alternate(sides, rounds, warm_up_s=1.0)
        rows = _rows(f"{tool.replace('_', '-')}-c{connections}", sides, turns)
        print("\n".join(rows), flush=True)
        lines += rows
        if writes and (tool, connections) == _DRAWN:
            _draw(sides, turns)
    print("\n".join(absent))
    return "\n".join([*lines, *(["", *absent] if absent else [])])


def _start_peers(
    stack: ExitStack, upstream: Target, folder: Path
) -> tuple[list[tuple[Peer, Target, Opened]], list[str]]:
    """Those that can be started, and a line for each that cannot."""
    started, absent = [], []
    for peer in PEERS:
        try:
            target, opened = start_peer(peer, upstream, folder)
        except NotReadyError as error:
            absent.append(f"- Not measured: {error}")
            continue
        stack.callback(target.stop)
        started.append((peer, target, opened))
    return started, absent


def _draw(sides: list[Side], turns: Turns) -> None:
    title = "Calls for a second of processor time, json-1k-c32 (logarithmic)"
    bars = {side.target.name: 1000 / turns.reading(which).cpu_s_per_1000 for which, side in enumerate(sides)}
    page.put_figure("performance-peers.svg", plot.bars(title, bars, logarithmic=True))


def _rows(case: str, sides: list[Side], turns: Turns) -> list[str]:
    rows = []
    for which, side in enumerate(sides):
        reading = turns.reading(which)
        multiple = (
            f"{1 / turns.ratio(cpu, 0, which):.1f} ({turns.ratio(rate, 0, which):.1f} by calls/s)" if which else ""
        )
        cells = [
            case if not which else "",
            side.target.name,
            f"{reading.rate:,.0f}",
            f"{reading.p50_ms:,.2f}",
            f"{reading.p99_ms:,.2f}",
            f"{reading.cpu_s_per_1000:,.3f}",
            f"{1000 / reading.cpu_s_per_1000:,.0f}",
            multiple,
        ]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


if __name__ == "__main__":
    sys.exit(main())
