"""Keeps calls suspended and streams open at a gateway, until standard input ends.

Run as a process with one `Held` as JSON in its argument; it prints a line when all of them are held.
"""

import asyncio
import sys
from dataclasses import dataclass
from typing import Final

import orjson
import uvloop

from tests.bench.messages import ASK, listen_call, modern_call

_CONNECTIONS: Final = 64


@dataclass(frozen=True, slots=True)
class Held:
    """What to hold.

    Args:
        port: of the gateway.
        suspended: calls that have been asked something and are left without an answer.
        streams: `subscriptions/listen`.
    """

    port: int
    suspended: int = 0
    streams: int = 0


async def hold(held: Held) -> None:
    """Holds what is wanted."""
    shares = [len(range(start, held.suspended, _CONNECTIONS)) for start in range(_CONNECTIONS)]
    await asyncio.gather(*(_suspend(held.port, share) for share in shares if share))
    limit = asyncio.Semaphore(_CONNECTIONS)
    streams = await asyncio.gather(*(_listen(held.port, limit) for _ in range(held.streams)))
    print("held", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for stream in streams:
        stream.close()


async def _suspend(port: int, calls: int) -> None:
    """Makes calls that are answered with a question, one after the other on one connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(calls):
        writer.write(modern_call(ASK, 1, port, asking=True))
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        start = head.index(b"\r\ncontent-length:") + 17
        body = await reader.readexactly(int(head[start : head.index(b"\r", start)]))
        if b'"input_required"' not in body:
            raise SystemExit(f"bench: no question came back: {body[:600]!r}")
    writer.close()


async def _listen(port: int, limit: asyncio.Semaphore) -> asyncio.StreamWriter:
    """Opens a stream and waits until it is acknowledged."""
    async with limit:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(listen_call(1, port))
        await reader.readuntil(b"notifications/subscriptions/acknowledged")
    return writer


if __name__ == "__main__":
    uvloop.run(hold(Held(**orjson.loads(sys.argv[1]))))
