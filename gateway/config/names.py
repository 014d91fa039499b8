"""Names that an operator gives: of upstreams, of questions, of users."""

import re
from typing import Annotated, Final

from pydantic import BeforeValidator

from gateway.config.values import wrong

LONGEST_UPSTREAM: Final = 32
RESERVED: Final = frozenset({"legacy"})
"""Names that no upstream may have: a path of the gateway's own."""

_UPSTREAM: Final = re.compile(rf"[a-z0-9-]{{1,{LONGEST_UPSTREAM}}}")
_QUESTION: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_RENAME: Final = "choose another name"


def is_upstream_name(name: str) -> bool:
    """Whether an upstream may be called so."""
    return _UPSTREAM.fullmatch(name) is not None and name not in RESERVED


def parse_upstream_name(value: object) -> object:
    """Check the name of an upstream: part of URLs and of merged tool names."""
    if isinstance(value, str) and value in RESERVED:
        raise wrong("a reserved name", "any other name", remedy=_RENAME)
    if not isinstance(value, str) or _UPSTREAM.fullmatch(value) is None:
        raise wrong("not a name", "1 to 32 of a-z, 0-9 and -", remedy=_RENAME)
    return value


def parse_question_name(value: object) -> object:
    """Check the name of a question: a key of `inputRequests`."""
    if not isinstance(value, str) or _QUESTION.fullmatch(value) is None:
        raise wrong("not a name", "up to 64 letters, digits and _ . -, such as user_name", remedy=_RENAME)
    return value


def parse_text(value: object) -> object:
    """Check a name that is only shown, or compared with what a server says."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise wrong("not a name", "text on one line", remedy="write a name")
    return value


UpstreamName = Annotated[str, BeforeValidator(parse_upstream_name)]
QuestionName = Annotated[str, BeforeValidator(parse_question_name)]
Text = Annotated[str, BeforeValidator(parse_text)]
