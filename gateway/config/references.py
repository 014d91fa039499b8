"""`${NAME}` and `${NAME:-default}` in values, replaced from the environment.

Only values are looked at, never keys or comments. As in a shell, the default also stands in for an empty variable.
`$${` is a plain `${`.
"""

import re
from collections.abc import Mapping
from typing import Final

from gateway.config.document import Document, KeyPath
from gateway.config.problems import Problem
from gateway.wire.jsonrpc import Json, JsonObject

_REFERENCE: Final = re.compile(
    r"(?P<literal>\$\$\{)|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^}]*)?\}|(?P<bad>\$\{)"
)


def resolve(document: Document, environ: Mapping[str, str]) -> tuple[JsonObject, list[Problem], frozenset[KeyPath]]:
    """Replace every reference.

    Returns:
        A new tree; a problem for each variable that is missing and each reference that cannot be read; and the paths
        of the values concerned, about which nothing else can be said.
    """
    resolver = _Resolver(document, environ)
    tree = {key: resolver.value(value, (key,)) for key, value in document.tree.items()}
    return tree, resolver.problems, frozenset(resolver.gaps)


class _Resolver:
    def __init__(self, document: Document, environ: Mapping[str, str]) -> None:
        self._document = document
        self._environ = environ
        self.problems: list[Problem] = []
        self.gaps: list[KeyPath] = []

    def value(self, value: Json, path: KeyPath) -> Json:
        if isinstance(value, dict):
            return {key: self.value(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(value, str) and "${" in value:
            return _REFERENCE.sub(lambda match: self._replace(match, path), value)
        return value

    def _replace(self, match: re.Match[str], path: KeyPath) -> str:
        if match["literal"]:
            return "${"
        if match["bad"]:
            return self._miss(
                path, "a reference that cannot be read", "write ${NAME} or ${NAME:-default}, and $${ for a plain ${"
            )
        name, default = match["name"], match["default"]
        value = self._environ.get(name)
        if default is not None:
            return value or str(default).removeprefix(":-")
        if value is None:
            return self._miss(
                path, f"${{{name}}} is not set", f"set {name} in the environment, or write ${{{name}:-default}}"
            )
        return value

    def _miss(self, path: KeyPath, what: str, remedy: str) -> str:
        self.problems.append(self._document.problem(path, what, remedy=remedy))
        self.gaps.append(path)
        return ""
