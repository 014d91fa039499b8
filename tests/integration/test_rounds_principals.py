"""Whose round it is: principals by API key, what one must not do with another's token, and how many each may have."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.asking_server import AskingServer, Call
from tests.support.asking_tools import filled, offer_tools
from tests.support.round_client import RoundClient
from tests.support.running_gateway import RunningGateway, running_gateway

ALICE, BOB = "alice-key", "bob-key"
ADA = {"elicitation_1": filled("Ada")}
FROZEN = {"code": -32602, "message": "Invalid or expired request state"}
AUTH: dict[str, Any] = {
    "type": "api_key",
    "keys": [
        {"name": "alice", "sha256": hashlib.sha256(ALICE.encode()).hexdigest()},
        {"name": "bob", "sha256": hashlib.sha256(BOB.encode()).hexdigest(), "scopes": ["docs"]},
    ],
}


@pytest.fixture
async def server() -> AsyncIterator[AskingServer]:
    async with AskingServer() as server:
        yield offer_tools(server)
        assert not server.sessions


@pytest.fixture
async def gateway(server: AskingServer) -> AsyncIterator[RunningGateway]:
    async with running_gateway(server, auth=AUTH, rounds={"max_per_principal": 3}) as gateway:
        yield gateway
        await gateway.until_at_rest()


@pytest.fixture
async def client(gateway: RunningGateway) -> AsyncIterator[RoundClient]:
    async with RoundClient(gateway.url, key=ALICE) as client:
        yield client


async def test_nobody_gets_in_without_a_key(server: AskingServer, gateway: RunningGateway) -> None:
    async with RoundClient(gateway.url) as nobody:
        refused = await nobody.call("book")
        assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
        refused = await nobody.call("book", key="no-such-key")
        assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, 'Bearer error="invalid_token"')
        assert "no-such-key" not in str(refused.message)
    assert not server.sessions
    assert not server.executions


async def test_nobody_answers_without_a_key(server: AskingServer, client: RoundClient) -> None:
    asked = await client.call("book")
    async with RoundClient(client.url) as nobody:
        assert (await nobody.call("book", answers=ADA, state=asked.state)).status == 401
    assert not server.answers
    assert (await client.call("book", answers=ADA, state=asked.state)).text == "Ada"


async def test_a_key_opens_only_the_upstreams_that_it_names(server: AskingServer) -> None:
    upstreams = {"other": {"url": server.url, "era": "legacy"}}
    async with running_gateway(server, upstreams=upstreams, auth=AUTH) as gateway, RoundClient(gateway.url) as bob:
        assert (await bob.call("plain", key=BOB, url=gateway.url + "/docs")).text == "plain"
        refused = await bob.call("plain", key=BOB, url=gateway.url + "/other")
        assert (refused.status, refused.headers["WWW-Authenticate"]) == (403, 'Bearer error="insufficient_scope"')


async def test_another_users_token_is_refused_and_stays_good_for_its_own(
    server: AskingServer, client: RoundClient
) -> None:
    asked = await client.call("book", {"key": "k"})
    eves = {"elicitation_1": filled("Eve")}
    refused = await client.call("book", {"key": "k"}, answers=eves, state=asked.state, key=BOB)
    assert (refused.status, refused.error) == (400, FROZEN)
    assert not server.answers
    assert (await client.call("book", {"key": "k"}, answers=ADA, state=asked.state)).text == "Ada"
    assert server.executions == {"k": 1}


async def test_users_never_share_a_session(server: AskingServer, client: RoundClient) -> None:
    seen: dict[str, set[str]] = {"alice": set(), "bob": set()}

    @server.tool
    async def whose(call: Call) -> str:
        seen[call.arguments["who"]].add(call.session.id)
        return "ok"

    kinds: list[dict[str, Any]] = [{}, {"roots": {}}]
    for capabilities in kinds:
        for _ in range(5):
            await client.call("whose", {"who": "alice"}, capabilities=capabilities)
            await client.call("whose", {"who": "bob"}, capabilities=capabilities, key=BOB)
    assert seen["alice"]
    assert seen["bob"]
    assert not seen["alice"] & seen["bob"]


async def test_each_user_may_have_so_many_questions_open(
    server: AskingServer, gateway: RunningGateway, client: RoundClient
) -> None:
    asked = [await client.call("book", {"key": n}) for n in range(3)]
    refused = await client.call("book", {"key": 3})
    assert (refused.status, refused.error["code"], refused.error["data"]["reason"]) == (429, -32603, "full")
    assert int(refused.headers["Retry-After"]) > 0
    await server.until(lambda: server.cancelled and server.deleted)
    assert gateway.suspended == 3
    assert (await client.call("book", {"key": "b"}, key=BOB)).asks
    assert (await client.call("plain")).text == "plain"
    assert (await client.call("book", {"key": 0}, answers=ADA, state=asked[0].state)).text == "Ada"
    assert (await client.call("book", {"key": 4})).asks


async def test_nobodys_call_waits_for_anothers_question(server: AskingServer, client: RoundClient) -> None:
    asked = await asyncio.gather(
        *(client.call("book", {"key": f"a{n}"}) for n in range(3)),
        *(client.call("book", {"key": f"b{n}"}, key=BOB) for n in range(3)),
    )
    assert all(reply.asks for reply in asked)
    assert (await client.call("plain")).text == "plain"
    answers = [{"elicitation_1": filled(f"name {n}")} for n in range(6)]
    order = [5, 0, 3, 1, 4, 2]
    for n in order:
        owner, key = (ALICE, f"a{n}") if n < 3 else (BOB, f"b{n - 3}")
        done = await client.call("book", {"key": key}, answers=answers[n], state=asked[n].state, key=owner)
        assert done.text == f"name {n}"


async def test_without_names_a_round_belongs_to_the_credential_that_the_server_sees(server: AskingServer) -> None:
    async with (
        running_gateway(server, upstream={"auth": {"type": "passthrough"}}) as gateway,
        RoundClient(gateway.url) as client,
    ):
        asked = await client.call("book", key="hers")
        for key in ("his", None):
            refused = await client.call("book", answers=ADA, state=asked.state, key=key)
            assert refused.error == FROZEN
        assert not server.answers
        assert (await client.call("book", answers=ADA, state=asked.state, key="hers")).text == "Ada"
