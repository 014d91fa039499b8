"""`sessions.affinity`: one session for each value of a header, among those of one user."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.integration.test_field_sessions import API_KEYS, ASKS, QUIET, as_, remembering_server
from tests.support.asking_server import AskingServer, Call
from tests.support.asking_tools import ELICIT, FORM, filled
from tests.support.gateway_app import Front, gateway_for
from tests.support.messages import good_request
from tests.support.scripted import ScriptedUpstream
from tests.support.stream_client import listening

STICKY = {"reuse": "sticky", "affinity": "X-Conversation"}


def in_(conversation: str, name: str | None = None) -> dict[str, str]:
    return {"x-conversation": conversation, **({} if name is None else as_(name))}


async def use(front: Front, tool: str, text: str = "", headers: dict[str, str] | None = None, **more: Any) -> str:
    return (await front.call(text, tool=tool, headers=headers, **more)).text


@asynccontextmanager
async def remembering(**settings: Any) -> AsyncIterator[tuple[ScriptedUpstream, Front]]:
    async with (
        remembering_server() as upstream,
        gateway_for(upstream, sessions={**STICKY, **settings.pop("sessions", {})}, **settings) as front,
    ):
        yield upstream, front


@pytest.mark.parametrize("capabilities", [QUIET, ASKS], ids=["quiet", "asks"])
async def test_each_value_of_the_header_has_a_session_of_its_own(capabilities: dict[str, Any]) -> None:
    async with remembering() as (upstream, front):
        for conversation in ("one", "two"):
            await use(front, "remember", conversation, in_(conversation), capabilities=capabilities)
        await use(front, "remember", "nameless", capabilities=capabilities)
        for conversation in ("one", "two"):
            assert await use(front, "recall", headers=in_(conversation), capabilities=capabilities) == conversation
        assert await use(front, "recall", capabilities=capabilities) == "nameless"
        assert len(upstream.received("initialize")) == 3
        assert not any("x-conversation" in received.headers for received in upstream.log)


async def test_one_value_means_another_session_for_every_user() -> None:
    async with remembering(settings=API_KEYS) as (_upstream, front):
        await use(front, "remember", "of alice", in_("one", "alice"))
        assert await use(front, "recall", headers=in_("one", "bob")) == "None"
        assert await use(front, "recall", headers=in_("one", "alice")) == "of alice"


async def test_a_value_that_cannot_name_a_session_is_refused_before_the_server_hears_of_it() -> None:
    async with remembering() as (upstream, front):
        await use(front, "recall")
        heard = len(upstream.log)
        answer = await front.call(headers=in_("a" * 257))
        assert (answer.status, answer.error["code"]) == (400, -32600)
        headers, body = good_request("tools/call", {"name": "echo", "arguments": {}})
        twice = [*headers, (b"X-Conversation", b"a"), (b"X-Conversation", b"b")]
        assert (await front.http.post(front.url + "/mcp", content=body, headers=twice)).status_code == 400
        assert len(upstream.log) == heard


async def test_the_header_means_nothing_where_it_is_not_configured() -> None:
    async with remembering_server() as upstream, gateway_for(upstream, sessions={"reuse": "sticky"}) as front:
        await use(front, "remember", "it", in_("one"))
        assert await use(front, "recall", headers=in_("a" * 257)) == "it"


async def test_many_values_are_bounded_and_the_one_that_is_idle_for_longest_makes_room() -> None:
    async with remembering(sessions={"max": 3}) as (upstream, front):
        for conversation in ("one", "two", "three"):
            await use(front, "remember", conversation, in_(conversation))
        assert await use(front, "recall", headers=in_("one")) == "one"
        await use(front, "remember", "four", in_("four"))
        await upstream.seen("DELETE")
        assert len(upstream.sessions) == 3
        for conversation in ("one", "three", "four"):
            assert await use(front, "recall", headers=in_(conversation)) == conversation
        assert await use(front, "recall", headers=in_("two")) == "None"


async def test_concurrent_first_calls_of_one_value_share_one_session() -> None:
    async with remembering() as (upstream, front):
        await asyncio.gather(*(use(front, "recall", headers=in_(f"c{number % 2}")) for number in range(10)))
        assert len(upstream.received("initialize")) == 2


async def test_the_merged_endpoint_tells_each_upstream_its_own_header() -> None:
    each = {"a": {"sessions": {"reuse": "sticky", "affinity": "X-A"}}, "b": {"sessions": {"reuse": "sticky"}}}
    async with (
        remembering_server() as a,
        remembering_server() as b,
        gateway_for(upstreams={"a": a, "b": b}, each=each) as front,
    ):
        for server in (a, b):
            server.tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("remember", "recall")]
        for name in ("a", "b"):
            await use(front, f"{name}__remember", "first", {"x-a": "1"})
        assert await use(front, "a__recall", headers={"x-a": "2"}) == "None"
        assert await use(front, "a__recall", headers={"x-a": "1"}) == "first"
        assert await use(front, "b__recall", headers={"x-a": "2"}) == "first"
        assert await use(front, "recall", headers={"x-a": "1"}, path="/mcp/a") == "first"


async def test_a_kept_list_is_kept_for_one_value_alone() -> None:
    async with remembering(cache={"ttl": "1m"}) as (upstream, front):

        @upstream.on("tools/list")
        async def list_own(wire: Any) -> None:
            name = "tool" + str(wire.request.session).removeprefix("sess")
            await wire.result({"tools": [{"name": name, "inputSchema": {"type": "object"}}]})

        async def tools(conversation: str) -> list[str]:
            answer = await front.ask("tools/list", headers=in_(conversation))
            return [tool["name"] for tool in answer.result["tools"]]

        one, two = await tools("one"), await tools("two")
        assert one != two
        assert (await tools("one"), await tools("two")) == (one, two)
        assert len(upstream.received("tools/list")) == 2


async def test_listeners_listen_on_the_session_that_they_mean() -> None:
    async with remembering() as (upstream, front):
        upstream.capabilities = {"tools": {"listChanged": True}}
        upstream.offer_get()
        async with (
            listening(front, id="a", headers=in_("one")),
            listening(front, id="b", headers=in_("two")),
            listening(front, id="c", headers=in_("two")),
        ):
            assert {received.session for received in upstream.received("GET")} == {"sess-1", "sess-2"}


async def test_a_question_and_its_answer_stay_in_the_session_that_was_meant() -> None:
    async with AskingServer() as server:
        seen: list[object] = []

        @server.tool
        async def greet(call: Call) -> str:
            seen.append(call.session)
            answer = await call.ask(ELICIT, FORM)
            return str(answer["content"]["name"])

        async with gateway_for(server.url, era="legacy", sessions=STICKY) as front:
            arguments = {"name": "greet", "arguments": {}}
            for conversation in ("one", "two", "one"):
                asked = await front.ask("tools/call", arguments, headers=in_(conversation), capabilities=ASKS)
                state, key = asked.result["requestState"], next(iter(asked.result["inputRequests"]))
                retry = {**arguments, "inputResponses": {key: filled("Ada")}, "requestState": state}
                done = await front.ask("tools/call", retry, headers=in_(conversation), capabilities=ASKS)
                assert done.text == "Ada"
        assert seen[0] == seen[2] != seen[1]
