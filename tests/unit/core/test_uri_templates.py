import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.uri_templates import UriTemplate

EXACT = [
    ("file:///notes/{id}", "file:///notes/7"),
    ("file:///notes/{id}", "file:///notes/"),
    ("file:///{+path}", "file:///a/b/c"),
    ("file:///{path*}", "file:///a,b"),
    ("db://{table}/{row}", "db://users/1"),
    ("db://{table}/{row}.json", "db://a.json/b.json.json"),
    ("x:{a}{b}", "x:ab"),
    ("x:{a}{+b}", "x:a/b"),
    ("x:{+a}{b}", "x:a/b"),
    ("search://{?q,lang}", "search://?q=a/b"),
    ("x://host{/path*}/end", "x://host/a/b/end"),
    ("x:{a", "x:{a"),
    ("plain:text", "plain:text"),
    ("x:{a}\n{b}", "x:1\n2"),
    ("x:(.*){a}", "x:(.*)1"),
]
ROUGH = [("file:///{path}", "file:///a/b"), ("db://{table}/{row}", "db://users/1/2")]
NEITHER = [
    ("file:///notes/{id}", "file:///other/7"),
    ("file:///notes/{id}.md", "file:///notes/7.txt"),
    ("plain:text", "plain:text2"),
    ("{a}:x", "b:y"),
    ("file:///" + "{x}" * 2000, "file:///x"),
]


@pytest.mark.parametrize(("template", "uri"), EXACT)
def test_an_expansion_matches(template: str, uri: str) -> None:
    assert UriTemplate(template).matches(uri)
    assert UriTemplate(template).resembles(uri)


@pytest.mark.parametrize(("template", "uri"), ROUGH)
def test_a_slash_where_none_can_be_is_a_mere_resemblance(template: str, uri: str) -> None:
    assert not UriTemplate(template).matches(uri)
    assert UriTemplate(template).resembles(uri)


@pytest.mark.parametrize(("template", "uri"), NEITHER)
def test_what_is_no_expansion_is_none(template: str, uri: str) -> None:
    assert not UriTemplate(template).matches(uri)
    assert not UriTemplate(template).resembles(uri)


@given(st.lists(st.tuples(st.sampled_from(["a", "b/", "", ":", "-x"]), st.text(string.ascii_lowercase)), max_size=6))
def test_every_simple_expansion_resembles_its_template(parts: list[tuple[str, str]]) -> None:
    template = "x:" + "".join(f"{literal}{{v{number}}}" for number, (literal, _value) in enumerate(parts))
    uri = "x:" + "".join(f"{literal}{value}" for literal, value in parts)
    assert UriTemplate(template).resembles(uri)


def test_no_pair_of_template_and_uri_takes_long() -> None:
    template = UriTemplate("x:" + "a{v}" * 500 + "z")
    assert not template.matches("x:" + "a" * 20_000)
    assert not template.resembles("x:" + "a" * 20_000)
    assert not UriTemplate("x:" + "{v}" * 500 + "z").resembles("x:" + "a" * 20_000)
