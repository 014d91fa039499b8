import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.names import MAX_NAME, Names

UPSTREAMS = ("docs", "git-2", "a")
PREFIXED = Names(UPSTREAMS, is_prefixed=True)
BARE = Names(UPSTREAMS, is_prefixed=False)

upstreams = st.sampled_from(UPSTREAMS)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=200)


@given(upstreams, names)
def test_a_public_name_leads_back_to_its_owner_or_says_that_it_does_not(upstream: str, name: str) -> None:
    public = PREFIXED.to_public(upstream, name)
    assert 0 < len(public) <= MAX_NAME
    assert PREFIXED.parse(public) == (upstream, name) or (len(public) == MAX_NAME and PREFIXED.may_exist(public))


@given(st.lists(st.tuples(upstreams, names), unique=True))
def test_no_two_tools_have_the_same_public_name(tools: list[tuple[str, str]]) -> None:
    assert len({PREFIXED.to_public(*tool) for tool in tools}) == len(tools)


@pytest.mark.parametrize(
    ("public", "parsed"),
    [
        ("docs__search", ("docs", "search")),
        ("docs__git__log", ("docs", "git__log")),
        ("docs___hidden", ("docs", "_hidden")),
        ("git-2__log", ("git-2", "log")),
        ("a__b", ("a", "b")),
        ("search", None),
        ("docs_search", None),
        ("docs__", None),
        ("__search", None),
        ("other__search", None),
        ("DOCS__search", None),
    ],
)
def test_the_first_separator_ends_the_prefix(public: str, parsed: tuple[str, str] | None) -> None:
    assert PREFIXED.parse(public) == parsed
    assert not PREFIXED.may_exist(public)


def test_a_name_that_fits_is_not_cut() -> None:
    name = "x" * (MAX_NAME - len("docs__"))
    assert PREFIXED.to_public("docs", name) == f"docs__{name}"
    assert BARE.to_public("docs", "x" * MAX_NAME) == "x" * MAX_NAME


def test_a_name_that_does_not_fit_ends_in_a_digest_of_the_whole() -> None:
    one, other = (PREFIXED.to_public("docs", "x" * 200 + end) for end in "ab")
    assert one != other
    assert len(one) == len(other) == MAX_NAME
    assert one[:119] == other[:119] == ("docs__" + "x" * 113)
    assert one[119] == "_"
    assert set(one[120:]) <= set(string.hexdigits)
    assert PREFIXED.to_public("docs", "x" * 200 + "a") == one


def test_the_lists_are_worth_a_look_only_for_names_that_can_be() -> None:
    cut = PREFIXED.to_public("docs", "x" * 200)
    assert PREFIXED.parse(cut) is None
    assert PREFIXED.may_exist(cut)
    assert not PREFIXED.may_exist(cut + "x")
    assert not PREFIXED.may_exist("x" * MAX_NAME)
    assert BARE.may_exist("search")
    assert not BARE.may_exist("x" * (MAX_NAME + 1))


def test_without_a_prefix_no_name_tells_its_owner() -> None:
    assert BARE.to_public("docs", "search") == "search"
    assert BARE.parse("docs__search") is None
