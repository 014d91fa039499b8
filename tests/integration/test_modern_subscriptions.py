"""`subscriptions/listen` in front of a modern server: one stream of the server for all listeners of a principal."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from gateway.upstream import backoff, modern_listening
from tests.support.changing_server import PROMPTS, TOOLS, UPDATED
from tests.support.leftovers import until, until_quiet
from tests.support.modern_changing import served
from tests.support.scripted import Wire
from tests.support.stream_client import ACKNOWLEDGED, SUBSCRIPTION, listening, opened

LISTEN = "subscriptions/listen"


@pytest.fixture(autouse=True)
def quick_reconnections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "PAUSES_S", (0.001,))


def tagged(method: str, id: str | int, **params: Any) -> dict[str, Any]:
    """What a listener is told of a change."""
    return {"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": {SUBSCRIPTION: id}}}


async def test_one_stream_of_the_server_feeds_all_listeners() -> None:
    async with served() as (upstream, front), AsyncExitStack() as stack:
        listeners = [listening(front, id=number) for number in range(50)]
        streams = await asyncio.gather(*map(stack.enter_async_context, listeners))
        assert len(upstream.received(LISTEN)) == 1
        await upstream.tell(TOOLS)
        told = await asyncio.gather(*(stream.message() for stream in streams))
        assert told == [tagged(TOOLS, number) for number in range(50)]
        await stack.aclose()
        await upstream.until(lambda: not upstream.streams)
        await until_quiet(front)


async def test_what_the_server_does_not_grant_is_not_promised() -> None:
    async with served() as (upstream, front):
        upstream.offers = {"promptsListChanged"}
        upstream.refused = {"note://2"}
        asked = {
            "toolsListChanged": True,
            "promptsListChanged": True,
            "resourceSubscriptions": ["note://1", "note://2"],
        }
        async with opened(front, LISTEN, {"notifications": asked}) as stream:
            granted = {"promptsListChanged": True, "resourceSubscriptions": ["note://1"]}
            assert await stream.message() == tagged(ACKNOWLEDGED, 1, notifications=granted)


async def test_a_listener_of_nothing_is_completed_at_once_and_no_stream_is_kept() -> None:
    async with served() as (upstream, front):
        upstream.offers = set()
        async with listening(front, id="L") as stream:
            assert [message["id"] for message in await stream.rest()] == ["L"]
        await until_quiet(front)
        assert len(upstream.received(LISTEN)) == 1


async def test_a_listener_who_asks_for_more_widens_the_stream_and_nobody_hears_less() -> None:
    async with (
        served() as (upstream, front),
        listening(front, id="old") as old,
        listening(front, id="new", tools=False, uris=["note://1"]) as new,
    ):
        await upstream.until(lambda: len(upstream.streams) == 1)
        assert upstream.asked == [
            {"toolsListChanged": True},
            {"toolsListChanged": True, "resourceSubscriptions": ["note://1"]},
        ]
        await upstream.tell(TOOLS)
        await upstream.tell(UPDATED, uri="note://1")
        assert await old.message() == tagged(TOOLS, "old")
        assert await new.message() == tagged(UPDATED, "new", uri="note://1")


async def test_what_nobody_wants_any_more_is_left_out_of_the_next_stream() -> None:
    async with served() as (upstream, front), listening(front):
        for number in range(3):
            async with listening(front, uris=[f"note://{number}"]):
                pass
            await until(lambda: len(front.gateway.upstreams["docs"]._subscriptions) == 1)
            await until(lambda: len(front.gateway.upstreams["docs"]._background) == 0)
        assert [asked.get("resourceSubscriptions") for asked in upstream.asked] == [
            None,
            ["note://0"],
            ["note://1"],
            ["note://2"],
        ]


async def test_listeners_who_come_together_widen_the_stream_together() -> None:
    async with served() as (upstream, front), AsyncExitStack() as stack:
        listeners = [listening(front, id=number, uris=[f"note://{number:02}"]) for number in range(40)]
        streams = await asyncio.gather(*map(stack.enter_async_context, listeners))
        assert len(upstream.asked) < 10
        assert upstream.asked[-1]["resourceSubscriptions"] == [f"note://{number:02}" for number in range(40)]
        await upstream.until(lambda: len(upstream.streams) == 1)
        await upstream.tell(UPDATED, uri="note://07")
        assert await streams[7].message() == tagged(UPDATED, 7, uri="note://07")


async def test_a_stream_that_ended_is_opened_again_and_everything_counts_as_changed() -> None:
    async with served() as (upstream, front), listening(front, uris=["note://1"]) as stream:
        await upstream.drop()
        assert await stream.message() == tagged(TOOLS, 1)
        assert await stream.message() == tagged(UPDATED, 1, uri="note://1")
        await upstream.until(lambda: upstream.streams)
        await upstream.tell(TOOLS)
        assert await stream.message() == tagged(TOOLS, 1)


async def test_a_server_that_restarts_is_listened_to_again() -> None:
    async with served() as (upstream, front), listening(front) as stream:
        await upstream.stop()
        await upstream.start()
        assert await stream.message() == tagged(TOOLS, 1)


async def test_listeners_are_told_when_the_server_will_not_be_listened_to_any_more() -> None:
    async with served() as (upstream, front), listening(front, id="L") as stream:
        upstream.on(LISTEN, lambda wire: wire.error(-32601, "Method not found", status=404))
        await upstream.drop()
        (last,) = await stream.rest()
        assert (last["id"], last["error"]["code"]) == ("L", -32601)
        assert len(upstream.received(LISTEN)) == 1 + modern_listening.PATIENCE
        await until_quiet(front)


async def test_listeners_are_told_when_less_is_granted_than_was_promised() -> None:
    async with served() as (upstream, front), listening(front, uris=["note://1"]) as stream:
        upstream.refused = {"note://1"}
        await upstream.drop()
        (last,) = await stream.rest()
        assert last["error"]["data"]["reason"] == "nonsense"
        await until_quiet(front)


async def test_a_server_without_subscriptions_says_so_to_the_client() -> None:
    async with served() as (upstream, front):
        upstream.on(LISTEN, lambda wire: wire.error(-32601, "Method not found", status=404))
        async with opened(front, LISTEN, {"notifications": {"toolsListChanged": True}}) as stream:
            assert (await stream.answer())["error"]["code"] == -32601
            assert stream.status == 404
        await until_quiet(front)


async def test_a_server_that_acknowledges_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modern_listening, "ACKNOWLEDGE_S", 0.05)
    async with served() as (upstream, front):
        upstream.on(LISTEN, lambda wire: wire.hang())
        async with opened(front, LISTEN, {"notifications": {"toolsListChanged": True}}) as stream:
            assert (await stream.answer())["error"]["data"]["reason"] == "nonsense"
            assert stream.status == 502
        await until_quiet(front)


async def test_a_listener_that_leaves_before_the_acknowledgement_leaves_no_stream_behind() -> None:
    async with served() as (upstream, front):
        is_gone = asyncio.Event()

        @upstream.on(LISTEN)
        async def never(wire: Wire) -> None:
            await wire.sse()
            await wire.hang()
            is_gone.set()

        async with opened(front, LISTEN, {"notifications": {"toolsListChanged": True}}):
            await upstream.seen(LISTEN)
        async with asyncio.timeout(5):
            await is_gone.wait()
        await until_quiet(front)


async def test_what_was_not_asked_for_is_not_passed_on() -> None:
    async with served() as (upstream, front), listening(front) as stream:
        await upstream.tell(PROMPTS)
        await upstream.tell("notifications/message", level="error", data="x")
        await upstream.tell("notifications/progress", progressToken=1, progress=1)
        await upstream.tell(TOOLS)
        assert await stream.message() == tagged(TOOLS, 1)


async def test_at_shutdown_the_streams_end_in_order_and_the_servers_stream_is_closed() -> None:
    async with served() as (upstream, front), listening(front, id="L") as stream:
        front.gateway.end_streams()
        cancelled, result = await stream.rest()
        assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", "L")
        assert result["result"] == {"resultType": "complete", "_meta": {SUBSCRIPTION: "L"}}
        await upstream.until(lambda: not upstream.streams)
