"""Several real processes of the gateway on one Redis, to be killed, stopped, drained and started again.

async with Replicas(redis, server, count=3) as replicas, RoundRobin(replicas.bases) as balancer:
    replicas[0].kill()
    await replicas[0].start()
"""

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import yaml
from cryptography.fernet import Fernet

from tests.support.processes import ROOT, end_with_parent, stable_port

_BOUND_S: Final = 20.0


class Replica:
    """One process of the gateway.

    Args:
        config: its configuration file.
        port: where it listens.
        log: the file that takes what it prints.
    """

    def __init__(self, config: Path, port: int, log: Path) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.url = f"{self.base}/mcp"
        self.log = log
        self._command = [sys.executable, "-m", "gateway", "serve", "-c", str(config), "--port", str(port)]
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it, and return when it is ready."""
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                cwd=ROOT,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        async with asyncio.timeout(_BOUND_S), aiohttp.ClientSession() as http:
            while not await self._is_ready(http):  # noqa: ASYNC110 -- nothing announces it
                await asyncio.sleep(0.02)

    async def kill(self) -> None:
        """End it at once: no word to anybody."""
        self._send(signal.SIGKILL)
        await self.ended()

    def stop(self) -> None:
        """Let it stand still."""
        self._send(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        self._send(signal.SIGCONT)

    def terminate(self) -> None:
        """Ask it to drain and end."""
        self._send(signal.SIGTERM)

    async def ended(self) -> int:
        """Wait until it has ended; its exit status."""
        assert self._process is not None
        async with asyncio.timeout(_BOUND_S):
            return await self._process.wait()

    async def readiness(self) -> tuple[int, dict[str, Any]]:
        """What `/readyz` says."""
        async with aiohttp.ClientSession() as http, http.get(f"{self.base}/readyz") as answer:
            return answer.status, await answer.json()

    async def until(self, **told: Any) -> None:
        """Wait until `/readyz` says so."""
        async with asyncio.timeout(_BOUND_S):
            while not told.items() <= (await self.readiness())[1].items():  # noqa: ASYNC110 -- nothing announces it
                await asyncio.sleep(0.05)

    async def until_it_keeps(self, rounds: int) -> None:
        """Wait until so many calls are suspended there."""
        async with asyncio.timeout(_BOUND_S):
            while (await self.readiness())[1]["suspended"] < rounds:  # noqa: ASYNC110 -- nothing announces it
                await asyncio.sleep(0.05)

    async def _is_ready(self, http: aiohttp.ClientSession) -> bool:
        assert self._process is not None
        assert self._process.returncode is None, self.log.read_text()
        try:
            async with http.get(f"{self.base}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    def _send(self, number: int) -> None:
        if self._process is not None and self._process.returncode is None:
            os.killpg(self._process.pid, number)


class Replicas(list[Replica]):
    """Replicas of one configuration.

    Args:
        store: the URL of the store that they share.
        upstream: the URL of the server behind them; or of several, by name.
        count: how many.
        sections: more configuration, by section.
    """

    def __init__(
        self, store: str, upstream: str | Mapping[str, str], *, count: int = 3, **sections: Mapping[str, Any]
    ) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory(prefix="replicas-")
        folder = Path(self._folder.name)
        urls = {"docs": upstream} if isinstance(upstream, str) else upstream
        config: dict[str, Any] = {
            "upstreams": {name: {"url": url, "era": "legacy", "sessions": {"max": 512}} for name, url in urls.items()},
            "state": {"store": store, "keys": Fernet.generate_key().decode()},
            **sections,
        }
        config["server"] = {"admin": False, "drain": "8s", **config.get("server", {})}
        config["rounds"] = {"gather": "5ms", "gather_max": "50ms", **config.get("rounds", {})}
        path = folder / "gateway.yaml"
        path.write_text(yaml.safe_dump(config))
        self.extend(Replica(path, stable_port(), folder / f"replica-{number}.log") for number in range(count))

    @property
    def bases(self) -> list[str]:
        """Their base URLs."""
        return [replica.base for replica in self]

    async def __aenter__(self) -> Self:
        try:
            await asyncio.gather(*(replica.start() for replica in self))
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:  # for the report of the test that fails
            for replica in self:
                print(replica.log.name, *_remarkable(replica.log.read_text())[-60:], sep="\n")
        await self._end()

    async def _end(self) -> None:
        for replica in self:
            await replica.kill()
        self._folder.cleanup()


def _remarkable(log: str) -> list[str]:
    """What a replica printed, without the requests that went well."""
    return [line for line in log.splitlines() if '"status":200' not in line]
