"""Part of a server, under names of the operator's: the same at its own endpoint and at the merged one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.upstream.any_era import AnyEraUpstream
from gateway.upstream.offering import OfferedUpstream
from tests.support.asking_server import AskingServer
from tests.support.asking_tools import filled, offer_tools
from tests.support.gateway_app import Front
from tests.support.merged import merged, names, walk
from tests.support.offering_server import OfferingUpstream
from tests.support.round_client import RoundClient
from tests.support.running_gateway import running_gateway

OFFER = {
    "tools": {
        "exclude": ["drop_*"],
        "rename": {"search": "find"},
        "describe": {"search": "Searches the handbook"},
    },
    "prompts": {"include": ["greet"]},
    "resources": {"include": ["file:///docs/*"]},
}


@asynccontextmanager
async def offered() -> AsyncIterator[tuple[OfferingUpstream, Front]]:
    one = OfferingUpstream(
        "one",
        tools=[["search", "drop_all"], ["drop_more"], ["get"]],
        prompts=["greet", "curse"],
        resources=["file:///docs/1", "file:///etc/passwd"],
        templates=["file:///docs/{id}", "file:///{+path}"],
    )
    one.unlisted = {"file:///docs/2", "file:///docs/../etc/shadow"}
    other = OfferingUpstream("other", tools=["search"])
    async with merged(one, other, each={"one": OFFER}) as front:
        yield one, front


@pytest.mark.parametrize(("path", "prefix"), [("/mcp/one", ""), ("/mcp", "one__")])
async def test_lists_hold_what_is_offered_on_every_page(path: str, prefix: str) -> None:
    async with offered() as (_one, front):
        tools, pages = await walk(front, "tools/list", path=path)
        assert [tool for tool in tools if not tool.startswith("other")] == [f"{prefix}find", f"{prefix}get"]
        assert len(pages) == 3
        assert pages[0].result["tools"][0]["description"] == "Searches the handbook"
        assert names(await front.ask("prompts/list", path=path), "prompts") == [f"{prefix}greet"]
        resources = await front.ask("resources/list", path=path)
        assert names(resources, "resources", "uri") == ["file:///docs/1"]
        templates = await front.ask("resources/templates/list", path=path)
        assert names(templates, "resourceTemplates", "uriTemplate") == ["file:///docs/{id}"]


@pytest.mark.parametrize(("path", "prefix"), [("/mcp/one", ""), ("/mcp", "one__")])
async def test_what_is_not_offered_is_as_unknown_as_anything_and_never_reaches_the_server(
    path: str, prefix: str
) -> None:
    async with offered() as (one, front):
        for tool in ("drop_all", "search", "drop_whatever"):
            answer = await front.call(tool=f"{prefix}{tool}", path=path)
            assert (answer.status, answer.error) == (
                200,
                {"code": -32602, "message": "Unknown tool", "data": {"name": f"{prefix}{tool}"}},
            )
        assert (await front.ask("prompts/get", {"name": f"{prefix}curse"}, path=path)).error["code"] == -32602
        for uri in ("file:///etc/passwd", "file:///docs/../etc/shadow", "file:///docs/%2e%2e/etc/shadow"):
            answer = await front.ask("resources/read", {"uri": uri}, path=path)
            assert (answer.status, answer.error) == (
                200,
                {"code": -32602, "message": "Unknown resource", "data": {"uri": uri}},
            )
        asked = {received.method for received in one.log}
        assert not asked & {"tools/call", "prompts/get", "resources/read"}


@pytest.mark.parametrize(("path", "prefix"), [("/mcp/one", ""), ("/mcp", "one__")])
async def test_what_is_offered_works_under_its_new_name(path: str, prefix: str) -> None:
    async with offered() as (one, front):
        assert (await front.call(tool=f"{prefix}find", path=path)).text == "search@one"
        for uri in ("file:///docs/1", "file:///docs/2"):
            contents = (await front.ask("resources/read", {"uri": uri}, path=path)).result["contents"]
            assert contents[0]["text"] == f"{uri}@one"
        one.on("tools/call", lambda wire: wire.error(-32601, "no such tool"))
        answer = await front.call(tool=f"{prefix}find", path=path)
        assert answer.error["data"] == {"name": f"{prefix}find"}


async def test_rounds_go_on_under_the_new_name_and_are_named_by_the_old_one() -> None:
    async with AskingServer() as server, AskingServer() as other:
        renamed = {"tools": {"rename": {"book": "reserve"}}}
        upstreams: dict[str, Any] = {
            "one": {"url": offer_tools(server).url, "era": "legacy", **renamed},
            "two": {"url": offer_tools(other).url, "era": "legacy"},
        }
        async with (
            running_gateway(upstreams=upstreams, rounds={"names": {"book": ["guest"]}}) as gateway,
            RoundClient(gateway.url) as client,
        ):
            for url, tool in ((gateway.url, "one__reserve"), (f"{gateway.url}/one", "reserve")):
                asked = await client.call(tool, {"key": tool}, url=url)
                assert list(asked.questions) == ["guest"]
                answers = {"guest": filled("Ada")}
                done = await client.call(tool, {"key": tool}, answers=answers, state=asked.state, url=url)
                assert done.text == "Ada"
            await gateway.until_idle()
        assert server.executions == {"one__reserve": 1, "reserve": 1}


async def test_nothing_stands_in_between_where_nothing_is_configured() -> None:
    async with offered() as (_one, front):
        merged_upstream = front.gateway._merged
        assert merged_upstream is not None
        kinds = {name: type(upstream) for name, upstream in merged_upstream._upstreams.items()}
        assert kinds == {"one": OfferedUpstream, "other": AnyEraUpstream}
