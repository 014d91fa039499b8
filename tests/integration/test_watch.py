"""Lists that are looked at from time to time, for a server that does not tell of their changes."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from gateway.upstream import subscriptions
from gateway.wire import methods
from tests.support.changing_server import PROMPTS, RESOURCES, TOOLS, served
from tests.support.leftovers import until_quiet
from tests.support.scripted import ECHO, Wire
from tests.support.stream_client import ACKNOWLEDGED, SUBSCRIPTION, listening, opened

LISTEN = "subscriptions/listen"
WATCH: dict[str, Any] = {"watch": "5ms"}
EVERYTHING = {
    "toolsListChanged": True,
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["note://1"],
}
MUTE = {"tools": {}, "resources": {"subscribe": True}}


@pytest.fixture(autouse=True)
def merge_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MERGE_S", 0.001)


def tool(name: str) -> dict[str, Any]:
    return {**ECHO, "name": name}


def tagged(method: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": {"_meta": {SUBSCRIPTION: 1}}}


async def test_a_change_that_the_server_does_not_tell_is_found_and_told() -> None:
    async with served(**WATCH) as (upstream, front):
        upstream.capabilities = MUTE
        upstream.on("GET", lambda wire: wire.reply(405))
        async with listening(front) as stream:
            upstream.tools = [*upstream.tools, tool("new")]
            assert await stream.message() == tagged(TOOLS)
            upstream.tools = [tool("new")]
            assert await stream.message() == tagged(TOOLS)


async def test_what_is_watched_is_promised_and_what_the_server_has_not_is_not() -> None:
    async with served(**WATCH) as (upstream, front):
        upstream.capabilities = MUTE
        upstream.on("GET", lambda wire: wire.reply(405))
        upstream.on("resources/list", lambda wire: wire.result({"resources": []}))
        capabilities = (await front.ask("server/discover")).result["capabilities"]
        assert capabilities == {"tools": {"listChanged": True}, "resources": {"listChanged": True}}
        async with opened(front, LISTEN, {"notifications": EVERYTHING}) as stream:
            acknowledgement = await stream.message()
            assert acknowledgement["method"] == ACKNOWLEDGED
            promised = {"toolsListChanged": True, "resourcesListChanged": True}
            assert acknowledgement["params"]["notifications"] == promised


async def test_a_server_without_sessions_can_be_watched() -> None:
    async with served(**WATCH) as (upstream, front):
        upstream.with_sessions = False
        upstream.capabilities = {"tools": {}}
        async with listening(front) as stream:
            upstream.tools = [tool("new")]
            assert await stream.message() == tagged(TOOLS)


async def test_another_order_other_cursors_and_pages_are_no_change() -> None:
    async with served(**WATCH) as (upstream, front):
        upstream.capabilities = {"tools": {}}
        pages: list[Sequence[dict[str, Any]]] = [[tool("a"), tool("b")], [tool("c")]]

        @upstream.on("tools/list")
        async def paged(wire: Wire) -> None:
            number = int(str(wire.request.params.get("cursor", "0")).partition("-")[0])
            more = {"nextCursor": f"{number + 1}-{len(upstream.log)}"} if number + 1 < len(pages) else {}
            await wire.result({"tools": pages[number], **more})

        async with listening(front) as stream:
            pages[:] = [[tool("c")], [{**tool("b")}, dict(reversed(tool("a").items()))]]
            seen = len(upstream.received("tools/list"))
            told = asyncio.ensure_future(stream.message())
            await upstream.seen("tools/list", seen + 12)
            assert not told.done()
            pages.append([tool("d")])
            assert await told == tagged(TOOLS)


async def test_a_change_right_after_the_acknowledgement_is_found() -> None:
    async with served(watch="50ms") as (upstream, front):
        upstream.capabilities = {"tools": {}}
        async with listening(front) as stream:
            assert len(upstream.received("tools/list")) == 1
            upstream.tools = []
            assert await stream.message() == tagged(TOOLS)


async def test_a_list_whose_changes_the_server_tells_is_not_looked_at() -> None:
    async with served(**WATCH) as (upstream, front):
        upstream.capabilities = {"tools": {"listChanged": True}, "prompts": {}}
        upstream.on("prompts/list", lambda wire: wire.result({"prompts": []}))
        asked = {"toolsListChanged": True, "promptsListChanged": True}
        async with opened(front, LISTEN, {"notifications": asked}) as stream:
            assert (await stream.message())["params"]["notifications"] == asked
            await upstream.seen("prompts/list", 4)
            assert not upstream.received("tools/list")
            await upstream.tell(TOOLS)
            assert await stream.message() == tagged(TOOLS)
            upstream.on("prompts/list", lambda wire: wire.result({"prompts": [{"name": "p"}]}))
            assert await stream.message() == tagged(PROMPTS)


async def test_resources_are_watched_although_the_server_knows_no_templates() -> None:
    async with served(**WATCH) as (upstream, front):
        upstream.capabilities = {"resources": {}}
        resources: list[dict[str, Any]] = []
        upstream.on("resources/list", lambda wire: wire.result({"resources": resources}))
        async with opened(front, LISTEN, {"notifications": {"resourcesListChanged": True}}) as stream:
            await stream.message()
            resources.append({"uri": "note://1", "name": "n"})
            assert await stream.message() == tagged(RESOURCES)
            upstream.on(
                methods.RESOURCE_TEMPLATES_LIST,
                lambda wire: wire.result({"resourceTemplates": [{"uriTemplate": "note://{n}", "name": "t"}]}),
            )
            assert await stream.message() == tagged(RESOURCES)


async def test_an_outage_is_no_change_and_what_changed_during_it_is_found() -> None:
    async with served(**WATCH) as (upstream, front):
        upstream.capabilities = {"tools": {}}
        async with listening(front) as stream:
            upstream.on("tools/list", lambda wire: wire.reply(500), times=3)
            await upstream.seen("tools/list", 6)
            await upstream.stop()
            upstream.forget()
            upstream.tools = [tool("new")]
            await upstream.start()
            assert await stream.message() == tagged(TOOLS)
            assert stream.wire.count(TOOLS.encode()) == 1


async def test_nobody_looks_when_nobody_listens() -> None:
    async with served(**WATCH) as (upstream, front):
        upstream.capabilities = {"tools": {}}
        async with listening(front):
            await upstream.seen("tools/list", 2)
        await upstream.seen("DELETE")
        await until_quiet(front)
        upstream.log.clear()
        assert (await front.ask("tools/list")).status == 200
        assert len(upstream.received("tools/list")) == 1


async def test_a_found_change_makes_the_gateway_look_at_the_headers_of_tools_again() -> None:
    marked = {"type": "object", "properties": {"text": {"type": "string", "x-mcp-header": "Text"}}}
    async with served(**WATCH) as (upstream, front):
        upstream.capabilities = {"tools": {}}
        assert (await front.call()).text == "hi"
        async with listening(front) as stream:
            upstream.tools = [{"name": "echo", "inputSchema": marked}]
            await stream.message()
            assert (await front.call()).error["code"] == -32020
