"""Two replicas on one Redis: whichever gets the retry, the call goes on where it is."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from cryptography.fernet import Fernet
from redis.asyncio import Redis

from gateway.store.connection import Argument, SharedStore
from tests.support.api_keys import keys
from tests.support.asking_server import AskingServer, Call, RpcError
from tests.support.asking_tools import ELICIT, FORM, filled, offer_tools
from tests.support.redis_server import RedisServer
from tests.support.round_client import RoundClient, notified
from tests.support.running_gateway import RunningGateway, running_gateway

KEY = Fernet.generate_key().decode()
ADA = {"elicitation_1": filled("Ada")}
REFUSED = {"code": -32602, "message": "Invalid or expired request state"}
PER_RELAYED_ROUND = 12
"""Commands that a round may cost whose retry is relayed; docs/sizing.md has what is measured."""


@pytest.fixture
async def redis() -> AsyncIterator[RedisServer]:
    async with RedisServer() as redis:
        yield redis


@pytest.fixture
async def server() -> AsyncIterator[AskingServer]:
    async with AskingServer() as server:
        yield offer_tools(server)


@asynccontextmanager
async def pair(
    server: AskingServer, redis: RedisServer, **sections: object
) -> AsyncIterator[tuple[RunningGateway, RunningGateway]]:
    state = {"store": redis.url, "keys": KEY}
    async with (
        running_gateway(server, state=state, **sections) as one,  # type: ignore[arg-type]
        running_gateway(server, state=state, **sections) as other,  # type: ignore[arg-type]
    ):
        yield one, other
        await one.until_idle()
        await other.until_idle()


@pytest.fixture
async def replicas(server: AskingServer, redis: RedisServer) -> AsyncIterator[tuple[RunningGateway, RunningGateway]]:
    async with pair(server, redis) as replicas:
        yield replicas


@pytest.fixture
async def one(replicas: tuple[RunningGateway, RunningGateway]) -> AsyncIterator[RoundClient]:
    async with RoundClient(replicas[0].url, wait_s=30) as client:
        yield client


@pytest.fixture
async def other(replicas: tuple[RunningGateway, RunningGateway]) -> AsyncIterator[RoundClient]:
    async with RoundClient(replicas[1].url, wait_s=30) as client:
        yield client


async def test_a_retry_is_served_by_the_replica_that_keeps_its_round(
    server: AskingServer, one: RoundClient, other: RoundClient
) -> None:
    @server.tool
    async def greet(call: Call) -> str:
        first = await call.ask(ELICIT, FORM)
        second = await call.ask(ELICIT, FORM)
        return f"{first['content']['name']} and {second['content']['name']}"

    asked = await one.call("greet")
    again = await other.call("greet", answers=ADA, state=asked.state)
    done = await other.call("greet", answers={"elicitation_2": filled("Bob")}, state=again.state)
    assert done.text == "Ada and Bob"
    assert server.executions == {"greet": 1}


async def test_a_used_token_is_refused_everywhere(server: AskingServer, one: RoundClient, other: RoundClient) -> None:
    @server.tool
    async def greet(call: Call) -> str:
        return str((await call.ask(ELICIT, FORM))["content"]["name"])

    asked = await one.call("greet")
    assert (await other.call("greet", answers=ADA, state=asked.state)).text == "Ada"
    for client in (one, other):
        assert (await client.call("greet", answers=ADA, state=asked.state)).error == REFUSED
    assert len(server.answers) == 1


async def test_of_many_copies_of_a_retry_one_is_served(
    server: AskingServer, one: RoundClient, other: RoundClient
) -> None:
    @server.tool
    async def greet(call: Call) -> str:
        return str((await call.ask(ELICIT, FORM))["content"]["name"])

    asked = await one.call("greet")
    clients = [one, other] * 5
    replies = await asyncio.gather(*(client.call("greet", answers=ADA, state=asked.state) for client in clients))
    assert len([reply for reply in replies if "result" in reply.message]) == 1
    assert all(reply.error == REFUSED for reply in replies if "error" in reply.message)
    assert len(server.answers) == 1


async def test_a_wrong_answer_leaves_the_token_good(server: AskingServer, one: RoundClient, other: RoundClient) -> None:
    @server.tool
    async def greet(call: Call) -> str:
        return str((await call.ask(ELICIT, FORM))["content"]["name"])

    asked = await one.call("greet")
    wrong = {"elicitation_1": {"action": "accept", "content": {"name": 7}}}
    refused = await other.call("greet", answers=wrong, state=asked.state)
    assert "inputResponses.elicitation_1" in refused.error["message"]
    assert (await other.call("greet", answers=ADA, state=asked.state)).text == "Ada"


async def test_progress_logs_and_a_large_result_are_relayed_in_order(
    server: AskingServer, one: RoundClient, other: RoundClient
) -> None:
    @server.tool
    async def recount(call: Call) -> str:
        await call.ask(ELICIT, FORM)
        for number in range(300):
            call.progress(number)
        call.log("error", "nearly there")
        return "x" * 3_000_000

    asked = await one.call("recount")
    done = await other.call("recount", answers=ADA, state=asked.state, meta=notified("p", "debug"))
    assert len(done.text) == 3_000_000
    told = [note["params"].get("progress", note["params"].get("data")) for note in done.notifications]
    assert told == [*range(300), "nearly there"]
    assert {note["params"].get("progressToken", "p") for note in done.notifications} == {"p"}


async def test_an_error_of_the_server_is_relayed(server: AskingServer, one: RoundClient, other: RoundClient) -> None:
    @server.tool
    async def fail(call: Call) -> str:
        await call.ask(ELICIT, FORM)
        raise RpcError(-32050, "no luck", {"why": "none"})

    asked = await one.call("fail")
    failed = await other.call("fail", answers=ADA, state=asked.state)
    assert failed.error["message"] == "no luck"
    assert failed.error["data"]["why"] == "none"


async def test_a_client_that_leaves_the_relaying_replica_cancels_the_call(
    server: AskingServer, one: RoundClient, other: RoundClient
) -> None:
    goes_on = asyncio.Event()

    @server.tool
    async def linger(call: Call) -> str:
        await call.ask(ELICIT, FORM)
        goes_on.set()
        await asyncio.Event().wait()
        return "never"

    asked = await one.call("linger")
    retry = asyncio.create_task(other.call("linger", answers=ADA, state=asked.state))
    await goes_on.wait()
    retry.cancel()
    await server.until(lambda: server.cancelled and not server.running)


def note_commands(store: SharedStore, sent: list[str]) -> None:
    """Note the name of every command that is sent; the server's own count has those of scripts in it."""
    send = store._send

    async def noted(client: Redis, command: tuple[Argument, ...]) -> Any:
        sent.append(str(command[0]))
        return await send(client, command)

    store._send = noted  # type: ignore[method-assign]


async def test_a_plain_call_costs_no_command(
    redis: RedisServer, replicas: tuple[RunningGateway, RunningGateway], one: RoundClient, server: AskingServer
) -> None:
    @server.tool
    async def greet(call: Call) -> str:
        return "hello"

    await one.call("greet")
    store = replicas[0].gateway.store
    assert store is not None
    sent: list[str] = []
    note_commands(store, sent)
    for _ in range(100):
        assert (await one.call("greet")).text == "hello"
    assert not [name for name in sent if name not in ("SET", "EXPIRE", "XTRIM", "XREAD")], "beside the heartbeat"
    assert len(sent) < 100


async def test_a_round_costs_few_commands(
    replicas: tuple[RunningGateway, RunningGateway], one: RoundClient, other: RoundClient, server: AskingServer
) -> None:
    @server.tool
    async def greet(call: Call) -> str:
        return str((await call.ask(ELICIT, FORM))["content"]["name"])

    sent: list[str] = []
    for replica in replicas:
        assert replica.gateway.store is not None
        note_commands(replica.gateway.store, sent)

    async def rounds(client: RoundClient) -> int:
        sent.clear()
        for _ in range(20):
            asked = await one.call("greet")
            assert (await client.call("greet", answers=ADA, state=asked.state)).text == "Ada"
        return len([name for name in sent if name not in ("EXPIRE", "XTRIM")])

    assert await rounds(one) <= 20 * 4
    assert await rounds(other) <= 20 * PER_RELAYED_ROUND


async def test_nothing_in_the_store_can_be_read(
    redis: RedisServer, server: AskingServer, one: RoundClient, other: RoundClient
) -> None:
    secret = "the-secret-of-ada"
    reached = asyncio.Event()
    goes_on = asyncio.Event()

    @server.tool
    async def whisper(call: Call) -> str:
        await call.ask(ELICIT, FORM)
        reached.set()
        await goes_on.wait()
        return "w" * 100_000 + secret

    arguments = {"word": secret}
    asked = await one.call("whisper", arguments)
    async with redis.watched() as seen:
        retry = asyncio.create_task(
            other.call("whisper", arguments, answers={"elicitation_1": filled(secret)}, state=asked.state)
        )
        await reached.wait()
        goes_on.set()
        assert secret in (await retry).text
    assert b"XADD" in seen
    assert b"claim:" in seen
    for word in (secret, "whisper", "elicitation_1", "anonymous"):
        assert word.encode() not in seen


async def test_one_tenant_cannot_go_on_with_the_call_of_another(server: AskingServer, redis: RedisServer) -> None:
    @server.tool
    async def greet(call: Call) -> str:
        return str((await call.ask(ELICIT, FORM))["content"]["name"])

    async with (
        pair(server, redis, **keys(ada="key-of-ada", bob="key-of-bob")) as (first, second),
        RoundClient(first.url, key="key-of-ada") as one,
        RoundClient(second.url, key="key-of-ada") as other,
    ):
        asked = await one.call("greet")
        for client in (one, other):
            refused = await client.call("greet", answers=ADA, state=asked.state, key="key-of-bob")
            assert refused.error == REFUSED
        assert not server.answers
        assert (await other.call("greet", answers=ADA, state=asked.state)).text == "Ada"


async def test_replicas_with_other_keys_know_nothing_of_each_other(server: AskingServer, redis: RedisServer) -> None:
    @server.tool
    async def greet(call: Call) -> str:
        return str((await call.ask(ELICIT, FORM))["content"]["name"])

    foreign = {"store": redis.url, "keys": Fernet.generate_key().decode()}
    async with (
        running_gateway(server, state={"store": redis.url, "keys": KEY}) as own,
        running_gateway(server, state=foreign) as stranger,
        RoundClient(own.url) as one,
        RoundClient(stranger.url) as other,
    ):
        asked = await one.call("greet")
        assert (await other.call("greet", answers=ADA, state=asked.state)).error == REFUSED
        assert (await one.call("greet", answers=ADA, state=asked.state)).text == "Ada"
