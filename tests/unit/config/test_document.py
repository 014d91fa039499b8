from pathlib import Path

import pytest

from gateway.config.document import Document, dotted, parse_document, read_document
from gateway.config.problems import ConfigError


def problem_of(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_document("f.yaml", text)
    assert len(caught.value.problems) == 1
    return str(caught.value)


def test_scalars_stay_the_text_that_was_written() -> None:
    document, problems = parse_document("f", 'a: off\nb: 10:30\nc: "x"\nd: 007\ne: [yes, 1.0]\n')
    assert document.tree == {"a": "off", "b": "10:30", "c": "x", "d": "007", "e": ["yes", "1.0"]}
    assert problems == []


def test_only_plain_null_is_none() -> None:
    document, _ = parse_document("f", 'a:\nb: ~\nc: null\nd: ""\ne: "null"\n')
    assert document.tree == {"a": None, "b": None, "c": None, "d": "", "e": "null"}


def test_upstream_may_be_called_no() -> None:
    assert parse_document("f", "no: {url: x}")[0].tree == {"no": {"url": "x"}}


def test_every_key_and_item_knows_its_line() -> None:
    document, _ = parse_document("f", "a:\n  b: 1\n\n  c:\n    - x\n    - {y: 2}\n")
    paths: list[tuple[str | int, ...]] = [
        ("a",),
        ("a", "b"),
        ("a", "c"),
        ("a", "c", 0),
        ("a", "c", 1),
        ("a", "c", 1, "y"),
    ]
    assert [document.line(path) for path in paths] == [1, 2, 4, 5, 6, 6]


def test_key_that_does_not_stand_there_has_the_line_of_the_one_above() -> None:
    document, _ = parse_document("f", "a:\n  b: 1\n")
    assert document.line(("a", "missing", "deeper")) == 1
    assert document.line(("other",)) is None


def test_alias_is_the_value_that_it_names() -> None:
    document, problems = parse_document("f", "a: &x {b: 1}\nc: *x\n")
    assert document.tree == {"a": {"b": "1"}, "c": {"b": "1"}}
    assert problems == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2\na: 3\n", "f:3: a: written twice; the first is on line 1; keep one"),
        ("a:\n  b: 1\n  b: 1\n", "f:3: a.b: written twice; the first is on line 2; keep one"),
        ("a: !env X\n", "f:1: a: the YAML tag !env; write the value without a tag"),
        (
            "a: !!python/name:os.system x\n",
            "f:1: a: the YAML tag tag:yaml.org,2002:python/name:os.system; write the value without a tag",
        ),
        ("a: &x [*x]\n", "f:1: a[0]: an alias to a value that it is part of; write the value out"),
        ("a: 1\n? [b]\n: 2\n", "f:2: a key that is not text; write KEY: VALUE; quote values with braces"),
    ],
)
def test_fault_that_leaves_the_rest_readable_is_noted(text: str, problem: str) -> None:
    _, problems = parse_document("f", text)
    assert [str(each) for each in problems] == [problem]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        (
            "a: 1\nb: [1, 2\n",
            "f.yaml:3: not YAML: while parsing a flow sequence",
            "quote values that hold any of : # { } [ ] , & * ! | > %",
        ),
        (
            "a:\n\tb: 1\n",
            "f.yaml:2: not YAML: while scanning for the next token found character '\\t'",
            "; indent with spaces",
        ),
        ("a: b: c\n", "f.yaml:1: not YAML: mapping values are not allowed here", "& * ! | > %"),
        ("a: {b: ${X}}\n", "f.yaml:1: not YAML: ", "& * ! | > %"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2: not YAML: expected a single document", "remove the line ---"),
        ("a: 1\nb: \x07\n", "f.yaml:2: not YAML: character U+0007 is not allowed", "save the file as plain text"),
        ("a: *x\n", "f.yaml:1: not YAML: found undefined alias 'x'", "& * ! | > %"),
        ("[" * 1000, "f.yaml: nested too deeply", "configuration.md"),
        ("- a\n", "f.yaml:1: not a mapping", "write KEY: VALUE lines"),
        ("just text\n", "f.yaml:1: not a mapping", "write KEY: VALUE lines"),
        ("", "f.yaml:1: empty; name an upstream: upstreams:", "}}"),
        ("# comments only\n", "f.yaml:1: empty; name an upstream: upstreams:", "}}"),
        ("null\n", "f.yaml:1: empty; name an upstream: upstreams:", "}}"),
    ],
)
def test_text_without_anything_to_check_is_one_problem(text: str, start: str, end: str) -> None:
    problem = problem_of(text)
    assert problem.startswith(start)
    assert problem.endswith(end)
    assert "\n" not in problem


def test_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    document, _ = read_document(path)
    assert document.tree == {"a": "1", "b": "2"}
    assert document.line(("b",)) == 2


def test_file_that_is_not_utf_8_is_one_problem_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"a: 1\nb: caf\xe9\n")
    with pytest.raises(ConfigError) as caught:
        read_document(path)
    assert str(caught.value) == f"{path}:2: not UTF-8; found byte 0xe9; save it as UTF-8"


def test_missing_file_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    with pytest.raises(ConfigError) as caught:
        read_document(path)
    assert str(caught.value) == f"{path}: no such file; give the path of a configuration file with -c"


def test_directory_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a directory, not a file"):
        read_document(tmp_path)


@pytest.mark.parametrize("path", [Path("a\x00b"), Path("x" * 5000)])
def test_path_that_no_file_can_have_is_a_problem(path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_document(path)


def test_path_is_written_as_the_documentation_does() -> None:
    assert dotted(("auth", "keys", 0, "name")) == "auth.keys[0].name"
    assert dotted(()) == ""


def test_document_of_variables_names_the_variable() -> None:
    document = Document("environment", {}, names={("server", "port"): "PORT", ("headers",): "HEADERS"})
    assert document.label(("server", "port")) == "PORT"
    assert document.label(("headers", "X-Team")) == "HEADERS X-Team"
    assert document.label(("log",)) == "log"
    assert document.write(("server", "port"), "8080") == "set PORT=8080"
    assert document.write(("server", "host"), "::") == "write host: ::"
