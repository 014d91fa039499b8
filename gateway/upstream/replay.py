"""Which calls may be made again when the replica that kept them is dead: of tools that the operator vouches for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from gateway.core.offering import Patterns
from gateway.wire.jsonrpc import Json

Hints: TypeAlias = Mapping[str, frozenset[str]]
"""By tool, the hints that its server gives; a tool without any is not in it."""

HINTS: Final = {"read-only": "readOnlyHint", "idempotent": "idempotentHint"}
"""How the configuration calls a hint (2025-11-25, server/tools, "ToolAnnotations")."""


@dataclass(frozen=True, slots=True)
class ReplayRule:
    """Args:
    tools: globs of the tools that may be called again.
    hints: and those that carry one of these, as the configuration calls them.
    """

    tools: Sequence[str] = ()
    hints: frozenset[str] = frozenset()

    def allows(self, tool: str, hints: Hints) -> bool:
        """Whether a tool may be called again."""
        if self.tools and Patterns(self.tools).admit(tool):
            return True
        return not self.hints.isdisjoint(hints.get(tool, frozenset()))


def hints_by_tool(tools: list[Json]) -> dict[str, frozenset[str]]:
    """The hints of a page of tools."""
    by_tool: dict[str, frozenset[str]] = {}
    for tool in tools:
        name = tool.get("name") if isinstance(tool, dict) else None
        annotations = tool.get("annotations") if isinstance(tool, dict) else None
        if isinstance(name, str) and isinstance(annotations, dict):
            given = frozenset(hint for hint, key in HINTS.items() if annotations.get(key) is True)
            if given:
                by_tool[name] = given
    return by_tool
