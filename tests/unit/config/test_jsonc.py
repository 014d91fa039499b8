"""JSON with comments: what is read, and where a fault is said to be."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.jsonc import parse_jsonc
from gateway.config.problems import ConfigError

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def refused(text: str) -> str:
    with pytest.raises(ConfigError) as error:
        parse_jsonc("mcp.json", text)
    return str(error.value)


@given(st.dictionaries(st.text(), values, max_size=4), st.sampled_from([None, 2]))
def test_json_is_read_as_json(tree: dict[str, object], indent: int | None) -> None:
    document, problems = parse_jsonc("mcp.json", json.dumps(tree, indent=indent))
    assert document.tree == tree
    assert problems == []


def test_comments_and_commas_at_the_end_are_no_matter() -> None:
    text = '{ // {"a": 0}\n "a": [1, "// \\" /* no", /* ,\n 2,*/ 3,],\n\t"b": {"c": null,},\r\n}\n// end'
    document, problems = parse_jsonc("mcp.json", text)
    assert document.tree == {"a": [1, '// " /* no', 3], "b": {"c": None}}
    assert problems == []


def test_each_key_has_its_line() -> None:
    document, _ = parse_jsonc("mcp.json", '{\n"a":\n1, /*\n\n*/ "b": [\n{"c": 2},\n3]}')
    assert document.lines == {("a",): 2, ("b",): 5, ("b", 0): 6, ("b", 0, "c"): 6, ("b", 1): 7}


def test_a_key_that_stands_twice_is_a_problem() -> None:
    _, [problem] = parse_jsonc("mcp.json", '{"a": {"b": 1,\n"b": 2}}')
    assert str(problem) == "mcp.json:2: a.b: written twice; the first is on line 1; keep one"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1: not JSON: a value is missing; mend it; an editor shows where"),
        ("[]", "1: not a JSON object; write it as"),
        ("\n{a: 1}", '2: not JSON: a key in double quotes is missing; write "KEY": VALUE'),
        ("{,}", "1: not JSON: a key in double quotes is missing before ,;"),
        ('{"a"\n1}', "2: not JSON: a : is missing;"),
        ('{"a": 1\n"b": 2}', "2: not JSON: a , is missing;"),
        ('{"a": [1\n}', "2: not JSON: a , is missing before };"),
        ('{"a":\n,}', "2: not JSON: a value is missing before ,;"),
        ("{'a': 1}", "1: not JSON: ' cannot stand here; put text in double quotes"),
        ('{"a": "x\ny"}', "1: not JSON: text without an end;"),
        ('{"a": 1 /* x', "1: not JSON: a comment without an end; end it with */"),
        ('{"a": "C:\\Users"}', "1: not JSON: text with an escape that does not exist; put text in double quotes, and"),
        ('{"a": "\\ud800"}', "1: not JSON: text with an escape that does not exist;"),
        ('{"a": NaN}', "1: not JSON: neither text nor a number;"),
        ('{"a": 012}', "1: not JSON: neither text nor a number;"),
        ('{"a": \x00}', "1: not JSON: U+0000 cannot stand here;"),
        ('{"a": 1}\n{}', "2: not JSON: something after its end;"),
        ('{"a": ' + "[" * 5000, "1: not JSON: nested too deeply;"),
        ('{"a": ' + "9" * 5000 + "}", "1: not JSON: neither text nor a number;"),
    ],
)
def test_a_fault_is_named_with_its_line_and_remedy(text: str, said: str) -> None:
    assert refused(text).startswith(f"mcp.json:{said}")


def test_what_is_wrong_with_a_value_does_not_show_it() -> None:
    assert "hunter2" not in refused('{"password": hunter2}') + refused('{"password": "hunter2\\x"}')
