"""What a process promises once it is to end, seen from outside: by its clients, its load balancer and its operator."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.asking_server import AskingServer, Call
from tests.support.asking_tools import CANCELLED, filled, offer_tools
from tests.support.command import WAIT_S, command, events, exit_code, told, write_config
from tests.support.processes import Process
from tests.support.round_client import Reply, RoundClient

FOREVER = "60s"
"""Longer than any test is let run: what a test sees the end of did not wait for that."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A process that serves, and all who look at it; the tool `work` is done when `finish` is set."""

    process: Process
    server: AskingServer
    client: RoundClient
    http: aiohttp.ClientSession
    finish: asyncio.Event

    @property
    def bases(self) -> list[str]:
        """Where it is asked whether it is ready: the main port, and the operator's."""
        return [self.client.url.removesuffix("/mcp"), f"http://{told(self.process, 'serving')['admin']}"]

    async def readiness(self, base: str) -> tuple[int, dict[str, Any]]:
        """What `/readyz` says."""
        async with self.http.get(f"{base}/readyz") as answer:
            return answer.status, await answer.json()

    async def send(self, number: int) -> None:
        """Send a signal, and wait until it shows."""
        self.process.popen.send_signal(number)
        await self.until(lambda: events(self.process, "draining"))

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until the log says so."""
        async with asyncio.timeout(WAIT_S):
            while not condition():  # noqa: ASYNC110 -- the log is written by another process
                await asyncio.sleep(0.01)


@asynccontextmanager
async def serving(folder: Path, **server: Any) -> AsyncIterator[Serving]:
    """Run the gateway in front of a server that asks."""
    async with offer_tools(AskingServer()) as asking, aiohttp.ClientSession() as http:
        finish = asyncio.Event()

        async def work(_call: Call) -> str:
            await finish.wait()
            return "worked"

        asking.tool(work)
        config = write_config(folder, asking.url, port=0, admin={"port": 0}, **server)
        async with command("serve", "-c", config) as process, RoundClient(process.url) as client:
            yield Serving(process, asking, client, http, finish)
        finish.set()


def assert_turned_away(reply: Reply) -> None:
    assert (reply.status, reply.error["code"]) == (503, -32603)
    assert reply.error["data"] == {"reason": "draining", "retryable": True}
    assert "send the same request again" in reply.error["message"]
    headers = {name.lower(): value for name, value in reply.headers.items()}
    assert (headers["retry-after"], headers["connection"]) == ("1", "close")


async def test_new_calls_are_served_until_a_balancer_has_noticed_and_retries_as_long_as_there_are_rounds(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, lame_duck="2s", drain=FOREVER) as on:
        asked = await on.client.call("in_turn", {"count": 2})
        await on.send(signal.SIGTERM)
        for base in on.bases:
            status, ready = await on.readiness(base)
            assert status == 503
            assert ready == {
                "ready": False,
                "draining": True,
                "store": "none",
                "upstreams": {"docs": "legacy"},
                "suspended": 1,
            }
        served = await on.client.call("plain")
        assert served.text == "plain"
        assert served.headers["Connection"] == "close"

        async with asyncio.timeout(WAIT_S):
            while (refused := await on.client.call("plain")).status == 200:
                pass
        assert_turned_away(refused)
        assert_turned_away(await on.client.request("server/discover"))

        for _ in range(2):
            assert on.process.popen.poll() is None
            answers = {name: filled("Ada") for name in asked.questions}
            asked = await on.client.call("in_turn", {"count": 2}, answers=answers, state=asked.state)
            assert asked.headers["Connection"] == "close"
        assert asked.text == "Ada,Ada"
        assert on.server.executions["in_turn"] == 1
        assert await exit_code(on.process) == 0, "nothing is left to wait for"
        assert told(on.process, "drained")["ended"] == 0
        assert "Traceback" not in on.process.log()


async def test_a_process_that_is_not_needed_ends_at_once_however_long_it_might_take(tmp_path: Path) -> None:
    async with serving(tmp_path, drain=FOREVER) as on:
        assert (await on.client.call("plain")).text == "plain", "its connection is kept"
        on.process.popen.terminate()
        assert await exit_code(on.process) == 0
        assert on.server.deleted


async def test_rounds_that_nobody_comes_back_for_in_time_are_ended_at_the_server(tmp_path: Path) -> None:
    async with serving(tmp_path, drain="1s") as on:
        await on.client.call("book")
        on.process.popen.terminate()
        assert await exit_code(on.process) == 0
        assert [answer.body for answer in on.server.answers] == [{"result": CANCELLED}]
        assert told(on.process, "drained")["ended"] == 1


async def test_ctrl_c_waits_neither_for_balancers_nor_for_users_but_finishes_calls(tmp_path: Path) -> None:
    async with serving(tmp_path, lame_duck=FOREVER, drain=FOREVER) as on:
        await on.client.call("book")
        working = asyncio.ensure_future(on.client.call("work"))
        await on.server.until(lambda: on.server.executions["work"])
        await on.send(signal.SIGINT)
        on.finish.set()
        assert (await working).text == "worked"
        assert await exit_code(on.process) == 130
        assert [answer.body for answer in on.server.answers] == [{"result": CANCELLED}]
        assert "Traceback" not in on.process.log()


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_ends_at_once_with_a_word_to_who_is_waiting(
    first: signal.Signals, tmp_path: Path
) -> None:
    async with serving(tmp_path, drain=FOREVER) as on:
        await on.client.call("book")
        working = asyncio.ensure_future(on.client.call("work"))
        await on.server.until(lambda: on.server.executions["work"])
        await on.send(first)
        async with asyncio.timeout(WAIT_S):
            while not working.done():
                on.process.popen.send_signal(first)  # soon after the first it is the same signal, from two sides
                await asyncio.wait((working,), timeout=0.1)
        assert await exit_code(on.process) == (130 if first == signal.SIGINT else 0)
        reply = await working
        assert (reply.status, reply.error["data"]["reason"]) == (503, "shutting_down")
        assert [answer.body for answer in on.server.answers] == [{"result": CANCELLED}]
        assert "Traceback" not in on.process.log()


async def test_a_changed_file_is_served_anew_without_waiting_for_users(tmp_path: Path) -> None:
    async with offer_tools(AskingServer()) as server:
        options = {"port": 0, "admin": False, "lame_duck": FOREVER, "drain": FOREVER}
        config = write_config(tmp_path, server.url, **options)
        async with command("serve", "-c", config, "--reload") as process:
            async with RoundClient(process.url) as client:
                await client.call("book")
            write_config(tmp_path, server.url, **options, keepalive="20s")
            async with asyncio.timeout(WAIT_S):
                while len(events(process, "serving")) < 2:  # noqa: ASYNC110 -- the log is written by another process
                    await asyncio.sleep(0.01)
            async with RoundClient(f"http://127.0.0.1:{events(process, 'serving')[1]['port']}/mcp") as client:
                assert (await client.call("plain")).text == "plain"
            process.popen.send_signal(signal.SIGINT)
            assert await exit_code(process) == 130
