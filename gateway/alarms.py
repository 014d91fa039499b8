"""Wakes many after one and the same delay, or rather does not: nearly everybody is done before.

A timer of the event loop for each of them costs more than all else that is kept of a call. Alarms with the same delay
ring in the order in which they were set; so one timer will do, for the first.
"""

import asyncio
from typing import Protocol


class Sleeper(Protocol):
    """Whoever sets an alarm; one at a time."""

    def ring(self) -> None:
        """The time is over. Must not raise."""


class Alarms:
    """The alarms with one delay, within one event loop.

    Args:
        delay_s: after which they ring.
    """

    def __init__(self, delay_s: float) -> None:
        self.delay_s = delay_s
        self._due: dict[Sleeper, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._due)

    def set(self, sleeper: Sleeper, now_s: float) -> None:
        """Wake somebody after the delay.

        Args:
            sleeper: who has no alarm set.
            now_s: the time of the event loop.
        """
        self._due[sleeper] = now_s + self.delay_s
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.delay_s, self._ring)

    def cancel(self, sleeper: Sleeper) -> None:
        """Let somebody sleep, whether or not an alarm is set."""
        self._due.pop(sleeper, None)

    def _ring(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        late = []
        for sleeper, due_s in self._due.items():
            if due_s > now_s:
                self._timer = loop.call_at(due_s, self._ring)
                break
            late.append(sleeper)
        for sleeper in late:
            if self._due.pop(sleeper, None) is not None:  # else another that rang has cancelled it
                sleeper.ring()
