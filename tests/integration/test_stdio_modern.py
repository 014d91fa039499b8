"""Modern stdio servers: one process for everybody, and each to his own."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from tests.support.round_client import EVERYTHING, notified
from tests.support.stdio import StdioServer, ends, facts, heard, output, served


def modern(folder: Path, *options: str) -> StdioServer:
    return StdioServer(folder, "--era", "modern", *options)


async def test_one_process_serves_every_kind_of_client(tmp_path: Path) -> None:
    server = modern(tmp_path)
    async with served(server) as (gateway, client):
        assert "echo" in [tool["name"] for tool in (await client.request("tools/list")).result["tools"]]
        for capabilities in ({}, EVERYTHING, {"experimental": {"x": {}}}):
            reply = await client.call("echo", {"text": "hi"}, capabilities=capabilities)
            assert reply.text == "hi"
        discovered = await client.request("server/discover")
        assert discovered.result["capabilities"]["tools"] == {"listChanged": True}
        assert gateway.gateway.upstreams["git"].era == "modern"
        assert len(server.pids) == 1
        assert "initialize" not in server.methods()


async def test_many_requests_at_once_get_their_own_answers(tmp_path: Path) -> None:
    server = modern(tmp_path)
    async with served(server) as (gateway, client):
        texts = [str(number) for number in range(20)]
        calls = [asyncio.create_task(client.call("hold", {"text": text})) for text in texts]
        await gateway.until(lambda: server.methods().count("tools/call") == 20)
        await client.call("release")
        assert [reply.text for reply in await asyncio.gather(*calls)] == texts
        assert len(server.pids) == 1


async def test_progress_goes_by_its_token_and_the_log_to_nobody_when_two_could_have_it(tmp_path: Path) -> None:
    server = modern(tmp_path)
    meta = notified(progress="p", logs="info")
    async with served(server) as (gateway, client):
        alone = await client.call("report", meta=meta)
        assert [message["method"] for message in alone.notifications] == ["notifications/progress"] * 2 + [
            "notifications/message"
        ]
        held = asyncio.create_task(client.call("hold", {"text": "held"}, meta=meta))
        await gateway.until(lambda: "holding 1" in output(gateway))
        beside = await client.call("report", meta=meta)
        assert [message["method"] for message in beside.notifications] == ["notifications/progress"] * 2
        await client.call("release")
        assert (await held).notifications == []


async def test_a_client_that_leaves_cancels_its_request_and_nobody_elses(tmp_path: Path) -> None:
    async with served(modern(tmp_path)) as (gateway, client):
        leaving = asyncio.create_task(client.call("hold", {"text": "a"}))
        await gateway.until(lambda: "holding 1" in output(gateway))
        staying = asyncio.create_task(client.call("hold", {"text": "b"}))
        await gateway.until(lambda: "holding 2" in output(gateway))
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        await gateway.until(lambda: len(cancelled(output(gateway))) == 1)
        await client.call("release")
        assert (await staying).text == "b"
        assert len(cancelled(output(gateway))) == 1


def cancelled(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("cancelled")]


async def test_what_is_listened_for_is_heard_and_listened_for_again_when_it_ends(tmp_path: Path) -> None:
    server = modern(tmp_path)
    async with served(server) as (gateway, client), heard(gateway) as stream:
        await client.call("change")
        assert (await stream.message())["method"] == "notifications/tools/list_changed"
        await client.call("end_listening")
        await gateway.until(lambda: server.methods().count("subscriptions/listen") == 2)
        os.kill(server.pids[0], signal.SIGKILL)
        await gateway.until(lambda: server.methods().count("subscriptions/listen") == 3)
        assert (await stream.message())["method"] == "notifications/tools/list_changed"  # something may be missed
        assert len(server.pids) == 2


async def test_a_request_whose_server_is_killed_fails_at_once_and_the_next_one_works(tmp_path: Path) -> None:
    server = modern(tmp_path)
    async with served(server) as (gateway, client):
        held = [asyncio.create_task(client.call("hold")) for _ in range(3)]
        await gateway.until(lambda: "holding 3" in output(gateway))
        os.kill(server.pids[0], signal.SIGKILL)
        async with asyncio.timeout(1):
            replies = await asyncio.gather(*held)
        assert {(reply.status, reply.error["data"]["reason"]) for reply in replies} == {(502, "outcome_unknown")}
        assert (await client.call("echo", {"text": "hi"})).text == "hi"
        assert server.methods(server.pids[1]) == ["server/discover", "tools/call"]


async def test_a_server_that_asks_although_it_must_not_is_told_so(tmp_path: Path) -> None:
    async with served(modern(tmp_path)) as (_gateway, client):
        assert (await client.call("roots")).text == "2026-07-28 has no requests of servers"


async def test_a_process_that_nobody_needs_is_ended_and_one_that_is_listened_to_is_not(tmp_path: Path) -> None:
    server = modern(tmp_path)
    async with served(server, sessions={"idle": "50ms"}) as (gateway, client):
        assert (await facts(client))["calls"] == 1
        await gateway.until(lambda: not server.alive)
        assert ends(gateway) == []
        async with heard(gateway):
            await client.call("echo")
            await gateway.until(lambda: len(server.pids) == 2)
            assert (await facts(client))["calls"] == 2


async def test_a_server_that_was_rolled_back_is_found_to_be_a_legacy_one(tmp_path: Path) -> None:
    """What the gateway starts after the death of a modern server need not be one."""
    era = tmp_path / "era"
    era.write_text("modern")
    server = modern(tmp_path)
    configured = server.configured()
    shell = f"exec {configured['command']} {' '.join(configured['args'][:-1])} $(cat {era})"
    changed: dict[str, Any] = {"command": "/bin/sh", "args": ["-c", shell]}
    async with served(server, **changed) as (gateway, client):
        assert (await client.call("echo", {"text": "hi"})).text == "hi"
        era.write_text("legacy")
        os.kill(server.pids[0], signal.SIGKILL)
        await gateway.until(lambda: ends(gateway))
        refused = await client.call("echo")
        assert refused.error["data"]["reason"] == "nonsense"
        assert (await client.call("echo", {"text": "hi"})).text == "hi"
        assert gateway.gateway.upstreams["git"].era == "legacy"
