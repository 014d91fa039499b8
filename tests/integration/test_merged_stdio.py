"""Ten processes behind one endpoint: one hangs, one is not there, one is slow to start."""

import asyncio
from pathlib import Path

from tests.support.merged import UNAVAILABLE
from tests.support.round_client import Reply, RoundClient
from tests.support.running_gateway import running_gateway
from tests.support.stdio import StdioServer, descendants

LOST = ("u1", "u4", "u7")


def names(listed: Reply) -> list[str]:
    return [tool["name"] for tool in listed.result["tools"]]


def unavailable(listed: Reply) -> list[str]:
    found: list[str] = listed.result["_meta"].get(UNAVAILABLE, [])
    return found


async def test_the_seven_others_are_not_delayed_and_the_list_says_who_is_missing(tmp_path: Path) -> None:
    before = descendants()
    gate = tmp_path / "gate"
    servers = {f"u{number}": StdioServer(tmp_path / f"u{number}") for number in range(10)}
    servers["u1"].options = ("--initialize", "silence")
    servers["u7"].options = ("--gate", str(gate))
    for name in servers:
        (tmp_path / name).mkdir()
    tools = {"include": ["echo"]}
    upstreams = {name: server.configured(era="legacy", tools=tools) for name, server in servers.items()}
    upstreams["u4"]["command"] = "no-such-program"
    fine = [name for name in servers if name not in LOST]
    async with (
        running_gateway(upstreams=upstreams, list_timeout="1500ms") as gateway,
        RoundClient(gateway.url, capabilities={}) as client,
    ):
        stuck = [asyncio.create_task(client.call(f"{name}__echo", {"text": "late"})) for name in ("u1", "u7")]
        calls = await asyncio.gather(*(client.call(f"{name}__echo", {"text": name}) for name in fine))
        assert [call.text for call in calls] == fine
        assert not any(call.done() for call in stuck)

        listed = await client.request("tools/list")
        assert names(listed) == [f"{name}__echo" for name in fine]
        assert unavailable(listed) == list(LOST)

        gate.touch()
        assert (await stuck[1]).text == "late"
        listed = await client.request("tools/list")
        assert unavailable(listed) == ["u1", "u4"]
        stuck[0].cancel()
        await asyncio.gather(*stuck, return_exceptions=True)
    assert descendants() <= before
