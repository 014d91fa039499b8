"""Replicas in one process that share sticky sessions through a Redis, and a server that keeps things in its sessions.

async with replicas(upstream, redis, 2) as (one, other):
    await one.call("it", tool="remember")
    assert (await other.call(tool="recall")).text == "it"
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from cryptography.fernet import Fernet

from tests.support.gateway_app import Front, gateway_for
from tests.support.redis_server import RedisServer
from tests.support.scripted import ScriptedUpstream, Wire

STATE_KEY = Fernet.generate_key().decode()


@asynccontextmanager
async def remembering() -> AsyncIterator[ScriptedUpstream]:
    """A server that keeps what a session told it, and counts nothing: its log does."""
    memory: dict[str | None, str] = {}

    async with ScriptedUpstream() as upstream:

        @upstream.on("tools/call")
        async def remember(wire: Wire) -> None:
            session = wire.request.session
            if wire.request.params["name"] == "remember":
                memory[session] = wire.request.params["arguments"]["text"]
            await wire.result({"content": [{"type": "text", "text": str(memory.get(session))}]})

        yield upstream


@asynccontextmanager
async def replicas(
    upstream: ScriptedUpstream,
    redis: RedisServer,
    count: int = 2,
    *,
    settings: Mapping[str, Any] | None = None,
    sessions: Mapping[str, Any] | None = None,
    **options: Any,
) -> AsyncIterator[list[Front]]:
    """Gateways that differ in nothing but their port."""
    state = {"store": redis.url, "keys": STATE_KEY}
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                gateway_for(
                    upstream,
                    settings={"state": state, **(settings or {})},
                    sessions={"reuse": "sticky", **(sessions or {})},
                    **{"era": "legacy", **options},
                )
            )
            for _ in range(count)
        ]


def sharing_of(front: Front) -> Any:
    """The part of a replica that shares sticky sessions."""
    return front.gateway.upstreams["docs"]._legacy._sessions._sharing


def known_sessions(front: Front) -> list[Any]:
    """The sessions that a replica has."""
    return list(front.gateway.upstreams["docs"]._legacy._sessions._pool._sessions)
