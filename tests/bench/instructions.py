"""Instructions in user space for one call on one connection: what a busy machine cannot disturb.

The gateway and the bare proxy run under valgrind's callgrind, which counts; what was counted up to the end of a warm-up
is left out. The kernel's part is not counted. Of large results it counts the bytes that are copied, too, since valgrind
takes each step of a repeated move for an instruction.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from tests.bench.cases import Case
from tests.bench.load import Load
from tests.bench.processes import Target, put_load, start_bare, start_gateway

_CALLS: Final = {"1k": 400, "64k": 100, "1m": 40}
_SHOWN: Final = re.compile(r"^totals: (\d+)", re.MULTILINE)
_COLUMNS: Final = "| | gateway | bare | gateway / bare |\n|---|--:|--:|--:|"

_PATIENCE_S: Final = 300.0

Starter = Callable[[Sequence[str]], Target]


def measure_instructions(cases: Sequence[Case], upstream: Target, folder: Path) -> str:
    """Counts for each case with one connection; a table in Markdown, in thousands of instructions a call."""
    if shutil.which("valgrind") is None or shutil.which("callgrind_control") is None:
        return "valgrind is not installed."
    gateway = _counted(partial(start_gateway, upstream, folder, patience_s=_PATIENCE_S), "gateway", cases, folder)
    bare = _counted(partial(start_bare, upstream, patience_s=_PATIENCE_S), "bare", cases, folder)
    rows = [
        f"| {case.name} | {ours:,.0f} | {theirs:,.0f} | {ours / theirs:.2f} |"
        for case, ours, theirs in zip(cases, gateway, bare, strict=True)
    ]
    return "\n".join([_COLUMNS, *rows])


def _counted(start: Starter, name: str, cases: Sequence[Case], folder: Path) -> list[float]:
    output = folder / f"callgrind-{name}"
    target = start(["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", sys.executable])
    try:
        return [_count(target, case, output) for case in cases]
    finally:
        target.stop()


def _count(target: Target, case: Case, output: Path) -> float:
    """Thousands of instructions for one call."""
    calls = _CALLS[case.size]
    load = Load(target.port, case.tool, 1, _PATIENCE_S, asking=case.asking, calls=calls)
    put_load(replace(load, calls=calls // 2))
    _dump(target, output)
    put_load(load)
    return _dump(target, output) / calls / 1000


def _dump(target: Target, output: Path) -> int:
    """What was counted since the last dump."""
    subprocess.run(
        ["callgrind_control", "--dump", str(target.process.pid)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    newest = max(output.parent.glob(f"{output.name}.*"), key=lambda path: int(path.suffix[1:]))
    found = _SHOWN.search(newest.read_text())
    if found is None:
        raise SystemExit(f"bench: no totals in {newest}")
    return int(found[1])
