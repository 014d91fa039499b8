"""Sticky sessions on real processes behind a plain balancer: what a session holds outlives who opened it."""

import asyncio
from collections import Counter
from typing import Any

import httpx
import pytest

from tests.support.asking_server import AskingServer, Call
from tests.support.asking_tools import ELICIT, FORM, filled
from tests.support.messages import good_request
from tests.support.redis_server import RedisServer
from tests.support.replicas import Replicas
from tests.support.round_client import RoundClient
from tests.support.round_robin import RoundRobin
from tests.support.scripted import ScriptedUpstream, Wire

pytestmark = pytest.mark.replicas

CONVERSATIONS = [f"conversation-{number}" for number in range(6)]


def counting() -> ScriptedUpstream:
    """A server that counts the calls of each session."""
    upstream, counts = ScriptedUpstream(), Counter[str | None]()

    @upstream.on("tools/call")
    async def count(wire: Wire) -> None:
        counts[wire.request.session] += 1
        await wire.result({"content": [{"type": "text", "text": str(counts[wire.request.session])}]})

    return upstream


async def call(http: httpx.AsyncClient, url: str, conversation: str) -> str:
    headers, body = good_request(
        "tools/call", {"name": "echo", "arguments": {}}, headers={"x-conversation": conversation}
    )
    answer = (await http.post(url, content=body, headers=headers)).json()
    assert "result" in answer, answer
    return str(answer["result"]["content"][0]["text"])


async def test_what_a_session_holds_survives_kills_and_rolling_restarts() -> None:
    async with counting() as upstream, RedisServer() as redis:
        docs: dict[str, Any] = {"url": upstream.url, "era": "legacy"}
        docs["sessions"] = {"reuse": "sticky", "affinity": "X-Conversation"}
        async with (
            Replicas(redis.url, upstream.url, upstreams={"docs": docs}, server={"lame_duck": "0s"}) as replicas,
            RoundRobin(replicas.bases) as balancer,
            httpx.AsyncClient(timeout=20, trust_env=False) as http,
        ):

            async def converse(conversation: str, first: int) -> None:
                for number in range(first, first + 4):
                    assert await call(http, f"{balancer.url}/mcp", conversation) == str(number)

            async def converse_all(first: int) -> None:
                await asyncio.gather(*(converse(conversation, first) for conversation in CONVERSATIONS))

            await converse_all(1)
            await replicas[0].kill()
            await converse_all(5)
            await replicas[0].start()
            for replica in replicas[1:]:
                replica.terminate()
                await replica.ended()
                await replica.start()
            await converse_all(9)
            assert len(upstream.sessions) == len(CONVERSATIONS) == len(upstream.received("initialize"))


@pytest.mark.parametrize("event_ids", [True, False], ids=["resumed", "lost"])
async def test_a_session_outlives_a_suspended_call_whose_replica_dies(event_ids: bool) -> None:
    async with AskingServer(event_ids=event_ids) as server, RedisServer() as redis:
        sessions: list[object] = []

        @server.tool
        async def greet(call: Call) -> str:
            sessions.append(call.session)
            return str((await call.ask(ELICIT, FORM))["content"]["name"])

        docs: dict[str, Any] = {"url": server.url, "era": "legacy", "sessions": {"reuse": "sticky"}}
        async with (
            Replicas(redis.url, server.url, count=2, upstreams={"docs": docs}) as (one, other),
            RoundClient(other.url) as client,
        ):
            asked = await client.call("greet", url=one.url)
            await one.kill()
            ended = await client.call("greet", answers={"elicitation_1": filled("Ada")}, state=asked.state)
            if event_ids:
                assert ended.text == "Ada"
            else:
                assert ended.error["data"] == {"reason": "lost"}
                await server.until(lambda: not server.running)
            again = await client.call("greet")
            done = await client.call("greet", answers={"elicitation_1": filled("Bob")}, state=again.state)
            assert done.text == "Bob"
            assert sessions[0] is sessions[1]
            assert server.deleted == []
