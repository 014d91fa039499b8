"""A TCP proxy that loses patience: it cuts a connection on which no byte has passed for a while, either way."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class IdleProxy:
    """The proxy, as a test sees it.

    Attributes:
        url: its base URL.
        cuts: how many connections it has cut.
    """

    def __init__(self, target: str, idle_s: float) -> None:
        self.url = ""
        self.cuts = 0
        self._target = urlsplit(target)
        self._idle_s = idle_s

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        there = await asyncio.open_connection(self._target.hostname, self._target.port)
        try:
            async with asyncio.timeout(self._idle_s) as patience:
                ways = (self._carry(reader, there[1], patience), self._carry(there[0], writer, patience))
                await asyncio.gather(*ways)
        except TimeoutError:
            self.cuts += 1
        except OSError:  # an end that hung up; ENOTCONN is no ConnectionError
            pass
        finally:
            for end in (writer, there[1]):
                end.transport.abort()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, patience: asyncio.Timeout
    ) -> None:
        while data := await reader.read(2**16):
            patience.reschedule(asyncio.get_running_loop().time() + self._idle_s)
            writer.write(data)
            await writer.drain()
        writer.write_eof()


@asynccontextmanager
async def idle_proxy(target: str, idle_s: float) -> AsyncIterator[IdleProxy]:
    """Run one in front of a base URL."""
    proxy = IdleProxy(target, idle_s)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield proxy
