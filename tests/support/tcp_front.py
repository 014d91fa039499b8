"""A port that leads to another one, and can be shut, with every connection through it, or held up.

async with TcpFront("127.0.0.1", 6379, tls=context) as front:
    Redis(port=front.port, ssl=True)
"""

import asyncio
import ssl
from types import TracebackType
from typing import Self

from tests.support.processes import stable_port


class TcpFront:
    """Passes bytes on, both ways.

    Args:
        host: where it leads.
        port: on that host.
        tls: what it speaks with those who come; None: what they say is passed on as it is.
    """

    def __init__(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> None:
        self.port = stable_port()
        self._target = (host, port)
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._passes = asyncio.Event()
        self._passes.set()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Take connections, on the same port as ever."""
        self._passes.set()
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, ssl=self._tls)

    async def close(self) -> None:
        """Take no more, and cut those that are there."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            writer.transport.abort()

    def hold(self) -> None:
        """Pass nothing on for now."""
        self._passes.clear()

    def go_on(self) -> None:
        """Pass everything on again."""
        self._passes.set()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            there_reader, there_writer = await asyncio.open_connection(*self._target)
        except OSError:
            self._drop(writer)
            return
        self._writers.add(there_writer)
        try:
            await asyncio.gather(self._copy(reader, there_writer), self._copy(there_reader, writer))
        finally:
            self._drop(writer)
            self._drop(there_writer)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                await self._passes.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # one side is gone, and so is the other
        writer.close()

    def _drop(self, writer: asyncio.StreamWriter) -> None:
        self._writers.discard(writer)
        writer.transport.abort()
