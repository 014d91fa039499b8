"""How stdio servers begin and end: found out about, killed in mid-call, started again, and never left behind."""

import asyncio
import fcntl
import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from gateway import app
from gateway.upstream import child, connect, crashes
from tests.support.round_client import EVERYTHING, Reply
from tests.support.running_gateway import RunningGateway
from tests.support.stdio import StdioServer, descendants, ends, facts, heard, is_alive, output, served

HANDSHAKE = ["initialize", "notifications/initialized"]


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little patience with servers that do not go."""
    monkeypatch.setattr(child, "CLOSE_S", 0.05)
    monkeypatch.setattr(child, "TERM_S", 0.05)
    monkeypatch.setattr(app, "_FAREWELL_S", 0.05)


async def close(gateway: RunningGateway) -> None:
    """Shut down, with nothing left of the time to drain."""
    gateway.gateway._drained_by_s = 0.0
    await gateway.gateway.close()


def unknown_outcome(reply: Reply, how: str) -> None:
    assert reply.status == 502
    message = f"Upstream 'git' {how} before it answered: the outcome of the request is unknown"
    assert reply.error["message"] == message
    assert reply.error["data"] == {"upstream": "git", "reason": "outcome_unknown", "retryable": False}


# --- which era ---


async def test_a_server_that_refuses_the_question_is_initialized_where_it_was_asked(tmp_path: Path) -> None:
    server = StdioServer(tmp_path)
    async with served(server) as (_gateway, client):
        assert (await client.call("echo", {"text": "hi"})).text == "hi"
        assert (await client.call("echo", {"text": "hi"}, capabilities=EVERYTHING)).text == "hi"
        first, second = server.pids
        assert server.methods(first)[:3] == ["server/discover", *HANDSHAKE]
        assert server.methods(second)[:2] == HANDSHAKE


@pytest.mark.parametrize(
    ("how", "first"),
    [
        ("exit", ["server/discover"]),
        ("silence", ["server/discover"]),
        ("mute", ["server/discover"]),
        ("spoil", ["server/discover", "initialize"]),
    ],
)
async def test_a_server_that_the_question_spoils_is_started_once_more(
    tmp_path: Path, how: str, first: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "QUIET_S", 0.7 if first == ["server/discover"] else 5.0)
    server = StdioServer(tmp_path, "--discover", how, "--banner")
    async with served(server) as (gateway, client):
        assert (await client.call("echo", {"text": "hi"})).text == "hi"
        assert (await client.call("big", {"size": 300_000})).text == "x" * 300_000
        asked, used = server.pids
        assert server.methods(asked) == first
        assert server.methods(used)[:2] == HANDSHAKE
        await gateway.until(lambda: server.alive == [used])
        assert gateway.gateway.upstreams["git"].era == "legacy"


async def test_a_server_whose_era_is_configured_is_not_asked(tmp_path: Path) -> None:
    server = StdioServer(tmp_path, "--discover", "exit")
    async with served(server, era="legacy") as (_gateway, client):
        assert (await client.call("echo", {"text": "hi"})).text == "hi"
        assert server.methods()[:2] == HANDSHAKE


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_server_that_takes_long_to_start_is_served_as_what_it_is(
    tmp_path: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "QUIET_S", 0.1)
    gate = tmp_path / "gate"
    server = StdioServer(tmp_path, "--gate", str(gate), "--era", era)
    async with served(server) as (gateway, client):
        call = asyncio.create_task(client.call("echo", {"text": "hi"}))
        await gateway.until(lambda: len(server.pids) == 2)
        gate.touch()
        assert (await call).text == "hi"
        assert gateway.gateway.upstreams["git"].era == era
        await gateway.until(lambda: len(server.alive) == 1)


async def test_a_modern_server_that_is_slow_to_say_so_is_served_as_one_although_it_takes_initialize_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "QUIET_S", 0.1)
    gate = tmp_path / "gate"
    server = StdioServer(
        tmp_path, "--gate", str(gate), "--era", "both", "--discover", "gate", "--initialize", "silence"
    )
    async with served(server) as (gateway, client):
        call = asyncio.create_task(client.call("echo", {"text": "hi"}))
        await gateway.until(lambda: "initialize" in server.methods())
        gate.touch()
        assert (await call).text == "hi"
        assert gateway.gateway.upstreams["git"].era == "modern"
        await gateway.until(lambda: server.alive == server.pids[:1])


async def test_a_server_that_cannot_start_is_said_to_have_ended(tmp_path: Path) -> None:
    server = StdioServer(tmp_path, "--discover", "exit", "--initialize", "exit")
    async with served(server) as (gateway, client):
        reply = await client.request("tools/list")
        assert reply.error["message"] == "Upstream 'git' ended with exit status 3 during initialize"
        assert reply.error["data"]["retryable"]
        await gateway.until(lambda: output(gateway) == ["no configuration"])


# --- death ---


async def test_a_call_whose_server_is_killed_fails_at_once_and_the_next_one_works(tmp_path: Path) -> None:
    server = StdioServer(tmp_path)
    async with served(server) as (gateway, client):
        for _ in range(2):
            held = asyncio.create_task(client.call("hold"))
            await gateway.until(lambda: 0 < len(output(gateway)) == len(server.pids))
            os.kill(server.pids[-1], signal.SIGKILL)
            async with asyncio.timeout(1):
                unknown_outcome(await held, "was killed by signal 9 (SIGKILL)")
            assert (await client.call("echo", {"text": "hi"})).text == "hi"
        assert len(server.pids) == 3


@pytest.mark.parametrize("capabilities", [{}, EVERYTHING])
async def test_a_server_that_crashes_tells_how_and_is_replaced(tmp_path: Path, capabilities: dict[str, Any]) -> None:
    server = StdioServer(tmp_path)
    async with served(server) as (gateway, client):
        reply = await client.call("crash", {"status": 7}, capabilities=capabilities)
        unknown_outcome(reply, "ended with exit status 7")
        assert (await facts(client, capabilities=capabilities))["pid"] == server.pids[1]
        await gateway.until(lambda: "crashing" in output(gateway))


async def test_the_death_of_an_idle_server_is_not_noticed_by_clients(tmp_path: Path) -> None:
    server = StdioServer(tmp_path)
    async with served(server) as (gateway, client):
        for _ in range(2):
            assert (await client.call("echo", {"text": "hi"})).text == "hi"
            os.kill(server.pids[-1], signal.SIGKILL)
            await gateway.until(lambda: len(ends(gateway)) == len(server.pids))
        assert (await client.call("echo", {"text": "hi"})).text == "hi"
        assert server.methods().count("initialize") == len(server.pids) == 3


async def test_the_death_of_one_process_is_nothing_to_the_calls_on_others(tmp_path: Path) -> None:
    server = StdioServer(tmp_path)
    async with served(server) as (gateway, client):
        held = asyncio.create_task(client.call("hold", {"text": "held"}))
        await gateway.until(lambda: "holding 1" in output(gateway))
        reply = await client.call("crash", capabilities=EVERYTHING)
        unknown_outcome(reply, "ended with exit status 3")
        await client.call("release")
        assert (await held).text == "held"


async def test_a_dead_server_is_known_to_be_so_although_its_stdout_is_held_open(tmp_path: Path) -> None:
    server = StdioServer(tmp_path)
    async with served(server) as (gateway, client):
        await client.call("spawn", {"shares_stdout": True, "apart": True})
        held = asyncio.create_task(client.call("hold"))
        await gateway.until(lambda: "holding 1" in output(gateway))
        os.kill(server.pids[0], signal.SIGKILL)
        async with asyncio.timeout(2):
            unknown_outcome(await held, "was killed by signal 9 (SIGKILL)")


async def test_a_server_that_keeps_ending_is_not_started_with_every_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crashes, "PAUSES_S", (0.0, 0.0, 0.0, 30.0))
    server = StdioServer(tmp_path, "--initialize", "exit")
    async with served(server, era="legacy") as (_gateway, client):
        for _ in range(4):
            reply = await client.request("tools/list")
            assert reply.error["message"] == "Upstream 'git' ended with exit status 3 during initialize"
        for _ in range(5):
            reply = await client.request("tools/list")
            assert reply.error["message"] == "Upstream 'git' keeps ending on its own, and is not started again yet"
            assert reply.error["data"] == {"upstream": "git", "reason": "unreachable", "retryable": True}
            assert 25 <= int(reply.headers["Retry-After"]) <= 31
        assert len(server.pids) == 4


# --- the end ---


async def test_a_server_that_ignores_its_closed_stdin_is_told_and_one_that_ignores_that_is_killed(
    tmp_path: Path, soon: None
) -> None:
    server = StdioServer(tmp_path, "--ignore-close", "--ignore-term")
    async with served(server) as (gateway, client):
        await client.call("echo")
        await close(gateway)
        assert "ignoring" in output(gateway)
        assert server.alive == []


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("status", [None, 0, 1])
async def test_what_a_server_has_started_goes_with_it(
    tmp_path: Path, soon: None, apart: bool, status: int | None
) -> None:
    server = StdioServer(tmp_path)
    async with served(server, era="legacy") as (gateway, client):
        spawned = int((await client.call("spawn", {"apart": apart})).text)
        assert is_alive(spawned)
        assert (os.getsid(spawned) != os.getsid(server.pids[0])) is apart
        if status is None:
            await close(gateway)
        else:
            await client.call("crash", {"status": status})
        await gateway.until(lambda: not is_alive(spawned))


@pytest.mark.parametrize("apart", [False, True])
async def test_a_process_that_is_another_one_every_moment_does_not_get_away(
    tmp_path: Path, soon: None, apart: bool
) -> None:
    locked = tmp_path / "locked"
    async with served(StdioServer(tmp_path), era="legacy") as (gateway, client):
        assert (await client.call("run_away", {"file": str(locked), "apart": apart})).text == "running"
        await close(gateway)
    with locked.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # as long as one of them runs, BlockingIOError


async def test_an_idle_process_is_ended(tmp_path: Path) -> None:
    server = StdioServer(tmp_path)
    async with served(server, sessions={"idle": "1ms"}) as (gateway, client):
        await client.call("echo")
        await gateway.until(lambda: gateway.gateway.upstreams["git"].sweep() or server.alive == [])
        assert ends(gateway) == []
        assert (await client.call("echo", {"text": "hi"})).text == "hi"


async def test_a_shutdown_ends_calls_in_flight_and_leaves_nothing(tmp_path: Path, soon: None) -> None:
    server = StdioServer(tmp_path)
    before = descendants()
    async with served(server) as (gateway, client):
        calls = [asyncio.create_task(client.call("hold", capabilities=each)) for each in ({}, EVERYTHING)]
        await gateway.until(lambda: output(gateway).count("holding 1") == 2)
        await close(gateway)
        assert descendants() == before
        assert [reply.status for reply in await asyncio.gather(*calls)] == [502, 502]


async def test_a_shutdown_waits_for_a_server_that_is_being_started(tmp_path: Path, soon: None) -> None:
    server = StdioServer(tmp_path, "--gate", str(tmp_path / "gate"))
    async with served(server, era="legacy") as (gateway, client):
        call = asyncio.create_task(client.call("echo"))
        await gateway.until(lambda: descendants())
        await close(gateway)
        await asyncio.gather(call, return_exceptions=True)
        assert server.alive == []


async def test_a_client_that_leaves_while_its_server_starts_leaves_a_server_for_the_next(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    server = StdioServer(tmp_path, "--gate", str(gate))
    async with served(server, era="legacy") as (gateway, client):
        call = asyncio.create_task(client.call("echo", capabilities=EVERYTHING))
        await gateway.until(lambda: server.pids)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        gate.touch()
        assert (await client.call("echo", {"text": "hi"}, capabilities=EVERYTHING)).text == "hi"
        assert len(server.alive) <= 2


async def test_a_client_that_leaves_cancels_its_call(tmp_path: Path) -> None:
    async with served(StdioServer(tmp_path)) as (gateway, client):
        for capabilities in ({}, EVERYTHING):
            held = asyncio.create_task(client.call("hold", capabilities=capabilities))
            await gateway.until(lambda: "holding 1" in output(gateway))
            held.cancel()
            await asyncio.gather(held, return_exceptions=True)
            await gateway.until(lambda: any(line.startswith("cancelled") for line in output(gateway)))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_supervisor_that_does_not_do_its_part_changes_nothing(
    tmp_path: Path, soon: None, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setattr(child, "_KILL_S", 0.05)
    server = StdioServer(tmp_path)
    async with served(server, era="legacy") as (gateway, client):
        held = asyncio.create_task(client.call("hold"))
        await gateway.until(lambda: "holding 1" in output(gateway))
        os.kill(psutil.Process(server.pids[0]).ppid(), number)
        if number == signal.SIGKILL:
            assert (await held).status == 502
            assert (await client.call("echo", {"text": "hi"})).text == "hi"
        await close(gateway)
        await asyncio.gather(held, return_exceptions=True)
        assert server.alive == []


# --- room ---


async def test_there_is_never_more_than_one_process_where_only_one_may_be(tmp_path: Path) -> None:
    server = StdioServer(tmp_path)
    most = 0
    async with served(server, sessions={"max": 1}) as (_gateway, client):

        async def watch() -> None:
            nonlocal most
            while True:
                most = max(most, len(server.alive))
                await asyncio.sleep(0)

        watching = asyncio.create_task(watch())
        for number in range(3):
            capabilities = {"experimental": {f"x{number}": {}}}
            assert (await client.call("echo", {"text": "hi"}, capabilities=capabilities)).text == "hi"
        watching.cancel()
        assert len(server.pids) == 3
    assert most == 1


async def test_a_call_that_finds_no_room_is_told_when_to_come_again(tmp_path: Path) -> None:
    server = StdioServer(tmp_path)
    async with served(server, era="legacy", sessions={"max": 1}, connect_timeout="1s") as (gateway, client):
        held = asyncio.create_task(client.call("hold"))
        await gateway.until(lambda: "holding 1" in output(gateway))
        full = await client.call("echo", capabilities=EVERYTHING)
        assert (full.status, full.error["data"]["reason"]) == (503, "full")
        assert int(full.headers["Retry-After"]) > 0
        await client.call("release")
        await held


async def test_an_idle_process_makes_room_for_a_call_where_listeners_take_the_rest(tmp_path: Path) -> None:
    server = StdioServer(tmp_path)
    async with served(server, sessions={"max": 2}) as (gateway, client):
        await client.call("echo")
        async with heard(gateway):
            reply = await client.call("echo", {"text": "hi"}, capabilities=EVERYTHING)
            assert reply.text == "hi"
            assert len(server.alive) <= 2
