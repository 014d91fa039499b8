"""Several upstreams behind one endpoint, on real sockets: whose is what, and what it is called."""

from typing import Any

import pytest

from tests.support.gateway_app import Front
from tests.support.merged import merged, names
from tests.support.offering_server import OfferingUpstream
from tests.support.scripted import Wire

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
LONG = "x" * 150


def complete(**reference: str) -> dict[str, Any]:
    return {"ref": reference, "argument": {"name": "a", "value": "v"}}


@pytest.fixture
def one() -> OfferingUpstream:
    return OfferingUpstream(
        "one", tools=["x", "y"], prompts=["greet"], resources=["file:///1"], templates=["file:///{id}"]
    )


@pytest.fixture
def two() -> OfferingUpstream:
    return OfferingUpstream(
        "two",
        era="modern",
        tools=["y", LONG],
        prompts=["greet"],
        resources=["file:///2", "file:///1"],
        templates=["db://{t}"],
    )


# --- lists ---


async def test_lists_are_joined_in_the_order_of_the_file(one: OfferingUpstream, two: OfferingUpstream) -> None:
    async with merged(two, one) as front:
        tools = await front.ask("tools/list")
        assert names(tools)[0] == "two__y"
        assert names(tools)[2:] == ["one__x", "one__y"]
        assert (len(names(tools)[1]), names(tools)[1].startswith("two__xxx")) == (128, True)
        assert names(await front.ask("prompts/list"), "prompts") == ["two__greet", "one__greet"]
        resources = await front.ask("resources/list")
        assert names(resources, "resources", "uri") == ["file:///2", "file:///1"]
        assert resources.result["resources"][1]["description"] == "file:///1@two"
        templates = await front.ask("resources/templates/list")
        assert names(templates, "resourceTemplates", "uriTemplate") == ["db://{t}", "file:///{id}"]
        for answer in (tools, resources, templates):
            assert answer.result["_meta"] == {SERVER_INFO: {"name": "era-gateway", "version": "0.1.0"}}
            assert "nextCursor" not in answer.result
    assert [(entry["listed"], entry["left_out"]) for entry in front.log if entry["event"] == "clash"] == [
        ("two", "one")
    ]


async def test_a_list_is_the_same_every_time(one: OfferingUpstream, two: OfferingUpstream) -> None:
    async with merged(one, two) as front:
        answers = [(await front.ask("tools/list")).result for _ in range(5)]
        assert all(answer == answers[0] for answer in answers)


async def test_each_upstream_has_its_own_endpoint_all_the_same(one: OfferingUpstream, two: OfferingUpstream) -> None:
    async with merged(one, two) as front:
        assert names(await front.ask("tools/list", path="/mcp/one")) == ["x", "y"]
        assert (await front.call(tool="y", path="/mcp/two")).text == "y@two"


async def test_a_single_upstream_is_merged_if_it_is_to_have_a_prefix(one: OfferingUpstream) -> None:
    async with merged(one, settings={"prefix": "always"}) as front:
        assert names(await front.ask("tools/list")) == ["one__x", "one__y"]
        assert (await front.call(tool="one__x")).text == "x@one"
    async with merged(one) as front:
        assert names(await front.ask("tools/list")) == ["x", "y"]


async def test_a_list_that_nobody_offers_is_unknown(one: OfferingUpstream) -> None:
    other = OfferingUpstream("other", tools=["x"])
    one.capabilities = {"tools": {}}
    async with merged(one, other) as front:
        answer = await front.ask("prompts/list")
        assert (answer.status, answer.error["code"]) == (404, -32601)


async def test_a_list_that_one_does_not_offer_lacks_nothing(one: OfferingUpstream) -> None:
    async with merged(OfferingUpstream("other", tools=["x"]), one) as front:
        answer = await front.ask("prompts/list")
        assert names(answer, "prompts") == ["one__greet"]
        assert "era-gateway/unavailable" not in answer.result["_meta"]


async def test_hints_are_those_of_the_stalest_and_most_private_part(
    one: OfferingUpstream, two: OfferingUpstream
) -> None:
    two.on("tools/list", lambda wire: wire.result({"tools": [], "ttlMs": 9000, "cacheScope": "public"}))
    one.on("tools/list", lambda wire: wire.result({"tools": [], "ttlMs": 7000, "cacheScope": "public"}))
    async with merged(one, two) as front:
        result = (await front.ask("tools/list")).result
        assert (result["ttlMs"], result["cacheScope"]) == (7000, "public")


# --- calls ---


async def test_calls_reach_their_upstream_under_its_own_name(one: OfferingUpstream, two: OfferingUpstream) -> None:
    async with merged(one, two) as front:
        assert [(await front.call(tool=tool)).text for tool in ("one__x", "one__y", "two__y")] == [
            "x@one",
            "y@one",
            "y@two",
        ]
        prompt = await front.ask("prompts/get", {"name": "two__greet"})
        assert prompt.result["messages"][0]["content"]["text"] == "greet@two"
        assert prompt.result["_meta"][SERVER_INFO]["name"] == "era-gateway"
    called = two.received("tools/call")[0]
    assert (called.params["name"], called.headers["mcp-name"], called.headers["mcp-method"]) == ("y", "y", "tools/call")
    assert two.received("prompts/get")[0].headers["mcp-name"] == "greet"
    assert not [received for received in two.log if received.method.endswith("/list")]


async def test_a_name_that_was_cut_is_called_in_full(one: OfferingUpstream, two: OfferingUpstream) -> None:
    async with merged(one, two) as front:
        public = names(await front.ask("tools/list"))[3]
        assert (await front.call(tool=public)).text == f"{LONG}@two"


@pytest.mark.parametrize("name", ["x", "three__x", "one_x", "one__", "__x", "x" * 128, "x" * 129, "one"])
async def test_a_tool_of_nobody_is_unknown(one: OfferingUpstream, two: OfferingUpstream, name: str) -> None:
    async with merged(one, two) as front:
        answer = await front.call(tool=name)
        assert (answer.status, answer.error) == (
            200,
            {"code": -32602, "message": "Unknown tool", "data": {"name": name}},
        )
    assert not one.log
    assert not two.log


async def test_errors_name_what_the_client_asked_for(one: OfferingUpstream, two: OfferingUpstream) -> None:
    one.on("prompts/get", lambda wire: wire.error(0, "Unknown prompt: nope"))
    async with merged(one, two) as front:
        answer = await front.ask("prompts/get", {"name": "one__nope"})
        assert answer.error == {
            "code": -32602,
            "message": "Unknown prompt: nope",
            "data": {"name": "one__nope"},
        }


async def test_progress_and_logs_come_on_the_stream_of_the_call(one: OfferingUpstream, two: OfferingUpstream) -> None:
    one.capabilities["logging"] = {}

    @one.on("tools/call")
    async def work(wire: Wire) -> None:
        await wire.sse()
        await wire.notify("notifications/progress", {"progressToken": wire.request.progress_token, "progress": 1})
        await wire.notify("notifications/message", {"level": "warning", "data": "careful"})
        await wire.end(result={"content": [{"type": "text", "text": "done"}]})

    one.on("logging/setLevel", lambda wire: wire.result({}))
    async with merged(one, two) as front:
        about = {"progressToken": "p", "io.modelcontextprotocol/logLevel": "info"}
        answer = await front.call(tool="one__x", meta=about)
        assert [message["method"] for message in answer.notifications] == [
            "notifications/progress",
            "notifications/message",
        ]
        assert answer.notifications[0]["params"]["progressToken"] == "p"
        assert answer.text == "done"


MARKED = {
    "name": "deploy",
    "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
}


async def test_marked_arguments_are_checked_and_passed_on(one: OfferingUpstream, two: OfferingUpstream) -> None:
    for upstream in (one, two):
        upstream.on("tools/list", lambda wire: wire.result({"tools": [MARKED]}))
        upstream.on("tools/call", lambda wire: wire.result({"content": []}))
    async with merged(one, two) as front:
        params = {"name": "one__deploy", "arguments": {"region": "eu"}}
        assert (await front.ask("tools/call", params)).error["code"] == -32020
        assert not one.received("tools/call")
        assert (await front.ask("tools/call", params, headers={"Mcp-Param-Region": "eu"})).result["content"] == []
        params["name"] = "two__deploy"
        assert (await front.ask("tools/call", params, headers={"Mcp-Param-Region": "eu"})).result["content"] == []
    assert two.received("tools/call")[0].headers["mcp-param-region"] == "eu"


# --- without a prefix ---


async def test_without_a_prefix_the_first_has_the_name(one: OfferingUpstream, two: OfferingUpstream) -> None:
    async with merged(one, two, settings={"prefix": "never"}) as front:
        tools = await front.ask("tools/list")
        assert names(tools)[:2] == ["x", "y"]
        assert (len(names(tools)), len(names(tools)[2])) == (3, 128)
        assert [(await front.call(tool=tool)).text for tool in names(tools)] == ["x@one", "y@one", f"{LONG}@two"]
        assert (await front.call(tool="z")).error["code"] == -32602
        assert len([entry for entry in front.log if entry["event"] == "clash"]) == 1
        assert (await front.ask("prompts/get", {"name": "greet"})).result["messages"][0]["content"]["text"] == (
            "greet@one"
        )


# --- resources ---


async def read(front: Front, uri: str) -> str:
    contents = (await front.ask("resources/read", {"uri": uri})).result["contents"]
    return str(contents[0]["text"])


async def test_a_resource_is_read_where_it_is_listed(one: OfferingUpstream, two: OfferingUpstream) -> None:
    async with merged(one, two) as front:
        assert await read(front, "file:///1") == "file:///1@one"
        assert await read(front, "file:///2") == "file:///2@two"
        assert len(two.received("resources/read")) == 1


async def test_one_that_a_template_fits_is_read_there(one: OfferingUpstream, two: OfferingUpstream) -> None:
    one.unlisted = two.unlisted = {"file:///3", "db://users"}
    async with merged(one, two) as front:
        assert await read(front, "file:///3") == "file:///3@one"
        assert await read(front, "db://users") == "db://users@two"
        assert len(two.received("resources/read")) == len(one.received("resources/read")) == 1


async def test_one_that_nothing_tells_of_is_asked_for_in_the_order_of_the_file_and_remembered(
    one: OfferingUpstream, two: OfferingUpstream
) -> None:
    two.unlisted = {"secret:1"}
    async with merged(one, two) as front:
        assert await read(front, "secret:1") == "secret:1@two"
        assert await read(front, "secret:1") == "secret:1@two"
    assert (len(one.received("resources/read")), len(two.received("resources/read"))) == (1, 2)


async def test_what_a_tool_links_to_is_read_where_the_tool_is(one: OfferingUpstream, two: OfferingUpstream) -> None:
    one.unlisted = two.unlisted = {"secret:1"}
    link = {"type": "resource_link", "uri": "secret:1", "name": "s"}
    two.on("tools/call", lambda wire: wire.result({"resultType": "complete", "content": [link]}))
    async with merged(one, two) as front:
        await front.call(tool="two__y")
        assert await read(front, "secret:1") == "secret:1@two"
    assert not one.received("resources/read")


async def test_a_resource_that_nobody_has_is_unknown(one: OfferingUpstream, two: OfferingUpstream) -> None:
    async with merged(one, two) as front:
        answer = await front.ask("resources/read", {"uri": "secret:1"})
        assert (answer.status, answer.error) == (
            200,
            {"code": -32602, "message": "Unknown resource", "data": {"uri": "secret:1"}},
        )


async def test_an_empty_answer_is_no_resource_as_long_as_others_may_have_it(
    one: OfferingUpstream, two: OfferingUpstream
) -> None:
    one.on("resources/read", lambda wire: wire.result({"contents": []}))
    two.unlisted = {"secret:1"}
    async with merged(one, two) as front:
        assert await read(front, "secret:1") == "secret:1@two"
        two.unlisted = set()
        assert (await front.ask("resources/read", {"uri": "secret:2"})).result["contents"] == []


# --- completion ---


async def test_completion_is_asked_of_whose_prompt_or_template_it_is(
    one: OfferingUpstream, two: OfferingUpstream
) -> None:
    async with merged(one, two) as front:
        answers = [
            await front.ask("completion/complete", complete(**reference))
            for reference in (
                {"type": "ref/prompt", "name": "two__greet"},
                {"type": "ref/resource", "uri": "db://{t}"},
                {"type": "ref/resource", "uri": "file:///{id}"},
            )
        ]
        assert [answer.result["completion"]["values"] for answer in answers] == [
            ["greet@two"],
            ["db://{t}@two"],
            ["file:///{id}@one"],
        ]
        assert two.received("completion/complete")[0].params["ref"] == {"type": "ref/prompt", "name": "greet"}
        for reference in (
            {"type": "ref/prompt", "name": "three__greet"},
            {"type": "ref/resource", "uri": "nothing:{x}"},
        ):
            answer = await front.ask("completion/complete", complete(**reference))
            assert (answer.status, answer.error["code"]) == (200, -32602)


async def test_a_reference_may_be_to_a_resource_itself(one: OfferingUpstream, two: OfferingUpstream) -> None:
    two.on("completion/complete", lambda wire: wire.result({"resultType": "complete", "completion": {"values": []}}))
    async with merged(one, two) as front:
        await front.ask("completion/complete", complete(type="ref/resource", uri="file:///2"))
    assert len(two.received("completion/complete")) == 1


# --- discovery ---


async def test_discovery_unites_what_the_upstreams_offer(one: OfferingUpstream, two: OfferingUpstream) -> None:
    one.capabilities = {"tools": {}, "logging": {}}
    one.instructions, two.instructions = "Be brief.", "Ask first."
    two.capabilities = {"prompts": {"listChanged": True}, "resources": {"subscribe": True}}
    async with merged(one, two) as front:
        result = (await front.ask("server/discover")).result
        assert result["capabilities"] == {
            "tools": {},
            "logging": {},
            "prompts": {"listChanged": True},
            "resources": {"subscribe": True},
        }
        assert result["instructions"] == "# one\n\nBe brief.\n\n# two\n\nAsk first."
        assert result["supportedVersions"] == ["2026-07-28"]
        assert result["_meta"] == {SERVER_INFO: {"name": "era-gateway", "version": "0.1.0"}}
