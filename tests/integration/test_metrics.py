"""What `/metrics` tells of a gateway that has served something."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.support.asking_server import AskingServer
from tests.support.asking_tools import filled, offer_tools
from tests.support.redis_server import RedisServer
from tests.support.round_client import RoundClient
from tests.support.running_gateway import RunningGateway, running_gateway

KEY = "pkVKUsmOdYmiBZPVNBOfWGb6VwXXyfMCK3hsTbmYFMw="
DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"


@asynccontextmanager
async def with_store() -> AsyncIterator[tuple[RunningGateway, RedisServer]]:
    """A gateway with a store that could be shared."""
    async with (
        AskingServer() as server,
        RedisServer() as redis,
        running_gateway(offer_tools(server), state={"store": redis.url, "keys": KEY}) as gateway,
    ):
        yield gateway, redis


def read(gateway: RunningGateway) -> dict[tuple[str, ...], float]:
    """Every sample, by its name and the values of its labels."""
    families = text_string_to_metric_families(gateway.gateway.exposition().decode())
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


async def test_requests_rounds_and_sessions_are_counted() -> None:
    async with AskingServer() as server, running_gateway(offer_tools(server)) as gateway:
        async with RoundClient(gateway.url) as client:
            asked = await client.call("book")
            assert read(gateway)[("era_gateway_rounds_suspended",)] == 1
            (name,) = asked.questions
            await client.call("book", answers={name: filled("Ada")}, state=asked.state)
            await client.request("made/up")
        told = read(gateway)
        assert told["era_gateway_requests_total", "*", "tools/call", "200"] == 2
        assert told["era_gateway_requests_total", "*", "other", "404"] == 1
        assert told["era_gateway_request_seconds_count", "*"] == 3
        assert told["era_gateway_rounds_total", "suspended"] == told["era_gateway_rounds_total", "resumed"] == 1
        assert told[("era_gateway_rounds_suspended",)] == 0
        assert told["era_gateway_sessions", "docs"] == 1
        assert told[("era_gateway_ready",)] == 1
        assert not [sample for sample in told if "made/up" in sample]


async def test_the_store_is_told_of() -> None:
    async with with_store() as (gateway, redis):
        await gateway.until(lambda: read(gateway)[("era_gateway_store_commands_total",)] > 1)
        assert read(gateway)[("era_gateway_store_up",)] == 1
        await redis.kill()
        await gateway.until(lambda: read(gateway)[("era_gateway_store_up",)] == 0)
        await redis.start()
        await gateway.until(lambda: read(gateway)[("era_gateway_store_up",)] == 1)


async def test_the_page_names_every_metric() -> None:
    async with with_store() as (gateway, _redis):
        text = gateway.gateway.exposition().decode()
    told = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    named = set(re.findall(r"^\| `(era_gateway_\w+)", DOCS.read_text(), re.MULTILINE))
    assert named == told
