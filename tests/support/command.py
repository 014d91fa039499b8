"""`era-gateway` as a process of its own, told by signals.

async with command("serve", "-c", write_config(tmp_path, server.url, drain="10s")) as process:
    process.popen.terminate()
    assert await exit_code(process) == 0
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tests.support.processes import Process, running

WAIT_S: Final = 15.0
"""The bound of every wait."""


def write_config(folder: Path, url: str, **server: Any) -> Path:
    """A configuration file for one upstream; `server` is that section."""
    path = folder / "gateway.yaml"
    path.write_text(json.dumps({"server": server, "upstreams": {"docs": {"url": url}}}))
    return path


@asynccontextmanager
async def command(*arguments: object) -> AsyncIterator[Process]:
    """Run `era-gateway` until the block is left; it is ready when it says where it serves."""

    def ready(line: str) -> str | None:
        if line.startswith("curl "):
            return line.split()[-2]
        told = _parsed(line)
        return f"http://127.0.0.1:{told['port']}/mcp" if told.get("event") == "serving" else None

    context = running("era-gateway", [sys.executable, "-m", "gateway", *arguments], ready)
    process = await asyncio.to_thread(context.__enter__)
    try:
        yield process
    finally:
        await asyncio.to_thread(context.__exit__, None, None, None)


async def exit_code(process: Process) -> int:
    """Wait until it has ended."""
    return await asyncio.to_thread(process.popen.wait, WAIT_S)


def events(process: Process, event: str) -> list[Mapping[str, Any]]:
    """The log lines of an event, so far."""
    return [line for line in map(_parsed, process.lines) if line.get("event") == event]


def told(process: Process, event: str) -> Mapping[str, Any]:
    """The one log line of an event."""
    [line] = events(process, event)
    return line


def _parsed(line: str) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
    return parsed
