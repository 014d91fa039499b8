"""What waits at the gateway: suspended calls and open streams. Their memory, and the calls beside them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from tests.bench.cases import Plan
from tests.bench.hold import Held
from tests.bench.load import Load
from tests.bench.measure import Side, Turns, alternate, read
from tests.bench.processes import start, start_gateway, start_upstream

_ROOM = "rounds: {max: 20000, ttl: 30m}\n"
_TOOL = "json_1k"


@dataclass(frozen=True, slots=True)
class Waiting:
    """What was held, what each of it cost, and the calls with it (side 0) and without (side 1)."""

    suspended: int
    streams: int
    kb_each: float
    descriptors_each: float
    turns: Turns


def measure_waiting(plan: Plan, folder: Path, *, suspended: int = 0, streams: int = 0, more: str = "") -> Waiting:
    """Measures two gateways in turn: one at which something waits, and one at which nothing does.

    Args:
        plan: how long.
        folder: for their files.
        suspended: calls that wait.
        streams: that are open.
        more: further lines of their configuration.
    """
    with ExitStack() as stack:
        upstream = start_upstream(has_get_streams=True)
        stack.callback(upstream.stop)
        loaded, free = (start_gateway(upstream, folder, more=_ROOM + more) for _ in range(2))
        stack.callback(loaded.stop)
        stack.callback(free.stop)
        sides = [Side(target, Load(target.port, _TOOL, 32, plan.seconds)) for target in (loaded, free)]
        for side in sides:
            read(side)
        stack.enter_context(_held(Held(loaded.port, suspended=min(suspended, 64), streams=min(streams, 64))))
        before_kb, before = loaded.resident_mb() * 1000, loaded.descriptors()
        stack.enter_context(_held(Held(loaded.port, suspended, streams)))
        grown_kb, more = loaded.resident_mb() * 1000 - before_kb, loaded.descriptors() - before
        turns = alternate(sides, plan.rounds, plan.warm_up_s)
    count = suspended + streams
    return Waiting(suspended, streams, grown_kb / count, more / count, turns)


@contextmanager
def _held(held: Held) -> Iterator[None]:
    """Holds calls and streams in a process of its own while the block runs."""
    process = start(
        [sys.executable, "-m", "tests.bench.hold", orjson.dumps(asdict(held)).decode()], stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdin is not None
    if process.stdout.readline().strip() != "held":
        raise SystemExit(f"bench: could not hold {held}")
    try:
        yield
    finally:
        process.stdin.close()
        process.wait()
