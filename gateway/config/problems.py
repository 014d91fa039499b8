"""A fault in the configuration, as the operator reads it: where, what, what was found, what is allowed, the remedy."""

from dataclasses import dataclass

from gateway.errors import GatewayError


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault. Its `str()` is one line and never holds a secret.

    Args:
        file: the file as the operator named it, or "environment".
        line: the line of the key, counted from 1; None where there is none.
        what: the key's path and what is wrong with it.
        found: what stands there now; empty if that says nothing, or is a secret.
        allowed: what may stand there; empty if `what` says it all.
        remedy: what to write or do instead.
    """

    file: str
    line: int | None
    what: str
    found: str = ""
    allowed: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        found = f"found {self.found}" if self.found else ""
        allowed = f"allowed: {self.allowed}" if self.allowed else ""
        parts = (part for part in (self.what, found, allowed, self.remedy) if part)
        return f"{place}: " + "; ".join(parts)


class ConfigError(GatewayError):
    """The configuration cannot be used.

    Args:
        problems: all of them, in the order of the file.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems
