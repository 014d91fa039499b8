"""Behind one endpoint one upstream hangs, another is down, a third is slow: the others are not to suffer for it."""

import asyncio
from collections.abc import Sequence

from tests.support.merged import as_user, merged, names, unavailable, users
from tests.support.offering_server import OfferingUpstream

SOON = {"list_timeout": "300ms"}


def ten() -> list[OfferingUpstream]:
    """Ten upstreams of one tool each: the second hangs, the fifth is about to be down, the eighth is slow."""
    upstreams = [OfferingUpstream(f"u{number}", tools=["x"], resources=[f"u{number}:1"]) for number in range(10)]
    upstreams[1].shut()
    upstreams[7].shut()
    return upstreams


def fine(upstreams: Sequence[OfferingUpstream]) -> list[OfferingUpstream]:
    return [upstream for upstream in upstreams if upstream.label not in ("u1", "u4", "u7")]


async def test_calls_and_lists_of_the_others_are_not_delayed() -> None:
    """Nothing here can end before the hung one answers, if anything waits for it: it never does."""
    upstreams = ten()
    async with merged(*upstreams, settings={"list_timeout": "1h"}) as front:
        await upstreams[4].stop()
        listing = asyncio.ensure_future(front.ask("tools/list"))
        await upstreams[1].seen("server/discover")
        labels = [upstream.label for upstream in fine(upstreams)]
        calls = await asyncio.gather(*(front.call(tool=f"{label}__x") for label in labels))
        assert [call.text for call in calls] == [f"x@{label}" for label in labels]
        lists = await asyncio.gather(*(front.ask("tools/list", path=f"/mcp/{label}") for label in labels))
        assert [names(answer) for answer in lists] == [["x"]] * 7
        assert not listing.done()
        upstreams[1].open()
        upstreams[7].open()
        assert len(names(await listing)) == 9


async def test_the_list_has_what_the_others_have_and_says_what_is_missing() -> None:
    upstreams = ten()
    async with merged(*upstreams, settings=SOON) as front:
        await upstreams[4].stop()
        answer = await front.ask("tools/list")
        assert names(answer) == [f"{upstream.label}__x" for upstream in fine(upstreams)]
        assert unavailable(answer) == ["u1", "u4", "u7"]
        assert unavailable(await front.ask("server/discover")) == ["u1", "u4", "u7"]
        assert unavailable(await front.ask("resources/list")) == ["u1", "u4", "u7"]

        upstreams[7].open()
        await upstreams[7].seen("tools/list")
        await upstreams[4].start()
        answer = await front.ask("tools/list")
        assert unavailable(answer) == ["u1"]
        assert "u7__x" in names(answer)
        assert "u4__x" in names(answer)

        upstreams[1].open()
        answer = await front.ask("tools/list")
        assert (len(names(answer)), unavailable(answer)) == (10, [])


async def test_one_that_hangs_is_not_asked_the_same_again_and_again() -> None:
    hung, other = OfferingUpstream("hung", tools=["x"]), OfferingUpstream("other", tools=["y"])
    async with merged(hung, other, settings=SOON) as front:
        assert names(await front.ask("tools/list")) == ["hung__x", "other__y"]
        hung.shut()
        for _ in range(5):
            await front.ask("tools/list")
        assert len(hung.received("tools/list")) == 2
        assert len(other.received("tools/list")) == 6
        hung.open()


async def test_the_last_known_list_stands_in_for_one_that_is_down() -> None:
    one, two = OfferingUpstream("one", tools=["x"]), OfferingUpstream("two", tools=["y"], prompts=["p"])
    async with merged(one, two, settings=SOON) as front:
        assert unavailable(await front.ask("tools/list")) == []
        await two.stop()
        answer = await front.ask("tools/list")
        assert (names(answer), unavailable(answer)) == (["one__x", "two__y"], ["two"])
        call = await front.call(tool="two__y")
        assert call.failure == (502, "unreachable", True)
        assert (await front.call(tool="one__x")).text == "x@one"
        two.offers = {**two.offers, "tools/list": ["z"]}
        await two.start()
        two.forget()
        assert names(await front.ask("tools/list")) == ["one__x", "two__z"]


async def test_the_last_known_list_is_for_those_who_know_it() -> None:
    one, two = OfferingUpstream("one", tools=["x"]), OfferingUpstream("two", tools=["y"])
    async with merged(one, two, settings={**SOON, "auth": users(alice=None, bob=None)}) as front:
        await front.ask("tools/list", headers=as_user("alice"))
        await two.stop()
        known = {name: await front.ask("tools/list", headers=as_user(name)) for name in ("alice", "bob")}
        assert {name: names(answer) for name, answer in known.items()} == {
            "alice": ["one__x", "two__y"],
            "bob": ["one__x"],
        }
        other_client = await front.ask("tools/list", headers=as_user("alice"), capabilities={"roots": {}})
        assert names(other_client) == ["one__x"]


async def test_a_part_is_an_error_if_the_operator_wants_it_so() -> None:
    one, two = OfferingUpstream("one", tools=["x"]), OfferingUpstream("two", tools=["y"])
    async with merged(one, two, settings={**SOON, "partial": "fail"}) as front:
        await two.stop()
        assert (await front.ask("server/discover")).failure == (502, "unreachable", True)
        await two.start()
        await front.ask("tools/list")
        await two.stop()
        assert (await front.ask("tools/list")).failure == (502, "unreachable", True)
        assert front.answers[-1].error["data"]["upstream"] == "two"
        await two.start()
        two.shut()
        assert (await front.ask("tools/list")).failure == (504, "timeout", True)
        assert (await front.call(tool="one__x")).text == "x@one"
        two.open()


async def test_if_all_are_down_there_is_nothing_to_list() -> None:
    one, two = OfferingUpstream("one", tools=["x"]), OfferingUpstream("two", tools=["y"])
    async with merged(one, two, settings=SOON) as front:
        await one.stop()
        await two.stop()
        for method in ("tools/list", "server/discover"):
            assert (await front.ask(method)).failure == (502, "unreachable", True)


async def test_what_may_belong_to_one_that_is_down_is_not_called_unknown() -> None:
    one, two = OfferingUpstream("one", tools=["x"], resources=["a:1"]), OfferingUpstream("two", resources=["b:1"])
    async with merged(one, two, settings={**SOON, "prefix": "never"}) as front:
        await two.stop()
        assert (await front.call(tool="x")).text == "x@one"
        assert (await front.call(tool="nobody_knows")).failure == (502, "unreachable", True)
        assert (await front.ask("prompts/get", {"name": "nobody_knows"})).failure == (502, "unreachable", True)
        assert (await front.ask("resources/read", {"uri": "b:1"})).failure == (502, "unreachable", True)
        assert (await front.ask("resources/read", {"uri": "a:1"})).status == 200


async def test_a_server_with_a_fault_of_its_own_does_not_hide_the_others() -> None:
    one, two = OfferingUpstream("one", tools=["x"]), OfferingUpstream("two", tools=["y"])
    async with merged(one, two, settings=SOON) as front:
        for fault in (
            lambda wire: wire.error(-32603, "database is locked"),
            lambda wire: wire.result({"tools": "none"}),
            lambda wire: wire.reply(500, b"oops"),
            lambda wire: wire.reset(),
        ):
            two.on("tools/list", fault)
            answer = await front.ask("tools/list", meta={"x/case": "n"})
            assert (names(answer), unavailable(answer)) == (["one__x"], ["two"])
