"""Two tenants on real replicas: nothing of one is readable or resumable by the other, nor by who reads the store."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from redis.asyncio import Redis

from tests.support.api_keys import keys
from tests.support.asking_server import AskingServer, Call
from tests.support.asking_tools import ELICIT, FORM, filled
from tests.support.redis_server import RedisServer
from tests.support.replicas import Replicas
from tests.support.round_client import Reply, RoundClient

pytestmark = pytest.mark.replicas

KEYS = {"ada": "key-of-ada", "bob": "key-of-bob"}
OTHER = {"ada": "bob", "bob": "ada"}
FROZEN = {"code": -32602, "message": "Invalid or expired request state"}


@asynccontextmanager
async def house() -> AsyncIterator[tuple[AskingServer, RedisServer, Replicas, RoundClient]]:
    """A server whose results tell what was asked and answered, three replicas, and a client for everybody."""
    async with AskingServer(event_ids=True) as server, RedisServer() as redis:

        @server.tool
        async def whisper(call: Call) -> str:
            answer = await call.ask(ELICIT, FORM)
            return f"{call.arguments['key']} {answer['content']['name']} {'x' * 100_000}"

        async with Replicas(redis.url, server.url, count=3, **keys(**KEYS)) as replicas, RoundClient("") as client:
            yield server, redis, replicas, client


async def test_nobody_goes_on_with_the_call_of_somebody_else_wherever_he_tries() -> None:
    async with house() as (server, _redis, replicas, client):

        async def whisper(user: str, of: str, at: int, asked: Reply | None = None) -> Reply:
            retry = {} if asked is None else {"answers": {"elicitation_1": filled(user)}, "state": asked.state}
            return await client.call("whisper", {"key": of}, url=replicas[at].url, key=KEYS[user], **retry)

        everywhere = range(len(replicas))
        asked = {(user, at): await whisper(user, user, at) for user in KEYS for at in everywhere}
        for (user, _), question in asked.items():
            tries = await asyncio.gather(*(whisper(OTHER[user], user, at, question) for at in everywhere))
            assert [(refused.status, refused.error) for refused in tries] == [(400, FROZEN)] * 3
        assert not server.answers

        await replicas[0].kill()  # a call that somebody takes over is still nobody else's
        await replicas[0].start()
        tries = await asyncio.gather(*(whisper("bob", "ada", at, asked["ada", 0]) for at in everywhere))
        assert [refused.error for refused in tries] == [FROZEN] * 3
        for (user, at), question in asked.items():
            done = await whisper(user, user, (at + 1) % 3, question)
            assert done.text.startswith(f"{user} {user} ")
        assert len(server.answers) == len(asked)
        assert server.executions == {"ada": 3, "bob": 3}


async def test_who_reads_the_store_learns_nothing_of_anybody() -> None:
    secret, answer = "a-secret-of-ada", "the-answer-of-ada"
    async with house() as (_server, redis, replicas, client):
        async with redis.watched() as seen, Redis.from_url(redis.url) as store:
            asked = await client.call("whisper", {"key": secret}, url=replicas[0].url, key=KEYS["ada"])
            done = await client.call(
                "whisper",
                {"key": secret},
                answers={"elicitation_1": filled(answer)},
                state=asked.state,
                url=replicas[1].url,
                key=KEYS["ada"],
            )
            assert done.text.startswith(f"{secret} {answer}")
            kept = [key async for key in store.scan_iter()]
        assert kept
        assert b"XADD" in seen
        for word in (secret, answer, "whisper", "elicitation", "xxxx", "ada", *KEYS.values()):
            assert word.encode() not in seen, word
            assert not [key for key in kept if word.encode() in key]
