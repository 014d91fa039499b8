"""What `/metrics` tells of a gateway that has served something."""

import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.asking_server import AskingServer
from tests.support.asking_tools import filled, offer_tools
from tests.support.mortal import mortal
from tests.support.processes import stable_port
from tests.support.redis_server import RedisServer
from tests.support.round_client import RoundClient
from tests.support.running_gateway import RunningGateway, running_gateway
from tests.support.stdio import StdioServer, facts, served

KEY = "pkVKUsmOdYmiBZPVNBOfWGb6VwXXyfMCK3hsTbmYFMw="
DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"
NAMED = {
    name: set(re.findall(r"`(\w+)`", labels))
    for name, labels in re.findall(r"^\| `(era_gateway_\w+)` \|([^|]*)\|", DOCS.read_text(), re.MULTILINE)
}
"""What the page says: the labels of each metric."""


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
    """Every sample, by its name and the values of its labels, in the order of their names."""
    families = text_string_to_metric_families(gateway.gateway.exposition().decode())
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


def labelled(gateway: RunningGateway) -> dict[str, set[str]]:
    """The labels of every metric, but for the bounds of histograms."""
    families = text_string_to_metric_families(gateway.gateway.exposition().decode())
    return {s.name.removesuffix("_count"): set(s.labels) for family in families for s in family.samples}


async def test_requests_rounds_and_sessions_are_counted() -> None:
    async with AskingServer() as server, running_gateway(offer_tools(server)) as gateway:
        async with RoundClient(gateway.url) as client:
            asked = await client.call("book")
            assert read(gateway)[("era_gateway_rounds_suspended",)] == 1
            (name,) = asked.questions
            await client.call("book", answers={name: filled("Ada")}, state=asked.state)
            await client.call("no_such_tool")
            await client.request("made/up")
        told = read(gateway)
        requests = {tuple(rest): count for (name, *rest), count in told.items() if name == "era_gateway_requests_total"}
        assert requests == {
            ("*", "tools/call", "input_required", "200"): 1,
            ("*", "tools/call", "complete", "200"): 1,
            ("*", "tools/call", "error", "200"): 1,
            ("*", "other", "error", "404"): 1,
        }
        assert told["era_gateway_request_seconds_count", "*"] == 4
        assert told["era_gateway_upstream_requests_total", "docs"] == 3
        assert told["era_gateway_rounds_total", "suspended"] == told["era_gateway_rounds_total", "resumed"] == 1
        assert told[("era_gateway_rounds_suspended",)] == 0
        assert told["era_gateway_sessions", "docs"] == 1
        assert told[("era_gateway_ready",)] == 1
        assert not [sample for sample in told if "made/up" in sample]


async def test_an_upstream_that_fails_is_named_whatever_path_its_requests_come_by() -> None:
    async with AskingServer() as server:
        gone = f"http://127.0.0.1:{stable_port()}/mcp"
        upstreams = {"docs": {"url": offer_tools(server).url}, "gone": {"url": gone, "era": "legacy"}}
        async with running_gateway(upstreams=upstreams) as gateway, RoundClient(gateway.url) as client:
            for path in ("", "/gone"):
                await client.request("tools/list", url=gateway.url + path)
            told = read(gateway)
            assert told["era_gateway_upstream_failures_total", "unreachable", "gone"] == 2
            assert told["era_gateway_upstream_requests_total", "gone"] == 2
            assert told["era_gateway_upstream_requests_total", "docs"] >= 1
            assert [sample for sample in told if sample[0] == "era_gateway_upstream_failures_total"] == [
                ("era_gateway_upstream_failures_total", "unreachable", "gone")
            ]


async def test_processes_are_counted_where_upstreams_have_any(tmp_path: Path) -> None:
    async with served(StdioServer(tmp_path)) as (gateway, client):
        assert read(gateway)["era_gateway_processes", "git"] == 0
        await facts(client)
        told = read(gateway)
        assert told["era_gateway_processes", "git"] == 1
        assert sys.platform != "linux" or told[("process_open_fds",)] > 0


@pytest.mark.parametrize(
    ("has_event_ids", "replay", "ends"),
    [(True, [], {"recovered": 1}), (False, ["book"], {"replayed": 1}), (False, [], {"lost": 1})],
)
async def test_what_becomes_of_rounds_of_dead_replicas_is_counted(
    has_event_ids: bool, replay: list[str], ends: dict[str, int]
) -> None:
    async with AskingServer(event_ids=has_event_ids) as server:
        offer_tools(server)
        async with mortal(server.url, rounds={"replay": replay}) as (one, other), RoundClient(other.url) as client:
            asked = await client.call("book", url=one.url)
            await one.die()
            await client.call("book", answers={"elicitation_1": filled("Ada")}, state=asked.state)
            told = read(other)
    kinds = ("recovered", "replayed", "lost")
    assert {kind: told["era_gateway_rounds_total", kind] for kind in kinds} == {**dict.fromkeys(kinds, 0), **ends}


async def test_a_round_of_a_process_that_is_gone_is_lost() -> None:
    async with AskingServer() as server:
        offer_tools(server)
        async with running_gateway(server, state={"keys": KEY}) as gateway, RoundClient(gateway.url) as client:
            asked = await client.call("book")
        async with running_gateway(server, state={"keys": KEY}) as gateway, RoundClient(gateway.url) as client:
            await client.call("book", answers={"elicitation_1": filled("Ada")}, state=asked.state)
            assert read(gateway)["era_gateway_rounds_total", "lost"] == 1


async def test_two_gateways_in_one_process_count_for_themselves() -> None:
    async with AskingServer() as server, running_gateway(offer_tools(server)) as one, running_gateway(server) as other:
        async with RoundClient(one.url) as client:
            await client.call("plain")
        assert read(one)["era_gateway_request_seconds_count", "*"] == 1
        assert read(other)["era_gateway_request_seconds_count", "*"] == 0


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
    told = set(re.findall(r"^# TYPE (era_gateway_\S+)", text, re.MULTILINE))
    assert set(NAMED) == told


async def test_the_page_names_the_labels_of_every_metric() -> None:
    async with with_store() as (gateway, _redis), RoundClient(gateway.url) as client:
        await client.call("plain")
        found = {name: labels for name, labels in labelled(gateway).items() if name in NAMED}
    assert found == {name: NAMED[name] for name in found}
    assert len(found) > len(NAMED) / 2
