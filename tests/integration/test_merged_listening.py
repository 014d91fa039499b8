"""One `subscriptions/listen` over several upstreams: one promise, kept by all of them, and by those that come back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.support.changing_server import PROMPTS, RESOURCES, TOOLS, UPDATED, ChangingUpstream
from tests.support.gateway_app import Front, gateway_for
from tests.support.merged import as_user, names, users
from tests.support.scripted import ScriptedUpstream, Wire
from tests.support.stream_client import SUBSCRIPTION, OpenStream, listening, opened

CANCELLED = "notifications/cancelled"


class Telling(ChangingUpstream):
    """A server that tells of changes, and lists resources and tools of its own."""

    def __init__(self, *uris: str, tools: tuple[str, ...] = ("x",)) -> None:
        super().__init__()
        self.tools = [{"name": name, "inputSchema": {"type": "object"}} for name in tools]
        self.on("resources/list", lambda wire: wire.result({"resources": [{"uri": uri, "name": uri} for uri in uris]}))
        self.on("resources/templates/list", lambda wire: wire.result({"resourceTemplates": []}))
        self.on(
            "tools/call", lambda wire: wire.result({"content": [{"type": "text", "text": wire.request.params["name"]}]})
        )


@asynccontextmanager
async def both(*, settings: Any = None, **more: Any) -> AsyncIterator[tuple[Telling, Telling, Front]]:
    async with (
        Telling("a:1", "a:2") as one,
        Telling("b:1", tools=("y",)) as two,
        gateway_for(upstreams={"one": one, "two": two}, settings=settings, era="legacy", **more) as front,
    ):
        yield one, two, front


def wanted(*uris: str, lists: tuple[str, ...] = ("tools", "prompts", "resources")) -> dict[str, Any]:
    flags: dict[str, Any] = {f"{kind}ListChanged": True for kind in lists}
    return {"notifications": flags | ({"resourceSubscriptions": list(uris)} if uris else {})}


async def granted(stream: OpenStream) -> Any:
    acknowledgement = await stream.message()
    assert acknowledgement["method"] == "notifications/subscriptions/acknowledged"
    return acknowledgement["params"]["notifications"]


async def heard(stream: OpenStream) -> tuple[str, str | None]:
    message = await stream.message()
    return message["method"], message["params"].get("uri")


# --- the promise ---


async def test_one_acknowledgement_promises_what_any_of_them_delivers() -> None:
    async with both() as (one, two, front):
        one.capabilities = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
        two.capabilities = {"prompts": {"listChanged": True}}
        async with opened(front, "subscriptions/listen", wanted("a:1", "nobody:1"), request_id="L1") as stream:
            assert await granted(stream) == {
                "toolsListChanged": True,
                "promptsListChanged": True,
                "resourceSubscriptions": ["a:1", "nobody:1"],
            }
            await one.tell(TOOLS)
            message = await stream.message()
            assert message["method"] == TOOLS
            assert message["params"]["_meta"] == {SUBSCRIPTION: "L1"}
            await two.tell(PROMPTS)
            assert await heard(stream) == (PROMPTS, None)


async def test_a_resource_is_subscribed_to_where_it_is() -> None:
    async with both() as (one, two, front), listening(front, uris=["a:1", "b:1"]) as stream:
        assert {uri for _session, uri in one.subscribed} == {"a:1"}
        assert {uri for _session, uri in two.subscribed} == {"b:1"}
        await two.tell(UPDATED, uri="b:1")
        assert await heard(stream) == (UPDATED, "b:1")
        await one.tell(UPDATED, uri="a:1")
        assert await heard(stream) == (UPDATED, "a:1")


async def test_what_nobody_can_deliver_is_acknowledged_and_over() -> None:
    async with (
        ScriptedUpstream() as one,
        ScriptedUpstream() as two,
        gateway_for(upstreams={"one": one, "two": two}) as front,
    ):
        answer = await front.ask("subscriptions/listen", wanted(), request_id=5)
        assert [message["params"]["notifications"] for message in answer.notifications] == [{}]
        assert answer.result == {"resultType": "complete", "_meta": {SUBSCRIPTION: 5}}


async def test_a_listener_counts_for_each_upstream_and_too_many_are_refused() -> None:
    async with both(settings={"server": {"max_listeners": 2}}) as (_one, _two, front), listening(front):
        answer = await front.ask("subscriptions/listen", wanted())
        assert (answer.status, answer.error["data"]["reason"]) == (503, "full")
        assert answer.headers["retry-after"]


async def test_a_user_hears_of_the_upstreams_that_it_may_use() -> None:
    async with (
        both(settings={"auth": users(alice=["one"])}) as (one, two, front),
        listening(front, headers=as_user("alice")) as stream,
    ):
        assert not two.log
        await one.tell(TOOLS)
        assert await heard(stream) == (TOOLS, None)


async def test_a_modern_upstream_is_listened_to_as_well() -> None:
    async with ScriptedUpstream("modern") as modern, Telling() as legacy:
        modern.capabilities = {"prompts": {"listChanged": True}}
        streams: list[Wire] = []

        @modern.on("subscriptions/listen")
        async def listen(wire: Wire) -> None:
            about = {"_meta": {SUBSCRIPTION: wire.request.id}}
            await wire.sse()
            asked = wire.request.params["notifications"]
            promise = {key: value for key, value in asked.items() if key == "promptsListChanged"}
            await wire.notify("notifications/subscriptions/acknowledged", {"notifications": promise, **about})
            streams.append(wire)
            await wire.hang()

        async with (
            gateway_for(upstreams={"new": modern, "old": legacy}) as front,
            opened(front, "subscriptions/listen", wanted()) as stream,
        ):
            assert (await granted(stream))["promptsListChanged"] is True
            await streams[0].notify(PROMPTS, {"_meta": {SUBSCRIPTION: modern.log[-1].id}})
            assert await heard(stream) == (PROMPTS, None)
            await legacy.tell(RESOURCES)
            assert await heard(stream) == (RESOURCES, None)


# --- its end ---


async def test_who_leaves_is_heard_of_by_all() -> None:
    async with both() as (one, two, front):
        async with listening(front):
            await one.until(lambda: one.streams)
            await two.until(lambda: two.streams)
        await one.until(lambda: not one.streams)
        await two.until(lambda: not two.streams)


async def test_the_gateway_takes_its_leave_once() -> None:
    async with both() as (_one, _two, front), listening(front, id="L") as stream:
        front.gateway.end_streams()
        assert [
            (message.get("method"), message.get("result", {}).get("resultType")) for message in await stream.rest()
        ] == [
            (CANCELLED, None),
            (None, "complete"),
        ]


# --- those that are not there ---


async def test_one_that_hangs_does_not_keep_the_promise_back() -> None:
    async with both(settings={"list_timeout": "300ms"}) as (one, two, front):
        wall = asyncio.Event()

        async def wait(_wire: Any) -> None:
            await wall.wait()

        two.gate = wait
        async with listening(front) as stream:
            await one.tell(TOOLS)
            assert await heard(stream) == (TOOLS, None)
            wall.set()
            assert await heard(stream) == (TOOLS, None)  # what it may have told meanwhile
            await two.until(lambda: two.streams)
            await two.tell(TOOLS)
            assert await heard(stream) == (TOOLS, None)


async def test_one_that_comes_back_is_listened_to_again_and_its_lists_count_as_changed() -> None:
    async with both() as (one, two, front):
        await two.stop()
        async with listening(front) as stream:
            assert names(await front.ask("tools/list")) == ["one__x"]
            await two.start()
            assert await heard(stream) == (TOOLS, None)
            assert names(await front.ask("tools/list")) == ["one__x", "two__y"]
            await one.tell(TOOLS)
            assert await heard(stream) == (TOOLS, None)


async def test_what_was_not_promised_is_not_told() -> None:
    async with both() as (one, two, front):
        one.capabilities = {"tools": {"listChanged": True}}
        await two.stop()
        async with opened(front, "subscriptions/listen", wanted()) as stream:
            assert await granted(stream) == {"toolsListChanged": True}
            await two.start()
            assert await heard(stream) == (TOOLS, None)
            await two.until(lambda: two.streams)
            await two.tell(PROMPTS)
            await two.tell(TOOLS)
            assert await heard(stream) == (TOOLS, None)


# --- what changes elsewhere ---


async def test_a_change_of_a_list_is_seen_at_once() -> None:
    async with both(settings={"prefix": "never"}) as (one, two, front), listening(front) as stream:
        assert (await front.call(tool="y")).text == "y"
        assert (len(one.received("tools/call")), len(two.received("tools/call"))) == (0, 1)
        one.tools = two.tools
        await one.tell(TOOLS)
        assert await heard(stream) == (TOOLS, None)
        assert (await front.call(tool="y")).text == "y"
        assert (len(one.received("tools/call")), len(two.received("tools/call"))) == (1, 1)


async def test_updates_of_resources_put_no_list_in_doubt() -> None:
    async with both(settings={"prefix": "never"}) as (one, two, front), listening(front, uris=["a:1"]) as stream:
        await front.call(tool="y")
        await one.tell(UPDATED, uri="a:1")
        assert await heard(stream) == (UPDATED, "a:1")
        await front.call(tool="y")
        assert (len(one.received("tools/list")), len(two.received("tools/list"))) == (1, 1)


async def test_a_cached_list_is_forgotten_before_the_change_is_told() -> None:
    async with both(settings={"cache": {"ttl": "1h"}}) as (one, two, front), listening(front) as stream:
        assert names(await front.ask("tools/list")) == names(await front.ask("tools/list")) == ["one__x", "two__y"]
        assert (len(one.received("tools/list")), len(two.received("tools/list"))) == (1, 1)
        one.tools = two.tools
        await one.tell(TOOLS)
        assert await heard(stream) == (TOOLS, None)
        assert names(await front.ask("tools/list")) == ["one__y", "two__y"]
        assert (len(one.received("tools/list")), len(two.received("tools/list"))) == (2, 1)
