from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.cursors import Place
from gateway.core.merging import (
    UNAVAILABLE,
    Byline,
    Joined,
    Page,
    join_pages,
    list_result,
    merge_discovery,
    usable_entries,
)
from gateway.core.names import Names

TOOLS, RESOURCES, TEMPLATES = "tools/list", "resources/list", "resources/templates/list"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
US = {"name": "gateway", "version": "1"}
PREFIXED = Names(["a", "b", "c"], is_prefixed=True)
BARE = Names(["a", "b", "c"], is_prefixed=False)


def tools(*names: str, cursor: str | None = None, **hints: Any) -> dict[str, Any]:
    entries = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    return {"tools": entries, "ttlMs": 0, "cacheScope": "private", **hints} | (
        {} if cursor is None else {"nextCursor": cursor}
    )


def page(upstream: str, result: dict[str, Any] | None, *, is_stale: bool = False, **place: Any) -> Page:
    return Page(Place(upstream, **place), result, is_stale)


def names_of(joined: Joined) -> list[str]:
    return [entry["name"] for entry in joined.entries]


# --- one page ---


def test_entries_stand_in_the_order_of_the_file_under_their_public_names() -> None:
    joined = join_pages(TOOLS, [page("b", tools("z", "y")), page("a", tools("x"))], PREFIXED)
    assert names_of(joined) == ["b__z", "b__y", "a__x"]
    assert joined.entries[0]["inputSchema"] == {"type": "object"}
    assert (joined.places, joined.clashes) == ([], [])


def test_what_is_joined_is_not_changed() -> None:
    result = tools("x")
    join_pages(TOOLS, [page("a", result)], PREFIXED)
    assert result == tools("x")


def test_the_first_of_two_alike_wins_and_the_clash_is_told() -> None:
    joined = join_pages(TOOLS, [page("a", tools("x", "y")), page("b", tools("y", "z"))], BARE)
    assert names_of(joined) == ["x", "y", "z"]
    assert joined.clashes == [("y", "a", "b")]


def test_with_prefixes_nothing_clashes() -> None:
    joined = join_pages(TOOLS, [page("a", tools("y")), page("b", tools("y"))], PREFIXED)
    assert (names_of(joined), joined.clashes) == (["a__y", "b__y"], [])


@pytest.mark.parametrize(("method", "key"), [(RESOURCES, "uri"), (TEMPLATES, "uriTemplate")])
def test_resources_and_templates_clash_by_uri_and_keep_their_names(method: str, key: str) -> None:
    member = "resources" if method == RESOURCES else "resourceTemplates"
    one = {member: [{key: "file:///x", "name": "x"}], "ttlMs": 0}
    two = {member: [{key: "file:///x", "name": "other"}, {key: "file:///y", "name": "x"}], "ttlMs": 0}
    joined = join_pages(method, [page("a", one), page("b", two)], PREFIXED)
    assert [(entry[key], entry["name"]) for entry in joined.entries] == [("file:///x", "x"), ("file:///y", "x")]
    assert joined.clashes == [("file:///x", "a", "b")]


def test_somebody_else_may_decide_who_wins() -> None:
    pages = [page("a", tools("x", "y")), page("b", tools("y", "z"))]
    joined = join_pages(TOOLS, pages, BARE, owner_of={"x": "a", "y": "b", "z": "c"}.get)
    assert names_of(joined) == ["x", "y"]
    assert joined.clashes == [("y", "b", "a"), ("z", "c", "b")]


def test_entries_that_cannot_be_named_are_left_out() -> None:
    result = {"tools": [None, {"name": 7}, {}, "x", {"name": "good"}, {"name": "good", "n": 2}]}
    assert usable_entries(TOOLS, result) == [{"name": "good"}]
    assert usable_entries(TOOLS, {"tools": None}) == usable_entries(TOOLS, {}) == []


# --- where it goes on ---


def test_each_list_goes_on_at_its_own_cursor_even_an_empty_one() -> None:
    pages = [page("a", tools("x", cursor="")), page("b", tools("y")), page("c", tools("z", cursor="p2"))]
    joined = join_pages(TOOLS, pages, PREFIXED)
    assert [(place.upstream, place.cursor) for place in joined.places] == [("a", ""), ("c", "p2")]


def test_a_list_that_leads_back_to_itself_is_ended_and_told() -> None:
    joined = join_pages(TOOLS, [page("a", tools("x", cursor="p2"), cursor="p2")], PREFIXED)
    assert (joined.places, joined.endless) == ([], ["a"])


def test_an_upstream_that_failed_is_asked_again_with_the_next_page() -> None:
    pages = [page("a", None, cursor="p7", skip=2), page("b", tools("y", cursor="p2"))]
    joined = join_pages(TOOLS, pages, PREFIXED)
    assert joined.places == [Place("a", "p7", 2), Place("b", "p2", 0, 1, joined.places[1].mark)]


def test_there_is_no_next_page_for_those_that_failed_alone() -> None:
    joined = join_pages(TOOLS, [page("a", None), page("b", tools("y"))], PREFIXED)
    assert (names_of(joined), joined.places) == (["b__y"], [])


@given(
    st.lists(st.lists(st.integers(0, 7), max_size=5), min_size=1, max_size=3),
    st.none() | st.integers(1, 9),
    st.booleans(),
)
def test_every_entry_of_every_page_is_given_out_once(
    lengths: list[list[int]], page_size: int | None, is_prefixed: bool
) -> None:
    """Whatever the pages of the upstreams and the size of our own."""
    numbers = iter(range(1000))
    upstreams = {
        name: [[f"t{next(numbers)}" for _ in range(length)] for length in pages or [0]]
        for name, pages in zip("abc", lengths, strict=False)
    }
    names = PREFIXED if is_prefixed else BARE

    def ask(place: Place) -> Page:
        number = int(place.cursor or 0)
        more = number + 1 < len(upstreams[place.upstream])
        return Page(place, tools(*upstreams[place.upstream][number], cursor=str(number + 1) if more else None))

    found: list[str] = []
    places = [Place(name) for name in upstreams]
    while places:
        joined = join_pages(TOOLS, [ask(place) for place in places], names, page_size=page_size)
        assert page_size is None or len(joined.entries) <= page_size
        found += names_of(joined)
        places = joined.places
    expected = [names.to_public(name, tool) for name, pages in upstreams.items() for each in pages for tool in each]
    assert sorted(found) == sorted(expected)


def test_a_page_of_ours_that_is_full_goes_on_within_a_page_of_theirs() -> None:
    pages = [page("a", tools("u", "v", "w", cursor="p2")), page("b", tools("x"))]
    joined = join_pages(TOOLS, pages, PREFIXED, page_size=2)
    assert names_of(joined) == ["a__u", "a__v"]
    assert joined.places == [Place("a", None, 2, is_known=True), Place("b", is_known=True)]


# --- what a result says of itself ---


def test_a_list_says_who_answers_and_how_long_it_may_be_kept() -> None:
    pages = [
        page("a", tools("x", ttlMs=5000, cacheScope="public")),
        page("b", tools("y", ttlMs=300, cacheScope="public")),
    ]
    result = list_result(TOOLS, join_pages(TOOLS, pages, PREFIXED), pages, "more", Byline(US))
    assert result == {
        "resultType": "complete",
        "tools": join_pages(TOOLS, pages, PREFIXED).entries,
        "nextCursor": "more",
        "ttlMs": 300,
        "cacheScope": "public",
        "_meta": {SERVER_INFO: US},
    }


def test_one_private_part_makes_the_whole_private() -> None:
    pages = [page("a", tools(ttlMs=5000, cacheScope="public")), page("b", tools(ttlMs=300, cacheScope="private"))]
    result = list_result(TOOLS, Joined(), pages, None, Byline(US))
    assert (result["ttlMs"], result["cacheScope"]) == (300, "private")
    assert "nextCursor" not in result


def test_a_list_that_is_not_the_same_for_everybody_is_private() -> None:
    pages = [page("a", tools(ttlMs=5000, cacheScope="public"))]
    result = list_result(TOOLS, Joined(), pages, None, Byline(US, may_be_shared=False))
    assert (result["ttlMs"], result["cacheScope"]) == (5000, "private")


def test_a_list_that_lacks_a_part_says_so_and_is_not_to_be_kept() -> None:
    pages = [page("a", tools(ttlMs=5000, cacheScope="public"), is_stale=True), page("b", tools(ttlMs=5000))]
    result = list_result(TOOLS, Joined(), pages, None, Byline(US, ["a", "c"]))
    assert result["_meta"] == {SERVER_INFO: US, UNAVAILABLE: ["a", "c"]}
    assert (result["ttlMs"], result["cacheScope"]) == (0, "private")


def test_an_empty_list_of_nobody_is_not_to_be_kept() -> None:
    assert list_result(TOOLS, Joined(), [], None, Byline(US))["ttlMs"] == 0


# --- discovery ---


def discovered(capabilities: Any, **more: Any) -> dict[str, Any]:
    return {
        "resultType": "complete",
        "supportedVersions": ["2099-01-01"],
        "capabilities": capabilities,
        "ttlMs": 1000,
        "cacheScope": "public",
        **more,
    }


def test_capabilities_are_united_part_by_part() -> None:
    one = discovered({"tools": {"listChanged": False}, "resources": {"subscribe": True}, "experimental": {"x": {}}})
    two = discovered({"tools": {"listChanged": True}, "prompts": {}, "experimental": {"x": {"n": 1}, "y": {}}})
    merged = merge_discovery({"a": one, "b": two, "c": discovered(None)}, Byline(US))
    assert merged["capabilities"] == {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True},
        "prompts": {},
        "experimental": {"x": {"n": 1}, "y": {}},
    }
    assert one["capabilities"]["tools"] == {"listChanged": False}


def test_the_versions_and_the_identity_are_the_gateways_own() -> None:
    merged = merge_discovery({"a": discovered({}, _meta={SERVER_INFO: {"name": "u"}, "x": 1})}, Byline(US))
    assert merged["supportedVersions"] == ["2026-07-28"]
    assert merged["_meta"] == {SERVER_INFO: US}
    assert (merged["ttlMs"], merged["cacheScope"]) == (1000, "public")


def test_instructions_stand_under_a_heading_each() -> None:
    results = {
        "b": discovered({}, instructions="Be brief."),
        "a": discovered({}, instructions="Ask first.\n"),
        "c": discovered({}, instructions="  "),
        "d": discovered({}),
        "e": discovered({}, instructions=7),
    }
    assert merge_discovery(results, Byline(US))["instructions"] == "# b\n\nBe brief.\n\n# a\n\nAsk first.\n"
    assert "instructions" not in merge_discovery({"d": results["d"]}, Byline(US))


def test_a_discovery_without_somebody_says_so_and_is_not_to_be_kept() -> None:
    merged = merge_discovery({"a": discovered({})}, Byline(US, ["b"]))
    assert merged["_meta"][UNAVAILABLE] == ["b"]
    assert (merged["ttlMs"], merged["cacheScope"]) == (0, "private")
