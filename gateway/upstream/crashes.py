"""How long to wait before a server that keeps ending on its own is started again."""

from typing import Final

PAUSES_S: Final = (0.0, 0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""After the first such end, the second, and so on; the last one is repeated."""

STEADY_S: Final = 60.0
"""What ran for so long, or ended so long ago, is no reason to wait."""


class Crashes:
    """The unexpected ends of one server's processes, on a clock that the caller reads."""

    def __init__(self) -> None:
        self._count = 0
        self._last_s = float("-inf")

    def note(self, started_s: float, now_s: float) -> None:
        """A process ended.

        Those that were started before the last one ended count with it: they may have ended for the same reason.
        """
        if started_s < self._last_s:
            return
        if now_s - max(started_s, self._last_s) >= STEADY_S:
            self._count = 0
        self._count += 1
        self._last_s = now_s

    def wait_s(self, now_s: float) -> float:
        """How long to wait now."""
        if self._count == 0 or now_s - self._last_s >= STEADY_S:
            return 0.0
        pause_s = PAUSES_S[min(self._count, len(PAUSES_S)) - 1]
        return max(0.0, self._last_s + pause_s - now_s)
