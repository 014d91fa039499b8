"""What a suspended call costs the gateway in memory: `python -m tests.support.round_memory [COUNT]`.

The gateway is a process of its own. After some warming up it is given COUNT calls (by default 2,000) whose server asks
and whose clients do not come back, and its resident memory before and after is compared: once with a session whose GET
stream is open (two connections to the server for each call), once with a server that has none (one connection).
"""

import asyncio
import json
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psutil
from aiohttp import web
from cryptography.fernet import Fernet

from gateway.process import raise_descriptor_limit
from tests.support.asking_server import AskingServer
from tests.support.asking_tools import offer_tools
from tests.support.round_client import RoundClient

AT_A_TIME = 50
WARM_UP = 200


class Deaf(AskingServer):
    """A server that offers no GET stream."""

    async def _get(self, http: web.Request) -> web.StreamResponse:
        return web.Response(status=405)


async def measure(server: AskingServer, count: int) -> float:
    """Bytes for each of so many suspended calls."""
    async with offer_and_serve(server) as url, gateway_process(url) as (pid, front), RoundClient(front) as client:
        await _suspend(client, WARM_UP)
        before = psutil.Process(pid).memory_info().rss
        await _suspend(client, count)
        return (psutil.Process(pid).memory_info().rss - before) / count


@asynccontextmanager
async def offer_and_serve(server: AskingServer) -> AsyncIterator[str]:
    """Run the server until the block is left."""
    async with server:
        offer_tools(server)
        yield server.url


@asynccontextmanager
async def gateway_process(upstream: str) -> AsyncIterator[tuple[int, str]]:
    """Run the gateway; yields its process id and its endpoint."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "gateway.yaml"
        config.write_text(json.dumps(_settings(upstream, port)))  # JSON is YAML
        command = (sys.executable, "-m", "gateway", "serve", "-c", str(config))
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
        try:
            await _until_ready(process, f"http://127.0.0.1:{port}/readyz")
            yield process.pid, f"http://127.0.0.1:{port}/mcp"
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()


def _settings(upstream: str, port: int) -> dict[str, Any]:
    return {
        "server": {"port": port, "admin": False},
        "upstreams": {"docs": {"url": upstream, "era": "legacy"}},
        "rounds": {"ttl": "1h", "max": 1_000_000},
        "state": {"keys": Fernet.generate_key().decode()},
        "log": {"level": "warning"},
    }


async def _until_ready(process: asyncio.subprocess.Process, url: str) -> None:
    async with asyncio.timeout(30), aiohttp.ClientSession() as http:
        while process.returncode is None:
            try:
                async with http.get(url) as reply:
                    if reply.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.05)
    raise RuntimeError("the gateway did not start")


async def _suspend(client: RoundClient, count: int) -> None:
    for start in range(0, count, AT_A_TIME):
        replies = await asyncio.gather(*(client.call("book", {"key": start + n}) for n in range(AT_A_TIME)))
        assert all(reply.asks for reply in replies)


async def _main(count: int) -> None:
    for name, server in (("with a GET stream", AskingServer()), ("without", Deaf())):
        print(f"{await measure(server, count) / 1024:.0f} KiB for each of {count} suspended calls, {name}", flush=True)


if __name__ == "__main__":
    raise_descriptor_limit()
    asyncio.run(_main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000))
