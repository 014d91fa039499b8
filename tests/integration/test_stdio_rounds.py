"""Questions of stdio servers in the middle of a call, and the answers on their way back."""

import asyncio
import os
import signal
from pathlib import Path

from tests.support.asking_tools import FOLDERS, filled
from tests.support.round_client import EVERYTHING, Reply, RoundClient
from tests.support.stdio import StdioServer, ends, served

NAME = "elicitation_1"


async def ask(client: RoundClient, tool: str = "book", **arguments: object) -> Reply:
    reply = await client.call(tool, arguments, capabilities=EVERYTHING)
    assert reply.asks
    return reply


async def answer(client: RoundClient, asked: Reply, name: str, tool: str = "book", **arguments: object) -> Reply:
    [question] = asked.questions
    answers = {question: filled(name)}
    return await client.call(tool, arguments, answers=answers, state=asked.state, capabilities=EVERYTHING)


async def test_a_question_becomes_a_round_and_its_answer_reaches_the_call(tmp_path: Path) -> None:
    server = StdioServer(tmp_path)
    async with served(server) as (_gateway, client):
        asked = await ask(client)
        assert asked.questions[NAME]["params"]["message"] == "Name?"
        assert (await answer(client, asked, "Ada")).text == "Ada"
        assert server.methods().count("tools/call") == server.methods().count("response") == 1


async def test_a_call_may_ask_again_and_again(tmp_path: Path) -> None:
    async with served(StdioServer(tmp_path)) as (_gateway, client):
        asked = await ask(client, "in_turn", count=4)
        for name in "abc":
            asked = await answer(client, asked, name, "in_turn", count=4)
        assert (await answer(client, asked, "d", "in_turn", count=4)).text == "abcd"


async def test_roots_are_asked_for_though_nothing_says_by_which_call(tmp_path: Path) -> None:
    async with served(StdioServer(tmp_path)) as (_gateway, client):
        asked = await client.call("roots", capabilities=EVERYTHING)
        assert asked.questions["roots_1"]["method"] == "roots/list"
        answers = {"roots_1": FOLDERS}
        done = await client.call("roots", answers=answers, state=asked.state, capabilities=EVERYTHING)
        assert done.text == str([root["uri"] for root in FOLDERS["roots"]])


async def test_every_answer_reaches_the_call_that_asked(tmp_path: Path) -> None:
    """The server numbers its questions from 0 in each process, so that all of them have the same id."""
    server = StdioServer(tmp_path)
    async with served(server) as (gateway, client):
        names = [f"name {number}" for number in range(5)]
        asked = await asyncio.gather(*(ask(client) for _ in names))
        assert gateway.suspended == len(server.alive) == 5
        assert (await client.call("echo", {"text": "meanwhile"})).text == "meanwhile"
        pairs = list(zip(asked, names, strict=True))
        done = await asyncio.gather(*(answer(client, each, name) for each, name in reversed(pairs)))
        assert [reply.text for reply in done] == list(reversed(names))
        await gateway.until_idle()


async def test_suspended_calls_count_among_the_processes(tmp_path: Path) -> None:
    server = StdioServer(tmp_path)
    async with served(server, era="legacy", sessions={"max": 2}, connect_timeout="1s") as (_gateway, client):
        first, second = await ask(client), await ask(client)
        full = await client.call("echo")
        assert (full.status, full.error["data"]["reason"]) == (503, "full")
        assert (await answer(client, first, "Ada")).text == "Ada"
        assert (await client.call("echo", {"text": "room"})).text == "room"
        assert (await answer(client, second, "Bob")).text == "Bob"
        assert len(server.alive) <= 2


async def test_a_call_whose_server_died_while_its_client_was_away_is_lost(tmp_path: Path) -> None:
    server = StdioServer(tmp_path)
    async with served(server) as (gateway, client):
        asked = await ask(client)
        os.kill(server.pids[-1], signal.SIGKILL)
        await gateway.until(lambda: ends(gateway))
        reply = await answer(client, asked, "Ada")
        assert (reply.error["code"], reply.error["data"]) == (-32602, {"reason": "lost"})
        assert (await answer(client, await ask(client), "Ada")).text == "Ada"


async def test_a_question_that_nobody_answers_ends_with_its_process(tmp_path: Path) -> None:
    server = StdioServer(tmp_path)
    async with served(server, settings={"rounds": {"ttl": "1ms"}}) as (gateway, client):
        await ask(client)
        await gateway.until_idle()
        await gateway.until(lambda: not server.alive)
        assert server.methods()[-2:] == ["response", "notifications/cancelled"]


async def test_a_question_that_was_not_declared_is_refused(tmp_path: Path) -> None:
    async with served(StdioServer(tmp_path)) as (_gateway, client):
        reply = await client.call("book", capabilities={})
        assert (reply.status, reply.error["code"]) == (400, -32021)
        assert reply.error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
        assert (await client.call("echo", {"text": "hi"})).text == "hi"
