"""A server that speaks the protocol of Redis and answers as a test says.

async with FakeRedis() as redis:
    redis.answers["GET"] = b"-READONLY You can't write against a read only replica.\r\n"
    SharedStore(redis.url, "era-gateway")
"""

import asyncio
from types import TracebackType
from typing import Final, Self

OK: Final = b"+OK\r\n"


class FakeRedis:
    """Answers `+OK` unless told otherwise.

    Attributes:
        answers: what to say to a command, by name; None: nothing, ever; b"": the connection is closed.
        commands: the names of those that came.
        url: where it is.
    """

    def __init__(self) -> None:
        self.answers: dict[str, bytes | None] = {}
        self.commands: list[str] = []
        self.url = ""
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/0"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            while name := await _read_command(reader):
                self.commands.append(name)
                answer = self.answers.get(name, OK)
                if answer == b"":
                    break
                writer.write(answer or b"")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # whoever came is gone
        self._writers.discard(writer)
        self._tasks.discard(task)
        writer.transport.abort()


async def _read_command(reader: asyncio.StreamReader) -> str:
    line = await reader.readline()
    words = []
    for _ in range(int(line[1:] or b"0")):
        length = int((await reader.readline())[1:])
        words.append((await reader.readexactly(length + 2))[:-2])
    return words[0].decode().upper() if words else ""
