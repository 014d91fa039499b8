"""Whether a URI can come of a URI template (RFC 6570, which defines no inverse: this is a guess, and says how good).

A template is a server's own text and a URI a client's: matching takes time in proportion to both, whatever they are.
"""

import re
from typing import Final

_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_RESERVED: Final = tuple("+#./;?&")
"""Operators whose expansions may contain slashes, or begin with one (RFC 6570, 3.2)."""

_LONGEST: Final = 4096


class UriTemplate:
    """A resource template's `uriTemplate`.

    Args:
        text: as the server wrote it.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        literals_and_expressions = _EXPRESSION.split(text) if len(text) <= _LONGEST else []
        self._literals = literals_and_expressions[::2]
        self._expressions = literals_and_expressions[1::2]
        self._exact: re.Pattern[str] | None = None
        self._rough: re.Pattern[str] | None = None

    def matches(self, uri: str) -> bool:
        """Whether the URI is an expansion, as far as one can tell: a plain expression never expands to a slash."""
        if self._exact is None:
            self._exact = self._compile(is_rough=False)
        return self._exact.fullmatch(uri) is not None

    def resembles(self, uri: str) -> bool:
        """Whether a server that is careless about slashes may take the URI for an expansion."""
        if self._rough is None:
            self._rough = self._compile(is_rough=True)
        return self._rough.fullmatch(uri) is not None

    def _compile(self, *, is_rough: bool) -> re.Pattern[str]:
        if not self._literals:
            return re.compile(r"(?!)")
        pattern = [re.escape(self._literals[0])]
        gap = ""
        last = len(self._expressions) - 1
        for position, (expression, literal) in enumerate(zip(self._expressions, self._literals[1:], strict=True)):
            is_wide = is_rough or expression.startswith(_RESERVED) or gap == "."
            gap = "." if is_wide else "[^/]"  # neighbours are one gap: two of them could split a text in many ways
            if position == last:
                pattern.append(f"{gap}*{re.escape(literal)}")
            elif literal:
                pattern.append(f"(?>{gap}*?{re.escape(literal)})")  # atomic: the first place is the only one tried
                gap = ""
        return re.compile("".join(pattern), re.DOTALL)
