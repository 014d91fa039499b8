import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from gateway.core.names import MAX_NAME, Names
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller, Principal
from gateway.errors import ProtocolError, UpstreamError
from gateway.upstream.fan_out import FanOut
from gateway.upstream.merged_directory import FRESH_S, LOOK_AGAIN_S, Directory
from gateway.upstream.merged_listings import MAX_PAGES, Inquiry, Listings, list_request
from tests.support.fake_upstream import NOBODY, Clock, FakeUpstream, listing, request

TOOLS, CALL, READ = "tools/list", "tools/call", "resources/read"
DOWN = UpstreamError("a", "unreachable", "Upstream 'a' is down")
ABSENT = ProtocolError(-32601, "not offered")


class Known:
    """A directory with all that it needs."""

    def __init__(self, *upstreams: FakeUpstream, is_prefixed: bool = False, deadline_s: float = 60.0) -> None:
        self.upstreams = list(upstreams)
        self.clock = Clock()
        names = Names([upstream.name for upstream in upstreams], is_prefixed=is_prefixed)
        self.fan_out = FanOut(deadline_s, self.clock)
        self.listings = Listings(names, self.fan_out, self.clock)
        self.directory = Directory(names, self.listings)

    def inquiry(self, caller: Caller = NOBODY, upstreams: Sequence[FakeUpstream] | None = None, **more: Any) -> Inquiry:
        return Inquiry(self.upstreams if upstreams is None else upstreams, request(TOOLS, **more), caller)

    async def tool(self, name: str, **more: Any) -> tuple[str, str] | None:
        async with asyncio.timeout(10):
            return await self.directory.owner_of_name(CALL, name, self.inquiry(**more))

    async def resource(self, uri: str) -> tuple[str | None, list[str], list[str]]:
        async with asyncio.timeout(10):
            holders = await self.directory.holders_of(uri, self.inquiry())
        return holders.listed, holders.likely, holders.others

    def changed(self, upstream: str) -> None:
        """The tools of an upstream have changed."""
        self.fan_out.forget(upstream, TOOLS)
        self.listings.forget(upstream, TOOLS)

    async def at_rest(self) -> None:
        """Wait for what is learned in passing."""
        while self.listings._tasks:
            await asyncio.wait(self.listings._tasks)

    def asked(self) -> list[int]:
        return [len(upstream.asked) for upstream in self.upstreams]

    async def close(self) -> None:
        await self.listings.close()
        await self.fan_out.close()


@pytest.fixture
async def two() -> AsyncIterator[Known]:
    known = Known(FakeUpstream("a", tools=["x", "y"]), FakeUpstream("b", tools=["y", "z"]))
    yield known
    await known.close()


# --- names ---


async def test_a_prefix_tells_the_owner_without_a_question() -> None:
    known = Known(FakeUpstream("a"), FakeUpstream("b"), is_prefixed=True)
    assert await known.tool("b__whatever") == ("b", "whatever")
    assert await known.tool("whatever") is None
    assert known.asked() == [0, 0]


async def test_a_name_that_was_cut_is_found_in_the_lists() -> None:
    long = "x" * 200
    known = Known(FakeUpstream("a", tools=["x"]), FakeUpstream("b", tools=[long]), is_prefixed=True)
    public = Names(["a", "b"], is_prefixed=True).to_public("b", long)
    assert await known.tool(public) == ("b", long)
    assert await known.tool(public[: MAX_NAME - 1] + "?") is None


async def test_the_first_in_the_file_has_the_name(two: Known) -> None:
    assert [await two.tool(name) for name in "xyz"] == [("a", "x"), ("a", "y"), ("b", "z")]
    assert two.asked() == [1, 1]


async def test_a_name_is_looked_for_on_every_page() -> None:
    known = Known(FakeUpstream("a", tools=[["u"], ["v"], ["w"]]))
    assert await known.tool("w") == ("a", "w")
    assert [asked.params.get("cursor") for asked in known.upstreams[0].asked] == [None, "1", "2"]


@pytest.mark.parametrize("cursors", [["p"], ["p", "q"]])
async def test_pages_that_go_in_a_circle_are_looked_at_once(cursors: list[str]) -> None:
    upstream = FakeUpstream("a")
    given = iter(cursors * MAX_PAGES)
    upstream.lists = {"tools": ["x"]}
    upstream.answers[TOOLS] = lambda _request: _outcome(listing(TOOLS, "x", cursor=next(given)))
    known = Known(upstream)
    assert await known.tool("x") == ("a", "x")
    assert len(upstream.asked) == len(cursors) + 1


async def test_pages_without_end_are_looked_at_up_to_a_bound() -> None:
    upstream = FakeUpstream("a")
    given = iter(range(10 * MAX_PAGES))
    upstream.answers[TOOLS] = lambda _request: _outcome(listing(TOOLS, "x", cursor=str(next(given))))
    known = Known(upstream)
    assert await known.tool("x") == ("a", "x")
    assert len(upstream.asked) == MAX_PAGES


async def test_an_unknown_name_is_looked_for_again_but_not_at_once(two: Known) -> None:
    assert await two.tool("new") is None
    assert await two.tool("new") is None
    assert two.asked() == [1, 1]
    two.upstreams[1].lists = {"tools": ["new"]}
    two.clock.now_s += LOOK_AGAIN_S
    assert await two.tool("new") == ("b", "new")


async def test_an_old_list_is_used_while_it_is_learned_anew(two: Known) -> None:
    await two.tool("x")
    two.clock.now_s += FRESH_S
    two.upstreams[0].hold()
    assert await two.tool("z") == ("b", "z")
    await two.upstreams[0].seen(2)
    two.upstreams[0].lists = {"tools": ["z"]}
    two.upstreams[0].let_go()
    await two.at_rest()
    assert await two.tool("z") == ("a", "z")


async def test_after_a_change_the_lists_are_learned_anew(two: Known) -> None:
    assert await two.tool("z") == ("b", "z")
    two.upstreams[0].lists = {"tools": ["z"]}
    two.changed("a")
    assert await two.tool("z") == ("a", "z")


async def test_what_was_asked_for_before_a_change_is_not_believed(two: Known) -> None:
    two.upstreams[0].hold()
    asking = asyncio.ensure_future(two.tool("x"))
    await two.upstreams[0].seen(1)
    two.changed("a")
    two.upstreams[0].let_go()
    assert await asking == ("a", "x")
    await two.tool("x")
    assert two.asked() == [2, 1]


async def test_all_who_want_a_list_at_the_same_time_share_it_and_none_can_take_it_away(two: Known) -> None:
    two.upstreams[0].hold()
    asking = [asyncio.ensure_future(two.tool("x")) for _ in range(5)]
    await two.upstreams[0].seen(1)
    await asyncio.sleep(0)
    asking[0].cancel()
    two.upstreams[0].let_go()
    assert await asyncio.gather(*asking[1:]) == [("a", "x")] * 4
    assert two.asked() == [1, 1]


async def test_what_one_client_sees_is_no_other_ones_list(two: Known) -> None:
    different: list[dict[str, Any]] = [
        {},
        {"caller": Caller(Principal("bob", "bob"))},
        {"capabilities": {"roots": {}}},
    ]
    for more in different:
        assert await two.tool("x", **more) == ("a", "x")
    assert two.asked() == [3, 3]


async def test_only_those_that_a_caller_may_use_are_asked(two: Known) -> None:
    assert await two.tool("y", upstreams=two.upstreams[1:]) == ("b", "y")
    assert two.asked() == [0, 1]


# --- those that do not answer ---


async def test_a_silent_one_is_no_reason_to_wait_once_it_is_known_to_be_silent() -> None:
    known = Known(FakeUpstream("a"), FakeUpstream("b", tools=["x"]), deadline_s=0.02)
    known.upstreams[0].hold()
    assert await known.tool("x") == ("b", "x")
    known.clock.now_s += FRESH_S
    assert await known.tool("x") == ("b", "x")
    await known.close()


async def test_one_that_comes_after_the_owner_is_not_waited_for() -> None:
    known = Known(FakeUpstream("a", tools=["x"]), FakeUpstream("b"))
    known.upstreams[1].hold()
    assert await known.tool("x") == ("a", "x")
    await known.close()


async def test_one_that_comes_before_the_owner_gets_a_moment_and_no_more() -> None:
    known = Known(FakeUpstream("a", tools=["x"]), FakeUpstream("b", tools=["x"]))
    known.upstreams[0].hold()
    assert await known.tool("x") == ("b", "x")
    known.upstreams[0].let_go()
    await known.at_rest()
    assert await known.tool("x") == ("a", "x")


async def test_the_list_of_one_that_is_down_is_what_it_was(two: Known) -> None:
    await two.tool("x")
    two.upstreams[0].failure = DOWN
    two.changed("a")
    assert await two.tool("y") == ("a", "y")
    failures = two.directory.failures(TOOLS, two.inquiry())
    assert {name: failure.status for name, failure in failures.items()} == {"a": 502}


async def test_one_that_offers_no_such_list_is_no_failure(two: Known) -> None:
    two.upstreams[0].failure = ABSENT
    assert await two.tool("y") == ("b", "y")
    assert not two.directory.failures(TOOLS, two.inquiry())


# --- resources ---


async def test_a_resource_belongs_to_the_first_that_lists_it() -> None:
    known = Known(FakeUpstream("a", resources=["x:1"]), FakeUpstream("b", resources=["x:1", "x:2"]))
    assert await known.resource("x:1") == ("a", [], [])
    assert await known.resource("x:2") == ("b", [], [])
    assert known.asked() == [1, 1]


async def test_one_that_is_not_listed_is_where_a_template_fits_the_better_the_likelier() -> None:
    upstreams = [
        FakeUpstream("a", resourceTemplates=["x:{path}"]),
        FakeUpstream("b", resourceTemplates=["x:notes/{id}"]),
        FakeUpstream("c", resourceTemplates=["y:{id}"]),
    ]
    known = Known(*upstreams)
    assert await known.resource("x:notes/1") == (None, ["b", "a"], ["c"])
    assert await known.resource("x:1") == (None, ["a"], ["b", "c"])
    assert await known.resource("z:1") == (None, [], ["a", "b", "c"])


async def test_a_hint_counts_for_those_who_got_it() -> None:
    known = Known(FakeUpstream("a"), FakeUpstream("b"))
    known.directory.note_hint("x:1", "b", known.inquiry())
    assert await known.resource("x:1") == (None, ["b"], ["a"])
    other = await known.directory.holders_of("x:1", known.inquiry(Caller(Principal("bob", "bob"))))
    assert (other.likely, other.others) == ([], ["a", "b"])


async def test_one_that_is_down_may_have_what_nobody_else_has() -> None:
    known = Known(FakeUpstream("a"), FakeUpstream("b"))
    known.upstreams[0].failure = DOWN
    holders = await known.directory.holders_of("x:1", known.inquiry())
    assert (holders.others, list(holders.failures)) == (["b"], ["a"])


async def test_a_template_has_one_owner_too() -> None:
    known = Known(
        FakeUpstream("a", resourceTemplates=["x:{a}"]), FakeUpstream("b", resourceTemplates=["x:{a}", "y:{b}"])
    )
    owners = [await known.directory.owner_of_template(text, known.inquiry()) for text in ("x:{a}", "y:{b}", "z:{c}")]
    assert owners == ["a", "b", None]


# --- the whole of a list ---


async def test_the_owners_of_a_whole_list(two: Known) -> None:
    owner_of = await two.directory.owners(TOOLS, two.inquiry())
    assert [owner_of(name) for name in ("x", "y", "z", "new")] == ["a", "a", "b", None]
    two.upstreams[0].lists = {"tools": []}
    two.clock.now_s += FRESH_S
    owner_of = await two.directory.owners(TOOLS, two.inquiry())
    assert owner_of("y") == "b"


# --- a question in the name of another ---


def test_a_list_is_asked_for_in_the_name_of_the_client_and_without_what_is_about_its_own_request() -> None:
    about = {"io.modelcontextprotocol/logLevel": "info", "progressToken": 7, "x/tenant": "t"}
    call = request(CALL, {"name": "x"}, meta=about, log_level="info", progress_token=7, request_state="s")
    asked = list_request(call, TOOLS, "")
    assert (asked.method, asked.params) == (TOOLS, {"_meta": {"x/tenant": "t"}, "cursor": ""})
    assert (asked.meta, asked.log_level, asked.progress_token) == ({"x/tenant": "t"}, None, None)
    assert (asked.target, asked.request_state) == (None, None)
    assert "cursor" not in list_request(call, TOOLS, None).params


def _outcome(result: dict[str, Any]) -> Outcome:
    return Outcome.of_result(result)
