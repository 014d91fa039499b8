"""Rounds behind one endpoint for several upstreams: the question finds its client, and the answer its server."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.asking_server import AskingServer, Call, RpcError
from tests.support.asking_tools import FOLDERS, PAGE, ROOTS, filled, offer_tools
from tests.support.round_client import RoundClient
from tests.support.running_gateway import running_gateway

FROZEN = {"code": -32602, "message": "Invalid or expired request state"}


@pytest.fixture
async def servers() -> AsyncIterator[tuple[AskingServer, AskingServer]]:
    async with AskingServer() as one, AskingServer(correlated=False) as two:
        yield offer_tools(one), offer_tools(two)


@pytest.fixture
async def client(servers: tuple[AskingServer, AskingServer]) -> AsyncIterator[RoundClient]:
    one, two = ({"url": server.url, "era": "legacy"} for server in servers)
    async with running_gateway(upstreams={"one": one, "two": two}) as gateway, RoundClient(gateway.url) as client:
        yield client
        await gateway.until_idle()


async def test_calls_of_one_name_on_two_servers_do_not_meet(
    servers: tuple[AskingServer, AskingServer], client: RoundClient
) -> None:
    asked = {name: await client.call(f"{name}__book", {"key": "k"}) for name in ("one", "two")}
    for name, other in (("one", "two"), ("two", "one")):
        crossed = await client.call(
            f"{name}__book", {"key": "k"}, answers={"elicitation_1": filled("Eve")}, state=asked[other].state
        )
        assert (crossed.status, crossed.error) == (400, FROZEN)
    for name, reply in asked.items():
        answers = {"elicitation_1": filled(f"for {name}")}
        done = await client.call(f"{name}__book", {"key": "k"}, answers=answers, state=reply.state)
        assert done.text == f"for {name}"
    assert [server.executions for server in servers] == [{"k": 1}, {"k": 1}]
    assert [len(server.answers) for server in servers] == [1, 1]


async def test_several_rounds(client: RoundClient) -> None:
    reply = await client.call("two__in_turn", {"count": 3})
    for number in range(1, 4):
        answers = {f"elicitation_{number}": filled(f"n{number}")}
        reply = await client.call("two__in_turn", {"count": 3}, answers=answers, state=reply.state)
    assert reply.text == "n1,n2,n3"


async def test_a_page_to_visit_first(servers: tuple[AskingServer, AskingServer], client: RoundClient) -> None:
    visited: list[bool] = []

    @servers[0].tool
    async def pay(_call: Call) -> str:
        if not visited:
            raise RpcError(-32042, "Open a page first", {"elicitations": [PAGE]})
        return "paid"

    asked = await client.call("one__pay")
    visited.append(True)
    done = await client.call("one__pay", answers={"elicitation_1": {"action": "accept"}}, state=asked.state)
    assert done.text == "paid"


async def test_a_prompt(servers: tuple[AskingServer, AskingServer], client: RoundClient) -> None:
    async def greet(call: Call) -> Any:
        text = (await call.ask(ROOTS))["roots"][0]["uri"]
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}

    servers[1].prompts["greet"] = greet
    asked = await client.request("prompts/get", "two__greet")
    done = await client.request("prompts/get", "two__greet", answers={"roots_1": FOLDERS}, state=asked.state)
    assert done.result["messages"][0]["content"]["text"] == "file:///srv"
