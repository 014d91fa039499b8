"""Stdio servers for the tests: how they are configured, and what they note of their lives."""

import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.support.round_client import RoundClient
from tests.support.running_gateway import RunningGateway, running_gateway
from tests.support.stream_client import OpenStream, listening

SERVER = Path(__file__).parents[1] / "fixtures" / "stdio" / "server.py"


class StdioServer:
    """The server of tests/fixtures/stdio, as an upstream.

    Args:
        folder: where it keeps its journal.
        options: see the server.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.journal = folder / "journal"
        self.options = options

    def configured(self, **more: Any) -> dict[str, Any]:
        """The entry of the configuration."""
        args = ["-I", "-S", str(SERVER), "--journal", str(self.journal), *self.options]
        return {"command": sys.executable, "args": args, **more}

    @property
    def notes(self) -> list[tuple[int, str]]:
        """Process and method of each message so far; `start` for each start."""
        if not self.journal.exists():
            return []
        lines = [line.split() for line in self.journal.read_text(encoding="utf-8").splitlines()]
        return [(int(pid), text) for pid, text in lines]

    @property
    def pids(self) -> list[int]:
        """The processes so far."""
        return [pid for pid, text in self.notes if text == "start"]

    @property
    def alive(self) -> list[int]:
        """Those of them that run."""
        return [pid for pid in self.pids if is_alive(pid)]

    def methods(self, pid: int | None = None) -> list[str]:
        """What was received, by one process or by all."""
        return [text for number, text in self.notes if text != "start" and pid in (None, number)]


@asynccontextmanager
async def served(
    server: StdioServer, *, settings: Mapping[str, Any] | None = None, **more: Any
) -> AsyncIterator[tuple[RunningGateway, RoundClient]]:
    """The gateway in front of a server, and a client that can answer nothing. No process may be left in the end.

    Args:
        server: becomes the upstream `git`.
        settings: the rest of the configuration, by section.
        more: configuration of the server.
    """
    before = descendants()
    async with (
        running_gateway(upstreams={"git": server.configured(**more)}, **(settings or {})) as gateway,
        RoundClient(gateway.url, capabilities={}) as client,
    ):
        yield gateway, client
    assert descendants() <= before


async def facts(client: RoundClient, **more: Any) -> dict[str, Any]:
    """What the process that serves this call says of itself."""
    told: dict[str, Any] = json.loads((await client.call("facts", **more)).text)
    return told


def output(gateway: RunningGateway, stream: str = "stderr") -> list[str]:
    """The lines of servers that the gateway has logged."""
    entries = (entry for entry in gateway.log if entry["event"] == "server output")
    return [entry["line"] for entry in entries if entry["stream"] == stream]


def ends(gateway: RunningGateway) -> list[str]:
    """How processes ended that were not asked to."""
    entries = (entry for entry in gateway.log if entry["event"] == "server ended")
    return [entry["how"] for entry in entries if not entry["was_asked"]]


def heard(gateway: RunningGateway) -> AbstractAsyncContextManager[OpenStream]:
    """A listener for changes of tools."""
    return listening(None, url=gateway.url.removesuffix("/mcp"))  # type: ignore[arg-type] -- the URL is enough


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def descendants() -> set[int]:
    """The processes below this one, wherever they went."""
    return {child.pid for child in psutil.Process().children(recursive=True) if is_alive(child.pid)}
