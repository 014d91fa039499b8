"""How many sessions an upstream may have, and how they are used."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from gateway.errors import UpstreamError

Reuse: TypeAlias = Literal["pooled", "sticky", "none"]

_FULL_RETRY_S: Final = 2
_SPENT_S: Final = 30.0
"""How long one is left to the server whose call has ended: should this process die before the client has the result,
another one may yet ask the server for it."""


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """How many sessions there may be, and for how long.

    Args:
        reuse: `pooled` keeps sessions warm, `sticky` keeps exactly one for each key, `none` opens one for each call.
        max_sessions: at work or idle; suspended ones do not count.
        idle_s: seconds after which an idle session is ended.
        wait_s: seconds that a call waits for a session when there are none left.
        is_scarce: whether each is a process: then suspended ones count, and an idle one ends when the server is full.
    """

    reuse: Reuse = "pooled"
    max_sessions: int = 64
    idle_s: float = 300.0
    wait_s: float = 10.0
    is_scarce: bool = False

    def idle_for_s(self, *, is_spent: bool) -> float:
        """Seconds for which a session may be idle; one that is spent is there for nobody but who missed its result."""
        return min(self.idle_s, _SPENT_S) if is_spent else self.idle_s


def no_room(upstream: str, limits: PoolLimits) -> UpstreamError:
    """What a call is told for which no session came free in time."""
    message = f"Upstream {upstream!r} has no session free; all {limits.max_sessions} are at work"
    return UpstreamError(upstream, "full", message, retryable=True, retry_after_s=_FULL_RETRY_S)
