"""Lists of several upstreams, page by page: every page of every upstream, whatever their cursors and ours."""

import asyncio
from typing import Any

import pytest
from cryptography.fernet import Fernet

from tests.support.merged import as_user, merged, names, unavailable, users, walk
from tests.support.offering_server import OfferingUpstream
from tests.support.scripted import Wire

FROZEN = {"code": -32602, "message": "Invalid or expired cursor; begin the list again without one"}
LISTS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]


def paged(label: str, pages: int, *, size: int = 2, **more: Any) -> OfferingUpstream:
    """An upstream all of whose lists have so many pages."""

    def entries(text: str) -> list[list[str]]:
        return [[text.format(f"{label}{page}{entry}") for entry in range(size)] for page in range(pages)]

    return OfferingUpstream(
        label,
        tools=entries("t{}"),
        prompts=entries("p{}"),
        resources=entries("x:{}"),
        templates=entries("x:{{id}}/{}"),
        **more,
    )


def expected(method: str, *upstreams: OfferingUpstream) -> set[str]:
    prefixed = method in ("tools/list", "prompts/list")
    return {
        f"{upstream.label}__{name}" if prefixed else name
        for upstream in upstreams
        for name in upstream.everything(method)
    }


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize("page_size", [None, 1, 3, 100])
async def test_every_page_of_every_upstream_is_reachable(method: str, page_size: int | None) -> None:
    upstreams = [paged("a", 3), paged("b", 1), paged("c", 5, era="modern")]
    upstreams[0].cursors = lambda number: ["first", "p2", ""][number]  # the last page's cursor is the empty one
    async with merged(*upstreams, settings={"page_size": page_size}) as front:
        found, pages = await walk(front, method)
        assert len(found) == len(set(found)) == 18
        assert set(found) == expected(method, *upstreams)
        if page_size is None:
            assert len(pages) == 5
        else:
            member = next(key for key, value in pages[0].result.items() if isinstance(value, list))
            assert all(len(page.result[member]) <= page_size for page in pages)
        assert not any(unavailable(page) for page in pages)


async def test_a_cursor_goes_to_its_upstream_as_it_came() -> None:
    one, two = paged("a", 3), paged("b", 2)
    one.cursors = lambda number: ["first", "", "é\u2028 ?&=" * 10][number]
    async with merged(one, two) as front:
        await walk(front, "tools/list")
    assert [received.params.get("cursor") for received in one.received("tools/list")] == [None, "", "é\u2028 ?&=" * 10]
    assert "cursor" not in one.received("tools/list")[0].params


async def test_pages_of_ours_cost_no_more_of_theirs() -> None:
    one, two = paged("a", 1, size=9), paged("b", 1, size=9)
    async with merged(one, two, settings={"page_size": 2}) as front:
        found, pages = await walk(front, "tools/list")
        assert (len(found), len(pages)) == (18, 9)
        assert (len(one.received("tools/list")), len(two.received("tools/list"))) == (1, 1)


async def test_another_replica_goes_on_where_the_first_one_stopped() -> None:
    key = Fernet.generate_key().decode()
    one, two = paged("a", 2), paged("b", 3)
    settings = {"state": {"keys": key}, "page_size": 3}
    async with merged(one, two, settings=settings) as first:
        found = names(page := await first.ask("tools/list"))
    async with merged(one, two, settings=settings) as second:
        while "nextCursor" in page.result:
            page = await second.ask("tools/list", {"cursor": page.result["nextCursor"]})
            found += names(page)
    assert sorted(found) == sorted(expected("tools/list", one, two))


@pytest.mark.parametrize(
    "cursors",
    [
        pytest.param(lambda _number: "again", id="the same again"),
        pytest.param(lambda number: f"c{number % 3}", id="in a circle"),
    ],
)
async def test_a_list_that_never_ends_is_ended(cursors: Any) -> None:
    endless, other = OfferingUpstream("endless", tools=["x"]), paged("b", 2)
    count = iter(range(10_000))

    async def go_on(wire: Wire) -> None:
        await wire.result({"tools": [other.entry("name", "x")], "nextCursor": cursors(next(count))})

    endless.on("tools/list", go_on)
    async with merged(endless, other) as front:
        found, _pages = await walk(front, "tools/list", most=20)
        assert set(found) == {"endless__x"} | expected("tools/list", other)
        assert [entry["upstream"] for entry in front.log if entry["event"] == "list without end"] == ["endless"]


@pytest.mark.parametrize("cursor", ["", "p2", "gAAAAAB", "x" * 5000])
async def test_a_cursor_of_nobody_is_refused(cursor: str) -> None:
    one = paged("a", 2)
    async with merged(one, paged("b", 1)) as front:
        answer = await front.ask("tools/list", {"cursor": cursor})
        assert (answer.status, answer.error) == (400, FROZEN)
    assert not one.log


async def test_a_cursor_is_for_its_list_and_its_user() -> None:
    one, two = paged("a", 2), paged("b", 2)
    async with merged(one, two, settings={"auth": users(alice=None, bob=None)}) as front:
        page = await front.ask("tools/list", headers=as_user("alice"))
        params = {"cursor": page.result["nextCursor"]}
        for method, user in (("prompts/list", "alice"), ("tools/list", "bob")):
            answer = await front.ask(method, params, headers=as_user(user))
            assert (answer.status, answer.error) == (400, FROZEN)
        assert len(names(await front.ask("tools/list", params, headers=as_user("alice")))) == 4


async def test_a_cursor_that_its_upstream_refuses_is_a_bad_one() -> None:
    one, two = paged("a", 2), paged("b", 1)
    async with merged(one, two) as front:
        page = await front.ask("tools/list")
        one.cursors = lambda number: f"other{number}"
        answer = await front.ask("tools/list", {"cursor": page.result["nextCursor"]})
        assert (answer.status, answer.error) == (400, FROZEN)


async def test_one_refused_cursor_of_several_leaves_the_others_readable() -> None:
    one, two = paged("a", 2), paged("b", 2)
    async with merged(one, two) as front:
        page = await front.ask("tools/list")
        one.cursors = lambda number: f"other{number}"
        answer = await front.ask("tools/list", {"cursor": page.result["nextCursor"]})
        assert (names(answer), unavailable(answer)) == (["b__tb10", "b__tb11"], ["a"])


async def test_an_upstream_that_fails_on_the_way_is_asked_again_with_the_next_page() -> None:
    one, two = paged("a", 2), paged("b", 4)
    async with merged(one, two, settings={"list_timeout": "300ms"}) as front:
        first = await front.ask("tools/list")
        one.on("tools/list", lambda wire: wire.error(-32603, "not now"), times=1)
        second = await front.ask("tools/list", {"cursor": first.result["nextCursor"]})
        assert (names(second), unavailable(second)) == (["b__tb10", "b__tb11"], ["a"])
        third = await front.ask("tools/list", {"cursor": second.result["nextCursor"]})
        assert (names(third), unavailable(third)) == (["a__ta10", "a__ta11", "b__tb20", "b__tb21"], [])


async def test_without_a_prefix_a_name_is_listed_once_however_the_pages_fall() -> None:
    one = OfferingUpstream("one", tools=[["p"], ["q"], ["same"]])
    two = OfferingUpstream("two", tools=[["same", "r"], ["q"]])
    async with merged(one, two, settings={"prefix": "never"}) as front:
        found, _pages = await walk(front, "tools/list")
        assert sorted(found) == ["p", "q", "r", "same"]
        assert [(await front.call(tool=name)).text for name in ("q", "r", "same")] == ["q@one", "r@two", "same@one"]


async def test_what_is_on_a_later_page_can_be_called_and_read() -> None:
    one, two = paged("a", 3), paged("b", 3)
    async with merged(one, two, settings={"prefix": "never"}) as front:
        assert (await front.call(tool="tb21")).text == "tb21@b"
        assert (await front.ask("resources/read", {"uri": "x:b21"})).result["contents"][0]["text"] == "x:b21@b"


async def test_many_clients_can_walk_at_once() -> None:
    one, two = paged("a", 4), paged("b", 3)
    async with merged(one, two, settings={"page_size": 3}) as front:
        walks = await asyncio.gather(*(walk(front, "tools/list") for _ in range(5)))
        assert all(sorted(found) == sorted(expected("tools/list", one, two)) for found, _pages in walks)
