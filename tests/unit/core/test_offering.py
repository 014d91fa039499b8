from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.offering import Offer, Patterns, readings
from tests.support.fake_upstream import listing

TOOLS, PROMPTS, RESOURCES, TEMPLATES = "tools/list", "prompts/list", "resources/list", "resources/templates/list"


def keys(method: str, result: dict[str, Any]) -> list[str]:
    (member,) = [name for name, value in result.items() if isinstance(value, list)]
    return [
        entry[{TOOLS: "name", PROMPTS: "name", RESOURCES: "uri"}.get(method, "uriTemplate")] for entry in result[member]
    ]


# --- globs ---


@pytest.mark.parametrize(
    ("include", "exclude", "offered", "not_offered"),
    [
        ([], [], ["x", ""], []),
        (["get_*"], [], ["get_", "get_x\ny"], ["Get_x", "forget_x", "get"]),
        (["get_*", "list_?"], [], ["get_x", "list_a"], ["list_ab"]),
        ([], ["*delete*"], ["get"], ["delete", "undelete_all"]),
        (["get_*"], ["get_secret*"], ["get_x"], ["get_secrets", "x"]),
        (["[ab]x"], [], ["ax"], ["cx", "[ab]x"]),
        (["a.b"], [], ["a.b"], ["axb"]),
        (["x|y"], [], ["x|y"], ["x", "y"]),
        (["x"], [], ["x"], ["x\n"]),
    ],
)
def test_globs_choose(include: list[str], exclude: list[str], offered: list[str], not_offered: list[str]) -> None:
    patterns = Patterns(include, exclude)
    assert [name for name in [*offered, *not_offered] if patterns.admit(name)] == offered
    assert bool(patterns) == bool(include or exclude)


@pytest.mark.parametrize(
    "uri",
    [
        "file:///secret/x",
        "FILE:///secret/x",
        "file:///docs/../secret/x",
        "file:///docs/%2e%2e/secret/x",
        "file:///docs/%252e%252e/secret/x",
        "file:///%73ecret/x",
        "file:///./secret/./x",
        "file:///docs\\..\\secret\\x",
        "file:///../../secret/x",
    ],
)
def test_no_other_spelling_of_a_uri_gets_past_a_glob(uri: str) -> None:
    assert not Patterns(exclude=["file:///secret/*"]).admit_uri(uri)
    assert not Patterns(include=["file:///docs/*"]).admit_uri(uri)


def test_in_schemes_of_a_servers_own_the_host_may_be_part_of_the_path() -> None:
    patterns = Patterns(exclude=["db://secret*"])
    assert not patterns.admit_uri("db://public/../secret/1")
    assert not patterns.admit_uri("db://public/%2E%2E/secret")
    assert patterns.admit_uri("db://public/secret/1")


def test_ordinary_uris_are_what_they_are() -> None:
    assert readings("file:///docs/a%20b?x=../y") == {"file:///docs/a%20b?x=../y", "file:///docs/a b?x=../y"}
    assert readings("https://Example.com/A/") == {
        "https://Example.com/A/",
        "https://example.com/A/",
    }
    assert readings("no uri") == {"no uri"}
    assert readings("x:a//b/") == {"x:a//b/"}
    assert readings("x:/a/b/..") == {"x:/a/b/..", "x:/a/"}


@given(st.text())
def test_every_text_can_be_read(uri: str) -> None:
    assert uri in readings(uri)


# --- names ---


def test_a_renamed_tool_goes_by_its_new_name_only() -> None:
    offer = Offer(rename={"search": "find"})
    assert (offer.tool_name("search"), offer.own_tool_name("find")) == ("find", "search")
    assert offer.own_tool_name("search") is None
    assert (offer.tool_name("other"), offer.own_tool_name("other")) == ("other", "other")


def test_one_that_takes_the_name_of_another_hides_it() -> None:
    offer = Offer(rename={"search": "find"})
    assert offer.tool_name("find") is None
    assert keys(TOOLS, offer.filtered(TOOLS, listing(TOOLS, "find", "search", "x"))) == ["find", "x"]


def test_names_can_be_exchanged() -> None:
    offer = Offer(rename={"a": "b", "b": "a"})
    assert [offer.tool_name(name) for name in "ab"] == ["b", "a"]
    assert [offer.own_tool_name(name) for name in "ab"] == ["b", "a"]


def test_globs_choose_by_the_servers_own_names() -> None:
    offer = Offer(Patterns(exclude=["search"]), rename={"search": "find", "get": "search"})
    assert [offer.tool_name(name) for name in ("search", "find", "get")] == [None, "find", "search"]
    assert [offer.own_tool_name(name) for name in ("search", "find", "get")] == ["get", "find", None]


own_names = st.sampled_from(["a", "b", "c", "d"])


@given(
    st.dictionaries(own_names, own_names).filter(lambda rename: len(set(rename.values())) == len(rename)),
    st.lists(own_names),
)
def test_what_is_listed_can_be_called_and_nothing_else(rename: dict[str, str], exclude: list[str]) -> None:
    offer = Offer(Patterns(exclude=exclude), rename=rename)
    listed = {offer.tool_name(own): own for own in "abcd" if offer.tool_name(own) is not None}
    called = {public: offer.own_tool_name(public) for public in "abcd" if offer.own_tool_name(public) is not None}
    assert called == listed


# --- lists ---


def test_a_description_is_replaced_and_the_rest_stays() -> None:
    offer = Offer(describe={"search": "Ours"}, rename={"search": "find"})
    result = listing(TOOLS, "search", "x", cursor="p2")
    result["tools"][0] |= {"description": "Theirs", "inputSchema": {"type": "object"}}
    filtered = offer.filtered(TOOLS, result)
    assert filtered["tools"][0] == {"name": "find", "description": "Ours", "inputSchema": {"type": "object"}}
    assert filtered["tools"][1] is result["tools"][1]
    assert filtered["nextCursor"] == "p2"
    assert result["tools"][0]["description"] == "Theirs"


def test_each_list_has_its_own_globs() -> None:
    offer = Offer(Patterns(["t*"]), Patterns(["p*"]), Patterns(["x:*"]))
    for method, kept in ((TOOLS, "t1"), (PROMPTS, "p1"), (RESOURCES, "x:1"), (TEMPLATES, "x:{a}")):
        assert keys(method, offer.filtered(method, listing(method, "t1", "p1", "x:1", "x:{a}"))) == [
            key for key in ("t1", "p1", "x:1", "x:{a}") if key == kept or (kept[:2] == key[:2] == "x:")
        ]


def test_a_list_that_nothing_is_said_of_is_not_touched() -> None:
    result = listing(PROMPTS, "p")
    assert Offer(Patterns(["t*"])).filtered(PROMPTS, result) is result
    assert not Offer()
    assert Offer(rename={"a": "b"})


def test_entries_that_cannot_be_compared_are_not_offered() -> None:
    assert Offer(Patterns(["t*"])).filtered(TOOLS, {"tools": [None, {"name": 1}, {"name": "t"}]})["tools"] == [
        {"name": "t"}
    ]
