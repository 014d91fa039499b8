"""Servers that the gateway starts: what a client sees of them, and what they see."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.round_client import EVERYTHING, RoundClient, notified
from tests.support.running_gateway import running_gateway
from tests.support.stdio import StdioServer, facts, heard, output, served

# --- the way there ---


async def test_a_server_is_started_for_the_first_request_and_serves_the_rest(tmp_path: Path) -> None:
    server = StdioServer(tmp_path)
    async with served(server) as (_gateway, client):
        assert server.notes == []
        tools = await client.request("tools/list")
        assert "echo" in [tool["name"] for tool in tools.result["tools"]]
        assert (await client.call("echo", {"text": "hi"})).text == "hi"
        [pid] = server.pids
        assert server.methods(pid)[:3] == ["server/discover", "initialize", "notifications/initialized"]
    assert server.alive == []


async def test_a_server_has_the_named_part_of_the_environment_and_what_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in os.environ:
        monkeypatch.delenv(name)
    inherited = {name: f"{name} here" for name in ("HOME", "LANG", "LC_TIME", "PATH", "SHELL", "TMPDIR", "TZ", "USER")}
    for name, value in {**inherited, "SOME_API_KEY": "not for you", "PYTHONPATH": "nor this", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    env = {"TOKEN": "topsecret", "HOME": "/elsewhere", "EMPTY": ""}
    async with served(StdioServer(tmp_path), env=env, cwd=str(tmp_path)) as (_gateway, client):
        told = await facts(client)
    assert told["env"] == {**inherited, "TERM": "dumb", **env}
    assert told["cwd"] == str(tmp_path)


async def test_arguments_go_to_no_shell(tmp_path: Path) -> None:
    strange = "$HOME; touch x & `id` \"'é"
    async with served(StdioServer(tmp_path, "--era", strange)) as (_gateway, client):
        assert strange in (await facts(client))["argv"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"command": "no-such-program"}, "cannot be reached: its command is not to be found"),
        ({"command": "./no/such/program"}, "cannot be reached: its command is not to be found"),
        ({"command": "{folder}/text"}, "cannot be reached: its command cannot be run (Permission denied)"),
        ({"command": "{folder}/empty"}, "cannot be reached: its command cannot be run (Exec format error)"),
        ({"cwd": "{folder}/none"}, "cannot be reached: its command cannot be run (No such file or directory)"),
    ],
)
async def test_a_command_that_cannot_be_run_is_said_to_be_so(tmp_path: Path, change: dict[str, str], said: str) -> None:
    (tmp_path / "text").write_text("x")
    (tmp_path / "empty").touch(0o755)
    change = {key: value.format(folder=tmp_path) for key, value in change.items()}
    async with served(StdioServer(tmp_path), **change) as (_gateway, client):
        reply = await client.request("tools/list")
        assert reply.status == 502
        assert reply.error["message"] == f"Upstream 'git' {said}"
        assert reply.error["data"] == {"upstream": "git", "reason": "unreachable", "retryable": True}


async def test_a_program_is_found_on_the_path_of_its_own_environment(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    configured = StdioServer(tmp_path).configured()
    (folder / "my-server").symlink_to(configured["command"])
    changed = {"command": "my-server", "env": {"PATH": str(folder)}}
    async with served(StdioServer(tmp_path), **changed) as (_gateway, client):
        assert (await client.call("echo", {"text": "hi"})).text == "hi"


# --- what is said ---


async def test_a_line_may_be_as_long_as_a_message_and_no_longer(tmp_path: Path) -> None:
    async with served(StdioServer(tmp_path), max_message_bytes="1MiB") as (_gateway, client):
        for size in (1, 65_536, 300_000, 1_000_000):
            assert len((await client.call("big", {"size": size})).text) == size
        held = asyncio.create_task(client.call("hold", {"text": "held"}))
        reply = await client.call("big", {"size": 5_000_000})
        assert (reply.status, reply.error["data"]["reason"]) == (502, "too_large")
        assert (await client.call("echo", {"text": "after"})).text == "after"
        assert (await client.call("release")).text == "1"
        assert (await held).text == "held"


async def test_letters_may_come_in_parts_and_text_that_is_not_utf8_is_mended(tmp_path: Path) -> None:
    async with served(StdioServer(tmp_path)) as (_gateway, client):
        assert (await client.call("split")).text == "é"
        assert (await client.call("latin1")).text == "\N{REPLACEMENT CHARACTER}"


async def test_what_is_no_message_is_passed_over_and_logged(tmp_path: Path) -> None:
    async with served(StdioServer(tmp_path, "--banner")) as (gateway, client):
        assert (await client.call("noise", {"text": "x" * 5000})).text == "quiet"
        said = output(gateway, "stdout")
        assert said[:2] == ["starting ✓ v1", "[INFO] ready"]
        assert said[2] == "x" * 1000 + "..."
        assert said[3:] == [
            '{"level": "info", "msg": "a log record"}',
            "[1, 2]",
            '"text"',
            '{"jsonrpc": "2.0"',
            "\N{REPLACEMENT CHARACTER}" * 2,
        ]
        await gateway.until(lambda: "warn" in output(gateway))


async def test_a_talkative_server_does_not_flood_the_log(tmp_path: Path) -> None:
    async with served(StdioServer(tmp_path)) as (gateway, client):
        assert (await client.call("noise", {"text": "line", "lines": 5000})).text == "quiet"
        assert len(output(gateway, "stdout")) == 100


async def test_a_server_that_floods_its_output_is_served_and_delays_no_other(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = StdioServer(tmp_path / "other")
    flooding = StdioServer(tmp_path)
    upstreams = {"flooding": flooding.configured(), "other": other.configured()}
    async with running_gateway(upstreams=upstreams) as gateway, RoundClient(gateway.url, capabilities={}) as client:
        assert (await client.call("flooding__flood", {"text": "x" * 100})).text == "flooding"
        for number in range(20):
            assert (await client.call("other__echo", {"text": str(number)})).text == str(number)
        assert (await client.call("flooding__echo", {"text": "hi"})).text == "hi"
        assert len(output(gateway, "stdout")) + len(output(gateway)) >= 100
    assert flooding.alive == []


async def test_secrets_do_not_get_into_the_log(tmp_path: Path) -> None:
    server = StdioServer(tmp_path, "--token", "topsecret2")
    async with served(server, env={"TOKEN": "topsecret1", "DEBUG": "1"}) as (gateway, client):
        await client.call("complain", {"text": "1: topsecret1\x1b[31m and topsecret2 refused"})
        await gateway.until(lambda: output(gateway))
        assert output(gateway) == ["1: *** [31m and *** refused"]
        await client.call("noise", {"text": "topsecret1"})
        assert "topsecret" not in str(gateway.log)


async def test_a_server_that_takes_no_more_messages_is_given_up_after_its_timeout(tmp_path: Path) -> None:
    """It is not even waited for longer by the look at its tools before the first call."""
    async with served(StdioServer(tmp_path, "--deaf"), era="legacy", timeout="200ms") as (_gateway, client):
        reply = await client.call("echo", {"text": "x" * 1_000_000})
        assert reply.error["message"] == "Upstream 'git' sent nothing for 0.2 s"


async def test_errors_without_an_id_are_those_of_the_only_request(tmp_path: Path) -> None:
    async with served(StdioServer(tmp_path)) as (_gateway, client):
        reply = await client.call("null_id")
        assert reply.error == {"code": -32603, "message": "something broke"}


# --- many at once ---


async def test_calls_that_cannot_ask_share_a_process_and_get_their_own_answers(tmp_path: Path) -> None:
    server = StdioServer(tmp_path)
    async with served(server) as (gateway, client):
        await client.call("echo")
        texts = [str(number) for number in range(20)]
        calls = [asyncio.create_task(client.call("hold", {"text": text})) for text in texts]
        await gateway.until(lambda: server.methods().count("tools/call") == 21)
        assert (await client.call("release")).text == "20"
        assert [reply.text for reply in await asyncio.gather(*calls)] == texts
        assert len(server.pids) == 1


async def test_calls_that_may_ask_have_a_process_each_and_no_more_than_allowed(tmp_path: Path) -> None:
    server = StdioServer(tmp_path)
    async with served(server, sessions={"max": 3}) as (_gateway, client):

        async def call() -> dict[str, Any]:
            return await facts(client, capabilities=EVERYTHING)

        assert [told["capabilities"].keys() >= {"elicitation", "roots"} for told in [await call()]] == [True]
        await asyncio.gather(*(call() for _ in range(12)))
        assert len(set(server.pids)) <= 3
        assert len(server.alive) <= 3
    assert server.alive == []


async def test_progress_and_log_come_in_order_before_the_result(tmp_path: Path) -> None:
    async with served(StdioServer(tmp_path)) as (_gateway, client):
        reply = await client.call("report", meta=notified(progress="p", logs="info"))
        assert reply.text == "reported"
        assert [
            message["params"].get("progress", message["params"].get("data")) for message in reply.notifications
        ] == [
            1,
            2,
            "log",
        ]
        assert {m["params"]["progressToken"] for m in reply.notifications[:2]} == {"p"}


async def test_the_log_of_one_call_is_not_anothers(tmp_path: Path) -> None:
    """Two processes: the one call asks for the log, so that it is alone on its session."""
    async with served(StdioServer(tmp_path)) as (gateway, client):
        held = asyncio.create_task(client.call("hold", {"text": "held"}, meta=notified(logs="info")))
        await gateway.until(lambda: "holding 1" in output(gateway))
        reply = await client.call("report", {"text": "mine"}, meta=notified(logs="info"))
        assert [message["params"]["data"] for message in reply.notifications] == ["mine"]
        held.cancel()
        await asyncio.gather(held, return_exceptions=True)
        await gateway.until(lambda: any(line.startswith("cancelled") for line in output(gateway)))


async def test_a_change_reaches_those_who_listen(tmp_path: Path) -> None:
    async with served(StdioServer(tmp_path)) as (gateway, client):
        assert (await client.request("server/discover")).result["capabilities"]["tools"] == {"listChanged": True}
        async with heard(gateway) as stream:
            await client.call("change")
            assert (await stream.message())["method"] == "notifications/tools/list_changed"


async def test_what_comes_before_the_answer_to_initialize_is_no_matter(tmp_path: Path) -> None:
    async with served(StdioServer(tmp_path, "--early")) as (gateway, client):
        assert (await client.call("echo", {"text": "hi"})).text == "hi"
        await gateway.until(lambda: "an answer to no question" in output(gateway))
