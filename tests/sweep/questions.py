"""What is asked of a server, in words that do for both sides."""

from dataclasses import dataclass, field
from typing import Any

from tests.sweep.catalog import Server

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
UNKNOWN = "no-such-tool"


@dataclass(frozen=True)
class Question:
    """A request by the server's own names."""

    method: str
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """How a report names it."""
        target = self.params.get("name") or self.params.get("uri") or ""
        return f"{self.method} {target}".rstrip()


def questions(server: Server) -> list[Question]:
    """What is asked of a server after its lists."""
    calls = [*server.asked("calls"), [UNKNOWN, {}]]
    return [
        *(Question("tools/call", {"name": name, "arguments": arguments}) for name, arguments in calls),
        *(
            Question("prompts/get", {"name": name, "arguments": arguments})
            for name, arguments in server.asked("prompts")
        ),
        *(Question("resources/read", {"uri": uri}) for uri in server.asked("reads")),
    ]
