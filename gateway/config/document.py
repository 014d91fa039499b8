"""YAML text as plain values that remember their lines.

Scalars stay the text that was written: the model knows what a key means, YAML 1.1 does not (`off`, `no` and `10:30`
are not what they seem). Only an empty or `null` value is None.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

import yaml

from gateway.config.problems import ConfigError, Problem
from gateway.wire.jsonrpc import Json, JsonObject

KeyPath: TypeAlias = tuple[str | int, ...]

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_PLAIN_TAGS: Final = frozenset(f"tag:yaml.org,2002:{kind}" for kind in ("str", "map", "seq"))
_QUOTE: Final = "check the indentation, and quote values that hold any of : # { } [ ] , & * ! | > %"
_SYNTAX_HINTS: Final = {
    "U+": "remove it, and save the file as plain text",
    "'\\t'": "indent with spaces",
    "single document": "keep one document: remove the line ---",
}


def dotted(path: KeyPath) -> str:
    """Write a path as the documentation does: `upstreams.docs.headers`, `auth.keys[0].name`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(letter if letter.isprintable() else " " for letter in text.removeprefix("."))


@dataclass(frozen=True, slots=True)
class Document:
    """A configuration before it is checked, and where each of its keys stands.

    Args:
        file: how problems name it.
        tree: the values; a document owns its tree.
        lines: the line of each key and list item.
        names: for a configuration out of environment variables, the variable of each path.
    """

    file: str
    tree: JsonObject
    lines: dict[KeyPath, int] = field(default_factory=dict)
    names: dict[KeyPath, str] = field(default_factory=dict)

    def line(self, path: KeyPath) -> int | None:
        """The line of a key, or of the nearest key above it."""
        return next((self.lines[part] for part in _upwards(path) if part in self.lines), None)

    def label(self, path: KeyPath) -> str:
        """How the operator knows a key: its path, or the name of its variable and the rest of the path."""
        named = next((part for part in _upwards(path) if part in self.names), ())
        return f"{self.names[named]} {dotted(path[len(named) :])}".rstrip() if named else dotted(path)

    def write(self, path: KeyPath, value: str) -> str:
        """The remedy that sets a key."""
        if path in self.names:
            return f"set {self.names[path]}={value}"
        return f"write {path[-1]}: {value}"

    def problem(self, path: KeyPath, what: str, found: str = "", allowed: str = "", remedy: str = "") -> Problem:
        """A problem with the key at `path`."""
        label = self.label(path)
        return Problem(self.file, self.line(path), f"{label}: {what}" if label else what, found, allowed, remedy)


def _upwards(path: KeyPath) -> Iterator[KeyPath]:
    return (path[:length] for length in range(len(path), 0, -1))


def read_document(path: Path) -> tuple[Document, list[Problem]]:
    """Read a YAML file.

    Returns:
        The document, and the problems that do not keep the rest of it from being checked (a key twice, a tag).

    Raises:
        ConfigError: there is no mapping to check at all.
    """
    file = str(path)
    return parse_document(file, read_text(path, "give the path of a configuration file with -c"))


def read_text(path: Path, remedy: str) -> str:
    """Read a file of text in UTF-8.

    Args:
        path: the file.
        remedy: what to do if there is none to be read.

    Raises:
        ConfigError: it cannot be read, or is not UTF-8.
    """
    file = str(path)
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError((Problem(file, None, "no such file", remedy=remedy),)) from None
    except IsADirectoryError:
        raise ConfigError((Problem(file, None, "a directory, not a file", remedy=remedy),)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError((Problem(file, None, f"cannot be read: {reason}", remedy=remedy),)) from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        problem = Problem(file, line, "not UTF-8", found=f"byte 0x{raw[error.start]:02x}", remedy="save it as UTF-8")
        raise ConfigError((problem,)) from None


def parse_document(file: str, text: str) -> tuple[Document, list[Problem]]:
    """Parse YAML text; like `read_document`, without the file."""
    try:
        # BaseLoader resolves nothing and constructs nothing: the nodes are all that is wanted.
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise ConfigError((_syntax_problem(file, text, error),)) from None
    except RecursionError:
        raise ConfigError((Problem(file, None, "nested too deeply", remedy="see docs/configuration.md"),)) from None
    if root is None or _is_null(root):
        remedy = "name an upstream: upstreams: {docs: {url: https://docs.example.com/mcp}}"
        raise ConfigError((Problem(file, 1, "empty", remedy=remedy),))
    if not isinstance(root, yaml.MappingNode):
        raise ConfigError((Problem(file, _line(root), "not a mapping", remedy="write KEY: VALUE lines"),))
    builder = _Builder(Document(file, {}))
    builder.document.tree.update(builder.mapping(root, ()))
    return builder.document, builder.problems


def _syntax_problem(file: str, text: str, error: yaml.YAMLError) -> Problem:
    line, what = None, "cannot be parsed"
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        what = f"character U+{error.character:04X} is not allowed"
    elif isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        what = " ".join(part for part in (error.context, error.problem) if part)
    remedy = next((hint for sign, hint in _SYNTAX_HINTS.items() if sign in what), _QUOTE)
    return Problem(file, line, f"not YAML: {' '.join(what.split())}", remedy=remedy)


def _line(node: yaml.Node) -> int:
    return node.start_mark.line + 1


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style is None and node.value in _NULL


class _Builder:
    """Turns nodes into values, noting lines and problems on the way."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []
        self._open: set[int] = set()

    def mapping(self, node: yaml.MappingNode, path: KeyPath) -> JsonObject:
        values: JsonObject = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._note(path, key_node, "a key that is not text", "write KEY: VALUE; quote values with braces")
                continue
            key: str = key_node.value
            if key in values:
                first = self.document.lines[*path, key]
                self._note((*path, key), key_node, f"written twice; the first is on line {first}", "keep one")
                continue
            self.document.lines[*path, key] = _line(key_node)
            values[key] = self._value(value_node, (*path, key))
        return values

    def _value(self, node: yaml.Node, path: KeyPath) -> Json:
        if node.tag not in _PLAIN_TAGS:
            self._note(path, node, f"the YAML tag {node.tag}", "write the value without a tag")
        if isinstance(node, yaml.ScalarNode):
            return None if _is_null(node) else node.value
        if id(node) in self._open:
            self._note(path, node, "an alias to a value that it is part of", "write the value out")
            return None
        self._open.add(id(node))
        value = self.mapping(node, path) if isinstance(node, yaml.MappingNode) else self._list(node, path)
        self._open.remove(id(node))
        return value

    def _list(self, node: yaml.Node, path: KeyPath) -> list[Json]:
        for index, item in enumerate(node.value):
            self.document.lines[*path, index] = _line(item)
        return [self._value(item, (*path, index)) for index, item in enumerate(node.value)]

    def _note(self, path: KeyPath, node: yaml.Node, what: str, remedy: str) -> None:
        problem = self.document.problem(path, what, remedy=remedy)
        self.problems.append(Problem(problem.file, _line(node), problem.what, remedy=problem.remedy))
