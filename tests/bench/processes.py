"""The processes of a run: started, waited for, measured from outside, ended."""

import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import orjson
import psutil

from tests.bench.load import Load, Sample

ROOT: Final = Path(__file__).resolve().parents[2]
_PATIENCE_S: Final = 30.0


class NotReadyError(Exception):
    """A process ended, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class Target:
    """A proxy under measurement."""

    name: str
    port: int
    process: subprocess.Popen[str]

    def cpu_s(self) -> float:
        """Processor time spent so far, in user and kernel."""
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system

    def resident_mb(self) -> float:
        """Resident memory now, in MB of a million bytes."""
        return psutil.Process(self.process.pid).memory_info().rss / 1e6

    def stop(self) -> None:
        """Asks the process to end, and insists after a while."""
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start_upstream() -> Target:
    """The canned upstream; it ends with this process, since it reads its standard input."""
    process = _start([sys.executable, "-m", "tests.bench.upstream"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    return Target("upstream", int(process.stdout.readline()), process)


def start_bare(upstream: Target) -> Target:
    """The reference proxy in front of the upstream, ready."""
    port = free_port()
    command = [sys.executable, "-m", "tests.bench.bare", str(port), str(upstream.port)]
    return _when_ready(Target("bare", port, _start(command)))


def start_gateway(upstream: Target, folder: Path, prefix: Sequence[str] = (sys.executable,)) -> Target:
    """The gateway in front of the upstream, ready, its log in `folder`.

    Args:
        prefix: the interpreter, or a profiler and its options around it.
    """
    port = free_port()
    config = folder / "gateway.yaml"
    config.write_text(
        f"server: {{host: 127.0.0.1, port: {port}, admin: false}}\n"
        f'upstreams: {{bench: {{url: "http://127.0.0.1:{upstream.port}/mcp"}}}}\n'
    )
    with (folder / "gateway.log").open("w") as log:
        command = [*prefix, "-m", "gateway", "serve", "-c", str(config)]
        process = _start(command, stdout=log.fileno(), stderr=subprocess.STDOUT)
    try:
        return _when_ready(Target("gateway", port, process))
    except NotReadyError as error:
        raise SystemExit(f"bench: {error}") from None


def put_load(load: Load) -> Sample:
    """Runs the load generator in a process of its own.

    Raises:
        SystemExit: a reply was wrong; it shows the reply.
    """
    command = [sys.executable, "-m", "tests.bench.load", orjson.dumps(asdict(load)).decode()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"bench: a wrong reply to {load}:\n{done.stderr[-2000:]}")
    return Sample(**orjson.loads(done.stdout))


def is_ready(port: int) -> bool:
    """Whether `/readyz` answers 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _start(command: list[str], *, stdout: int | None = None, stderr: int | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, text=True)


def _when_ready(target: Target) -> Target:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_ready(target.port):
        if target.process.poll() is not None or time.monotonic() > deadline:
            target.stop()
            raise NotReadyError(f"{target.name} did not become ready (exit code {target.process.returncode})")
        time.sleep(0.02)
    return target
