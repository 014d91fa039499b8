"""JSON as editors and desktop clients write it: with comments, and commas before a closing bracket.

Beyond these two it is read strictly (RFC 8259): no single quotes, no bare words, no key twice. Each key's line is kept,
so that a problem can name it.
"""

import json
import re
from typing import Final, NoReturn

from gateway.config.document import Document, KeyPath
from gateway.config.problems import ConfigError, Problem
from gateway.wire.jsonrpc import Json, JsonObject

_TOKEN: Final = re.compile(
    r"(?P<space>[ \t\r\n]+|//[^\n]*|/\*.*?\*/)"
    r'|(?P<text>"(?:[^"\\\x00-\x1f]|\\.)*")'
    r"|(?P<mark>[{}\[\]:,])"
    r"|(?P<word>[A-Za-z0-9.+-]+)",
    re.DOTALL,
)
_DEEPEST: Final = 100
_FORM: Final = 'write it as {"mcpServers": {"docs": {"url": "https://docs.example.com/mcp"}}}'


def parse_jsonc(file: str, text: str) -> tuple[Document, list[Problem]]:
    """Parse JSON with comments.

    Returns:
        The document, and the problems that do not keep the rest of it from being read: a key that stands twice.

    Raises:
        ConfigError: it cannot be parsed, or is no object.
    """
    reader = _Reader(file, text)
    tree = reader.whole()
    if not isinstance(tree, dict):
        raise ConfigError((Problem(file, 1, "not a JSON object", remedy=_FORM),))
    reader.document.tree.update(tree)
    return reader.document, reader.problems


class _Reader:
    """A reader with one piece in view: `kind` and `piece`; at the end both are empty."""

    def __init__(self, file: str, text: str) -> None:
        self.document = Document(file, {})
        self.problems: list[Problem] = []
        self._text = text
        self._line = 1
        self._end = 0
        self.kind = ""
        self.piece = ""
        self._advance()

    def whole(self) -> Json:
        value = self._value(())
        if self.kind:
            self._refuse("something after its end", "remove what follows the last }")
        return value

    def _advance(self) -> None:
        self._line += self.piece.count("\n")
        match = _TOKEN.match(self._text, self._end)
        while match is not None and match.lastgroup == "space":
            self._line += match[0].count("\n")
            self._end = match.end()
            match = _TOKEN.match(self._text, self._end)
        if match is None and self._end < len(self._text):
            self._refuse_character(self._text[self._end])
        self.kind = "" if match is None else str(match.lastgroup)
        self.piece = "" if match is None else match[0]
        self._end = self._end if match is None else match.end()

    def _value(self, path: KeyPath) -> Json:
        if len(path) > _DEEPEST:
            self._refuse("nested too deeply", "write it flat")
        if self.piece == "{":
            return self._object(path)
        if self.piece == "[":
            return self._array(path)
        value = self._scalar("a value")
        self._advance()
        return value

    def _object(self, path: KeyPath) -> JsonObject:
        values: JsonObject = {}
        self._advance()
        while self.piece != "}":
            if self.kind != "text":
                self._refuse(f"a key in double quotes is missing{self._before()}", 'write "KEY": VALUE')
            key, line = self._scalar("a key"), self._line
            if key in values:
                first = self.document.lines[*path, key]
                self._note((*path, key), line, f"written twice; the first is on line {first}")
            self.document.lines[*path, key] = line
            self._advance()
            self._expect(":")
            values[key] = self._value((*path, key))
            self._separate("}")
        self._advance()
        return values

    def _array(self, path: KeyPath) -> list[Json]:
        values: list[Json] = []
        self._advance()
        while self.piece != "]":
            self.document.lines[*path, len(values)] = self._line
            values.append(self._value((*path, len(values))))
            self._separate("]")
        self._advance()
        return values

    def _separate(self, end: str) -> None:
        if self.piece != end:
            self._expect(",")

    def _expect(self, mark: str) -> None:
        if self.kind != "mark" or self.piece != mark:
            self._refuse(f"a {mark} is missing{self._before()}", "mend it; an editor shows where")
        self._advance()

    def _scalar(self, what: str) -> Json:
        if self.kind not in ("text", "word"):
            self._refuse(f"{what} is missing{self._before()}", "mend it; an editor shows where")
        try:
            value: Json = json.loads(self.piece, parse_constant=self._refuse_word)
            str(value).encode()  # half of a pair of escapes is no character
        except ValueError:
            wrong = {"text": "text with an escape that does not exist", "word": "neither text nor a number"}
            self._refuse(wrong[self.kind], "put text in double quotes, and write \\ as \\\\")
        return value

    def _refuse_word(self, _word: str) -> NoReturn:
        raise ValueError

    def _before(self) -> str:
        return f" before {self.piece}" if self.kind == "mark" else ""

    def _refuse_character(self, character: str) -> NoReturn:
        if character == "/":
            self._refuse("a comment without an end", "end it with */")
        if character == '"':
            self._refuse("text without an end", 'end it with " on the same line, and write \\ as \\\\')
        shown = character if character.isprintable() else f"U+{ord(character):04X}"
        self._refuse(f"{shown} cannot stand here", "put text in double quotes")

    def _refuse(self, what: str, remedy: str) -> NoReturn:
        raise ConfigError((Problem(self.document.file, self._line, f"not JSON: {what}", remedy=remedy),))

    def _note(self, path: KeyPath, line: int, what: str) -> None:
        problem = self.document.problem(path, what, remedy="keep one")
        self.problems.append(Problem(problem.file, line, problem.what, remedy=problem.remedy))
