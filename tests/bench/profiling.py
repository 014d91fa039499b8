"""Where the gateway spends its time: the same load, under py-spy if there is one, else under cProfile."""

import pstats
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.bench.cases import Case
from tests.bench.load import Load
from tests.bench.processes import Target, put_load, start_gateway

_LINES = 45


def profile(case: Case, seconds: float, upstream: Target, folder: Path) -> None:
    """Runs one case against a profiled gateway, and prints the functions that cost most."""
    spy = shutil.which("py-spy", path=str(Path(sys.executable).parent)) or shutil.which("py-spy")
    output = folder / "profile"
    if spy:
        recorder = [spy, "record", "--rate", "500", "--format", "raw", "--function", "--output", str(output)]
        gateway = start_gateway(upstream, folder, [*recorder, "--", sys.executable])
    else:
        gateway = start_gateway(upstream, folder, [sys.executable, "-m", "cProfile", "-o", str(output)])
    put_load(Load(gateway.port, case.tool, case.connections, seconds / 4, asking=case.asking))
    put_load(Load(gateway.port, case.tool, case.connections, seconds, asking=case.asking))
    gateway.process.send_signal(signal.SIGINT)
    try:
        gateway.process.wait(20)
    except subprocess.TimeoutExpired:
        gateway.stop()
    if spy:
        _print_stacks(output.read_text())
    else:
        pstats.Stats(str(output)).sort_stats("tottime").print_stats(_LINES)


def _print_stacks(raw: str) -> None:
    """Prints own and inclusive time of each function from `frame;frame;frame count` lines."""
    own: Counter[str] = Counter()
    inclusive: Counter[str] = Counter()
    for line in raw.splitlines():
        stack, _, count = line.rpartition(" ")
        if "(asyncio/runners.py" not in stack or "importlib" in stack:  # the start
            continue
        frames = stack.split(";")
        own[frames[-1]] += int(count)
        for frame in set(frames):
            inclusive[frame] += int(count)
    total = own.total()
    for title, counter in (("own time", own), ("inclusive time", inclusive)):
        print(f"\n{title}, % of {total} samples")
        for frame, samples in counter.most_common(_LINES):
            print(f"{samples * 100 / total:6.2f}  {frame}")
