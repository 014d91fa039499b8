"""HTTP/1.1 by hand, for clients that no HTTP library would let exist.

async with connect(front.url) as connection:
    await connection.send("POST", "/mcp", headers, body)
    answer = await connection.read()
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from tests.support.messages import RawHeaders

WAIT_S: Final = 10.0


@dataclass(frozen=True)
class RawAnswer:
    """What came back.

    Attributes:
        status: the HTTP status.
        headers: values by lower-case name.
        body: its bytes.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> Any:
        """The body as JSON; of a stream, its last event."""
        if self.headers["content-type"] == "text/event-stream":
            return json.loads(self.body.removesuffix(b"\n\n").rpartition(b"data: ")[2])
        return json.loads(self.body)


class RawConnection:
    """One TCP connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self._reader = reader
        self._writer = writer
        self._host = host

    async def send(self, http_method: str, path: str, headers: RawHeaders, body: bytes = b"") -> None:
        """Send a request; `Host` and `Content-Length` are added where they are missing."""
        await self.send_bytes(head(http_method, path, headers, host=self._host, length=len(body)) + body)

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._writer.write(data)
        await self._writer.drain()

    async def read(self) -> RawAnswer:
        """Read one answer to its end."""
        async with asyncio.timeout(WAIT_S):
            status, headers = await self._read_head()
            return RawAnswer(status, headers, await self._read_body(status, headers))

    async def read_head(self) -> RawAnswer:
        """Read the head of an answer; what follows comes by `read_chunk`."""
        async with asyncio.timeout(WAIT_S):
            return RawAnswer(*await self._read_head(), b"")

    async def read_chunk(self) -> bytes:
        """The next chunk of a chunked body, `b""` at its end."""
        async with asyncio.timeout(WAIT_S):
            size = int((await self._reader.readuntil(b"\r\n")).split(b";")[0], 16)
            return (await self._reader.readexactly(size + 2))[:-2]

    async def is_closed(self) -> bool:
        """Wait for what comes next: the end of the connection, or something else."""
        async with asyncio.timeout(WAIT_S):
            try:
                return await self._reader.read(1) == b""
            except ConnectionError:
                return True

    def leave(self) -> None:
        """Close the connection now."""
        self._writer.close()

    async def _read_head(self) -> tuple[int, dict[str, str]]:
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip().split("\r\n")
        pairs = (line.partition(":") for line in lines)
        return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}

    async def _read_body(self, status: int, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") == "chunked":
            chunks = []
            while chunk := await self.read_chunk():
                chunks.append(chunk)
            return b"".join(chunks)
        return await self._reader.readexactly(int(headers.get("content-length", "0")) if status != 204 else 0)


def head(http_method: str, path: str, headers: Iterable[tuple[bytes, bytes]], *, host: str, length: int) -> bytes:
    """The head of a request."""
    sent = list(headers)
    names = {name.lower() for name, _value in sent}
    if b"host" not in names:
        sent.insert(0, (b"Host", host.encode()))
    if not names & {b"content-length", b"transfer-encoding"}:
        sent.append((b"Content-Length", str(length).encode()))
    lines = [f"{http_method} {path} HTTP/1.1".encode(), *(name + b": " + value for name, value in sent)]
    return b"\r\n".join(lines) + b"\r\n\r\n"


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[RawConnection]:
    """Open a connection to the host and port of a base URL."""
    host = url.removeprefix("http://").partition("/")[0]
    name, _, port = host.rpartition(":")
    reader, writer = await asyncio.open_connection(name, int(port))
    try:
        yield RawConnection(reader, writer, host)
    finally:
        writer.close()
