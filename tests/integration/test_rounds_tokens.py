"""The `requestState` of a legacy server's round: good once, for one request, and silent about the rest."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.asking_server import AskingServer
from tests.support.asking_tools import (
    filled,
    offer_tools,
)
from tests.support.round_client import RoundClient
from tests.support.running_gateway import RunningGateway, running_gateway

FROZEN = {"code": -32602, "message": "Invalid or expired request state"}


@pytest.fixture
async def server() -> AsyncIterator[AskingServer]:
    async with AskingServer() as server:
        yield offer_tools(server)


@pytest.fixture
async def gateway(server: AskingServer) -> AsyncIterator[RunningGateway]:
    async with running_gateway(server) as gateway:
        yield gateway
        await gateway.until_at_rest()
        assert not server.unheard
    assert not server.sessions


@pytest.fixture
async def client(gateway: RunningGateway) -> AsyncIterator[RoundClient]:
    async with RoundClient(gateway.url) as client:
        yield client


async def test_a_token_is_good_for_one_use(server: AskingServer, client: RoundClient) -> None:
    asked = await client.call("in_turn", {"count": 2})
    answers = {"elicitation_1": filled("Ada")}
    second = await client.call("in_turn", {"count": 2}, answers=answers, state=asked.state)
    again = await client.call("in_turn", {"count": 2}, answers=answers, state=asked.state)
    assert (again.status, again.error) == (400, FROZEN)
    answers = {"elicitation_2": filled("Bob")}
    assert (await client.call("in_turn", {"count": 2}, answers=answers, state=second.state)).text == "Ada,Bob"
    again = await client.call("in_turn", {"count": 2}, answers=answers, state=second.state)
    assert again.error == FROZEN
    assert server.executions == {"in_turn": 1}


@pytest.mark.parametrize(
    "change",
    [
        {"target": "in_turn"},
        {"params": {"arguments": {"key": "other"}}},
        {"params": {"arguments": {"key": "k", "more": 1}}},
        {"params": {"arguments": {}}},
        {"params": {}},
        {"method": "prompts/get"},
    ],
)
async def test_a_token_is_bound_to_the_request(server: AskingServer, client: RoundClient, change: Any) -> None:
    asked = await client.call("book", {"key": "k"})
    request = {"method": "tools/call", "target": "book", "params": {"arguments": {"key": "k"}}, **change}
    answers = {"elicitation_1": filled("Eve")}
    refused = await client.request(**request, answers=answers, state=asked.state)
    assert (refused.status, refused.error) == (400, FROZEN)
    assert not server.answers
    done = await client.call("book", {"key": "k"}, answers={"elicitation_1": filled("Ada")}, state=asked.state)
    assert done.text == "Ada"
    assert server.executions == {"k": 1}


async def test_the_order_of_arguments_does_not_matter(client: RoundClient) -> None:
    asked = await client.call("book", {"key": "k", "more": {"a": 1, "b": 2}})
    reordered = {"more": {"b": 2, "a": 1}, "key": "k"}
    assert (await client.call("book", reordered, answers={"elicitation_1": filled("Ada")}, state=asked.state)).text


@pytest.mark.parametrize("state", ["", "x", "A" * 100_000, "gAAAAA", "\u00e9"])
async def test_what_is_no_token_is_refused_and_nothing_runs(
    server: AskingServer, client: RoundClient, state: str
) -> None:
    refused = await client.call("book", answers={"elicitation_1": filled("Eve")}, state=state)
    assert (refused.status, refused.error) == (400, FROZEN)
    assert not server.executions


async def test_a_token_says_nothing_of_the_upstream(client: RoundClient, server: AskingServer) -> None:
    asked = await client.call("book")
    for secret in ("docs", "session-", "book", server.url):
        assert secret not in asked.state


async def test_the_log_holds_neither_tokens_nor_answers(gateway: RunningGateway, client: RoundClient) -> None:
    asked = await client.call("book", {"key": "s3cr3t argument"})
    answers = {"elicitation_1": {"action": "accept", "content": {"name": 7_346_219}}}
    wrong = await client.call("book", {"key": "s3cr3t argument"}, answers=answers, state=asked.state)
    other = await client.call("book", {"key": "another"}, answers=answers, state=asked.state)
    answers = {"elicitation_1": filled("s3cr3t answer")}
    done = await client.call("book", {"key": "s3cr3t argument"}, answers=answers, state=asked.state)
    assert [wrong.status, other.status, done.text] == [400, 400, "s3cr3t answer"]
    log = str(gateway.log)
    assert "another request" in log  # why it was refused, for the operator
    for secret in (asked.state, asked.state[:40], "s3cr3t", "7346219"):
        assert secret not in log
