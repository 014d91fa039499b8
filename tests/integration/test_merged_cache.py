"""Lists and resources that are kept, on real sockets, at an upstream's own endpoint and at the merged one."""

import asyncio
from typing import Any

import pytest

from gateway.upstream.any_era import AnyEraUpstream
from tests.support.changing_server import TOOLS, UPDATED, ChangingUpstream
from tests.support.gateway_app import gateway_for
from tests.support.merged import as_user, merged, names, users
from tests.support.offering_server import OfferingUpstream
from tests.support.stream_client import listening

HOUR: dict[str, Any] = {"cache": {"ttl": "1h"}}


def counts(upstream: Any, *methods: str) -> list[int]:
    return [len(upstream.received(method)) for method in methods]


async def test_lists_and_resources_are_asked_for_once() -> None:
    one = OfferingUpstream("one", tools=[["x"], ["y"]], resources=["a:1"], templates=["a:{id}"])
    async with merged(one, **HOUR) as front:
        for _ in range(3):
            answer = await front.ask("tools/list")
            assert 3_590_000 < answer.result["ttlMs"] <= 3_600_000
            await front.ask("tools/list", {"cursor": answer.result["nextCursor"]})
            await front.ask("resources/read", {"uri": "a:1"})
            await front.ask("resources/templates/list")
        assert counts(one, "tools/list", "resources/read", "resources/templates/list") == [2, 1, 1]


async def test_without_a_ttl_nothing_is_kept_and_nothing_stands_in_between() -> None:
    one, two = OfferingUpstream("one", tools=["x"]), OfferingUpstream("two", tools=["y"])
    async with merged(one, two, each={"two": HOUR}) as front:
        for _ in range(2):
            await front.ask("tools/list")
        assert (counts(one, "tools/list"), counts(two, "tools/list")) == ([2], [1])
        assert front.gateway._merged is not None
        assert isinstance(front.gateway._merged._upstreams["one"], AnyEraUpstream)
        assert list(front.gateway._caches) == ["two"]


async def test_one_upstream_may_differ_from_the_others() -> None:
    one, two = OfferingUpstream("one", tools=["x"]), OfferingUpstream("two", tools=["y"])
    async with merged(one, two, settings=HOUR, each={"two": {"cache": {"ttl": "0s"}}}) as front:
        for _ in range(2):
            assert (await front.ask("tools/list")).result["ttlMs"] == 0
            assert (await front.ask("tools/list", path="/mcp/one")).result["ttlMs"] > 0
        assert (counts(one, "tools/list"), counts(two, "tools/list")) == ([1], [2])


async def test_what_the_server_says_of_itself_wins() -> None:
    one = OfferingUpstream("one", era="modern", tools=["x"])
    one.on("tools/list", lambda wire: wire.result(one._in_era({"tools": [], "ttlMs": 0}, cacheable=True)))
    async with merged(one, **HOUR) as front:
        await front.ask("tools/list")
        await front.ask("tools/list")
    assert counts(one, "tools/list") == [2]


@pytest.mark.parametrize(("scope", "asked"), [("private", 2), ("public", 1)])
async def test_users_share_what_is_public_and_nothing_else(scope: str, asked: int) -> None:
    one = OfferingUpstream("one", tools=["x"], resources=["a:1"])
    settings = {"auth": users(alice=None, bob=None)}
    async with merged(one, settings=settings, cache={"ttl": "1h", "scope": scope}) as front:
        for user in ("alice", "bob", "alice"):
            await front.ask("tools/list", headers=as_user(user))
            await front.ask("resources/read", {"uri": "a:1"}, headers=as_user(user))
    assert counts(one, "tools/list", "resources/read") == [asked, asked]


async def test_many_clients_at_once_are_one_request() -> None:
    one, two = OfferingUpstream("one", tools=["x"]), OfferingUpstream("two", tools=["y"])
    async with merged(one, two, settings=HOUR) as front:
        await front.ask("server/discover")
        one.shut()
        asking = [asyncio.ensure_future(front.ask("tools/list")) for _ in range(20)]
        await one.seen("tools/list")
        await two.seen("tools/list")
        one.open()
        answers = await asyncio.gather(*asking)
        assert all(names(answer) == ["one__x", "two__y"] for answer in answers)
    assert (counts(one, "tools/list"), counts(two, "tools/list")) == ([1], [1])


async def test_a_change_is_never_followed_by_what_was_before_it() -> None:
    async with ChangingUpstream() as upstream, gateway_for(upstream, era="legacy", **HOUR) as front:
        upstream.on(
            "resources/read",
            lambda wire: wire.result({"contents": [{"uri": wire.request.params["uri"], "text": "t"}]}),
        )
        async with listening(front, uris=["a:1"]) as stream:
            for _ in range(2):
                await front.ask("tools/list")
                await front.ask("resources/read", {"uri": "a:1"})
                await front.ask("resources/read", {"uri": "b:1"})
            assert counts(upstream, "tools/list", "resources/read") == [1, 2]
            upstream.tools = []
            await upstream.tell(TOOLS)
            assert (await stream.message())["method"] == TOOLS
            assert names(await front.ask("tools/list")) == []
            await upstream.tell(UPDATED, uri="a:1")
            assert (await stream.message())["method"] == UPDATED
            await front.ask("resources/read", {"uri": "a:1"})
            await front.ask("resources/read", {"uri": "b:1"})
            assert counts(upstream, "tools/list", "resources/read") == [2, 3]


async def test_a_tool_that_is_gone_puts_the_list_in_doubt() -> None:
    one, two = OfferingUpstream("one", tools=["x", "y"]), OfferingUpstream("two", tools=["z"])
    async with merged(one, two, settings=HOUR) as front:
        assert len(names(await front.ask("tools/list"))) == 3
        one.offers = {**one.offers, "tools/list": ["y"]}
        assert (await front.call(tool="one__x")).error["code"] == -32602
        assert names(await front.ask("tools/list")) == ["one__y", "two__z"]
    assert (counts(one, "tools/list"), counts(two, "tools/list")) == ([2], [1])


async def test_a_failure_is_not_kept() -> None:
    one = OfferingUpstream("one", tools=["x"])
    one.on("tools/list", lambda wire: wire.reply(500), times=1)
    async with merged(one, **HOUR) as front:
        assert (await front.ask("tools/list")).failure[0] == 502
        assert names(await front.ask("tools/list")) == ["x"]
