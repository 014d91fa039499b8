"""The processes of a run: started, waited for, measured from outside, ended."""

import http.client
import random
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import orjson
import psutil

from tests.bench.load import Load, Sample

ROOT: Final = Path(__file__).resolve().parents[2]
PATIENCE_S: Final = 30.0


class NotReadyError(Exception):
    """A process ended, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class Target:
    """A proxy under measurement.

    Args:
        name: as tables show it.
        port: where it listens.
        process: the one that was started.
        has_workers: whether processes that it started are its own, and not the server behind it.
    """

    name: str
    port: int
    process: subprocess.Popen[str]
    has_workers: bool = True

    def cpu_s(self) -> float:
        """Processor time spent so far, in user and kernel, that of its workers included."""
        return sum(times.user + times.system for times in (one.cpu_times() for one in self._family()))

    def resident_mb(self) -> float:
        """Resident memory now, in MB of a million bytes, that of its workers included."""
        return sum(one.memory_info().rss for one in self._family()) / 1e6

    def descriptors(self) -> int:
        """How many files and sockets the process has open."""
        return psutil.Process(self.process.pid).num_fds()

    def _family(self) -> list[psutil.Process]:
        parent = psutil.Process(self.process.pid)
        return [parent, *(parent.children(recursive=True) if self.has_workers else ())]

    def stop(self) -> None:
        """Asks the process to end, and insists after a while."""
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def free_port() -> int:
    """A port that was free a moment ago, of those that the system gives to nobody by itself."""
    while True:
        port = random.randrange(20_000, 32_000)  # noqa: S311 -- nothing is kept secret by it
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def start_upstream(*, has_get_streams: bool = False) -> Target:
    """The canned upstream; it ends with this process, since it reads its standard input.

    Args:
        has_get_streams: whether each session may have a stream of its own beside its calls, as most servers offer.
    """
    option = ["--get-streams"] if has_get_streams else []
    process = start([sys.executable, "-m", "tests.bench.upstream", *option], stdout=subprocess.PIPE)
    assert process.stdout is not None
    return Target("upstream", int(process.stdout.readline()), process)


def start_bare(
    upstream: Target, prefix: Sequence[str] = (sys.executable,), *, patience_s: float = PATIENCE_S
) -> Target:
    """The reference proxy in front of the upstream, ready.

    Args:
        prefix: the interpreter, or a profiler and its options around it.
        patience_s: how long it may take to be ready.
    """
    port = free_port()
    command = [*prefix, "-m", "tests.bench.bare", str(port), str(upstream.port)]
    return when_ready(Target("bare", port, start(command)), _has_readyz, patience_s)


def start_gateway(
    upstream: Target,
    folder: Path,
    prefix: Sequence[str] = (sys.executable,),
    *,
    upstreams: int = 1,
    more: str = "",
    patience_s: float = PATIENCE_S,
) -> Target:
    """The gateway in front of the upstream, ready, its log in `folder`.

    Args:
        prefix: the interpreter, or a profiler and its options around it.
        upstreams: how many times the upstream is configured; more than one are merged.
        more: further lines of the configuration.
        patience_s: how long it may take to be ready.
    """
    port = free_port()
    config = folder / f"gateway-{port}.yaml"
    url = f"http://127.0.0.1:{upstream.port}/mcp"
    named = ", ".join(f'bench{number}: {{url: "{url}"}}' for number in range(1, upstreams + 1))
    config.write_text(
        f"server: {{host: 127.0.0.1, port: {port}, admin: false, max_listeners: 5000}}\nupstreams: {{{named}}}\n{more}"
    )
    with (folder / "gateway.log").open("a") as log:
        command = [*prefix, "-m", "gateway", "serve", "-c", str(config)]
        process = start(command, stdout=log.fileno(), stderr=subprocess.STDOUT)
    try:
        return when_ready(Target("gateway", port, process), _has_readyz, patience_s)
    except NotReadyError as error:
        raise SystemExit(f"bench: {error}") from None


def put_load(load: Load) -> Sample:
    """Runs the load generator in a process of its own.

    Raises:
        SystemExit: a reply was wrong; it shows the reply.
    """
    return put_loads([load])[0]


def put_loads(loads: Sequence[Load]) -> list[Sample]:
    """Runs several loads at the same time. Raises like `put_load`."""
    command = [sys.executable, "-m", "tests.bench.load"]
    running = [
        start([*command, orjson.dumps(asdict(load)).decode()], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for load in loads
    ]
    done = [(process.communicate(), process.returncode) for process in running]
    for ((_, told), code), load in zip(done, loads, strict=True):
        if code:
            raise SystemExit(f"bench: a wrong reply to {load}:\n{told[-2000:]}")
    return [Sample(**orjson.loads(out)) for (out, _), _ in done]


def answers(port: int, path: str) -> bool:
    """Whether a GET is answered with 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _has_readyz(port: int) -> bool:
    return answers(port, "/readyz")


def start(command: list[str], *, stdout: int | None = None, stderr: int | None = None) -> subprocess.Popen[str]:
    """A process of this project, with a standard input that ends when this process does."""
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, text=True)


def when_ready(target: Target, is_ready: Callable[[int], bool], patience_s: float = PATIENCE_S) -> Target:
    """Waits until a target serves.

    Raises:
        NotReadyError: it ended, or took too long.
    """
    deadline = time.monotonic() + patience_s
    while not is_ready(target.port):
        if target.process.poll() is not None or time.monotonic() > deadline:
            target.stop()
            raise NotReadyError(f"{target.name} did not become ready (exit code {target.process.returncode})")
        time.sleep(0.02)
    return target
