"""The gateway as a process of its own: what becomes of the servers that it has started when it ends, whatever way."""

import asyncio
import signal
from pathlib import Path

import psutil
import pytest

from tests.support.processes import gateway
from tests.support.round_client import EVERYTHING, RoundClient
from tests.support.stdio import StdioServer, is_alive

WAIT_S = 15.0
STUBBORN = ("--ignore-close", "--ignore-term")


async def use(url: str, *, is_stubborn: bool) -> set[int]:
    """Have two servers started, one of them with a call that waits for its client, and things that they start."""
    async with RoundClient(url, capabilities={}) as client:
        assert (await client.call("book", capabilities=EVERYTHING)).asks
        spawns = [{"apart": apart, "ignores_term": is_stubborn} for apart in (False, True)]
        return {int((await client.call("spawn", each)).text) for each in spawns}


@pytest.mark.parametrize(
    ("number", "options"),
    [
        pytest.param(signal.SIGTERM, (), id="SIGTERM"),
        pytest.param(signal.SIGKILL, STUBBORN, id="SIGKILL, stubborn"),
    ],
)
def test_when_the_gateway_ends_so_does_all_that_it_started(
    tmp_path: Path, number: signal.Signals, options: tuple[str, ...]
) -> None:
    server = StdioServer(tmp_path, *options)
    # The call that waits for its client is kept for as long as the gateway drains.
    with gateway({"git": server.configured(era="legacy")}, server={"drain": "500ms"}) as front:
        spawned = asyncio.run(use(front.url, is_stubborn=bool(options)))
        processes = psutil.Process(front.popen.pid).children(recursive=True)
        started = {process.pid for process in processes}
        assert started >= {*server.pids, *spawned}
        assert len(server.pids) == 2
        assert all(is_alive(pid) for pid in started)
        front.popen.send_signal(number)
        _gone, left = psutil.wait_procs(processes, WAIT_S)
        assert [process for process in left if is_alive(process.pid)] == []
