"""Measures what open streams cost the gateway in memory; `python -m tests.support.listener_memory` prints a table.

The gateway runs in a process of its own, as a user starts it, in front of one scripted legacy server. First listeners
are opened, step by step, each of which watches the list of tools and one resource of its own. Then clients call a tool
that logs without end, and do not read.
"""

import asyncio
import logging
from typing import Any, Final

import psutil

from gateway.process import raise_descriptor_limit
from tests.support.changing_server import ChangingUpstream
from tests.support.messages import PREFIX
from tests.support.processes import gateway
from tests.support.scripted import Wire
from tests.support.stream_client import OpenStream, send

STEPS: Final = (250, 500, 900)
STALLED: Final = 50
_WARM_UP: Final = 50
_AT_ONCE: Final = 50
_SETTLE_S: Final = 2.0
_RESTING_S: Final = 0.05
"""The processor time in which a gateway that does nothing sweeps, and sends comments."""

_TEXT: Final = "x" * 10_000


async def main() -> None:
    """Measure, and print."""
    raise_descriptor_limit()
    logging.disable()
    async with ChangingUpstream() as upstream:
        upstream.capabilities = {**upstream.capabilities, "logging": {}}
        upstream.on("logging/setLevel", lambda wire: wire.result({}))
        upstream.on("tools/call", _log_for_ever)
        upstreams = {"docs": {"url": upstream.url, "era": "legacy", "sessions": {"max": 2 * STALLED}}}
        with gateway(upstreams) as process:
            await _measure(process.url.removesuffix("/mcp"), psutil.Process(process.popen.pid), upstream)


async def _measure(url: str, process: psutil.Process, upstream: ChangingUpstream) -> None:
    streams = await _listen(url, range(_WARM_UP))
    before, base = len(streams), await _memory(process)
    for step in STEPS:
        streams += await _listen(url, range(len(streams), before + step))
        each = (await _memory(process) - base) / step
        print(f"{step} listeners: {each / 1024:.1f} KiB each, {len(upstream.streams)} stream of the server")
    base = await _memory(process)
    params = {"name": "echo", "arguments": {}}
    meta = {f"{PREFIX}logLevel": "debug"}
    stalled = [await _send(url, "tools/call", params, meta=meta, buffered=65_536) for _ in range(STALLED)]
    each = (await _memory(process) - base) / STALLED
    print(f"{STALLED} clients that do not read what they asked for: {each / 1024:.1f} KiB each")
    for stream in [*streams, *stalled]:
        stream.abort()


async def _listen(url: str, numbers: range) -> list[OpenStream]:
    room = asyncio.Semaphore(_AT_ONCE)

    async def listen(number: int) -> OpenStream:
        asked = {"toolsListChanged": True, "resourceSubscriptions": [f"note://{number}"]}
        async with room:
            stream = await _send(url, "subscriptions/listen", {"notifications": asked}, request_id=number)
            await stream.message()
        return stream

    return await asyncio.gather(*(listen(number) for number in numbers))


async def _send(url: str, method: str, params: dict[str, Any], **request: Any) -> OpenStream:
    return await send(None, method, params, url=url, **request)


async def _memory(process: psutil.Process) -> int:
    """The memory that is resident when the gateway has come to rest."""
    spent_s = -1.0
    while (now_s := sum(process.cpu_times()[:2])) - spent_s > _RESTING_S:
        spent_s = now_s
        await asyncio.sleep(_SETTLE_S)
    return int(process.memory_info().rss)


async def _log_for_ever(wire: Wire) -> None:
    await wire.sse()
    while not wire.gone.is_set():
        await wire.notify("notifications/message", {"level": "info", "data": _TEXT})


if __name__ == "__main__":
    asyncio.run(main())
