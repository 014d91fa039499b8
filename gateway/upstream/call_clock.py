"""How long a call may take: the silence of the server, the whole, and the quiet time after a question."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from gateway.alarms import Alarms
from gateway.errors import UpstreamError


@dataclass(frozen=True, slots=True)
class CallLimits:
    """How long a call may take, in seconds; and the alarms of all calls that are limited so.

    Args:
        timeout_s: without any message from the server.
        max_duration_s: in all, not counting the time in which it waits for its client.
        gather_s: quiet time after which the questions asked so far are put to the client.
        gather_max_s: time after the first question at which they are put in any case.
    """

    timeout_s: float
    max_duration_s: float
    gather_s: float
    gather_max_s: float
    alarms: Alarms = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alarms", Alarms(min(self.timeout_s, self.max_duration_s)))


class CallClock:
    """The two limits of one call: `with` it is what they limit, and what raises TimeoutError when one is reached.

    Like `asyncio.timeout`, at a fraction of its price as long as nothing moves the limit, which nothing does in a call
    whose first message is the response.

    Args:
        limits: how long the call may take.
    """

    def __init__(self, limits: CallLimits) -> None:
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._timer: asyncio.Handle | None = None
        self._has_rung = False
        self._stops_at_s = 0.0
        self._paused_at_s: float | None = None

    def __enter__(self) -> None:
        now_s = self._loop.time()
        self._stops_at_s = now_s + self._limits.max_duration_s
        self._task = asyncio.current_task()
        assert self._task is not None  # noqa: S101 -- a limit for what no task does would limit nothing
        self._cancelling = self._task.cancelling()
        if self._paused_at_s is None:  # else it begins with its client away, as another process left it
            self._limits.alarms.set(self, now_s)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unset()
        task, self._task = self._task, None  # one that is left cannot be set any more
        is_ours = self._has_rung and task is not None and task.uncancel() <= self._cancelling
        if is_ours and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def ring(self) -> None:
        """A limit is reached."""
        if self._task is not None and not self._has_rung:
            self._has_rung = True
            self._task.cancel()

    def touch(self) -> None:
        """The server gave a sign of life; the next one is due in time."""
        self._set(min(self._loop.time() + self._limits.timeout_s, self._stops_at_s))

    def wait_for_client(self) -> None:
        """That a client reads slowly is no fault of the server: only the whole is limited meanwhile."""
        self._set(self._stops_at_s)

    def pause(self) -> None:
        """The call waits for its client to come back, and that is limited elsewhere."""
        self._paused_at_s = self._loop.time()
        self._set(None)

    def resume(self) -> None:
        """The client is back; the time that it was away does not count."""
        if self._paused_at_s is not None:
            self._stops_at_s += self._loop.time() - self._paused_at_s
            self._paused_at_s = None

    def stop(self) -> None:
        """End what is limited now, as if its time were over."""
        self._set(self._loop.time())

    def complaint(self, upstream: str) -> UpstreamError:
        """What the client is told when a limit was reached."""
        message = f"Upstream {upstream!r} sent nothing for {self._limits.timeout_s:g} s"
        if self._loop.time() >= self._stops_at_s:
            message = f"Upstream {upstream!r} took longer than {self._limits.max_duration_s:g} s"
        return UpstreamError(upstream, "timeout", message)

    def _set(self, when_s: float | None) -> None:
        if self._task is None or self._has_rung:
            return
        self._unset()
        if when_s is not None:
            # Never at once, even if it is time: who sets it may be what is limited, and about to leave.
            is_time = when_s <= self._loop.time()
            self._timer = self._loop.call_soon(self.ring) if is_time else self._loop.call_at(when_s, self.ring)

    def _unset(self) -> None:
        self._limits.alarms.cancel(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class QuietTime:
    """Waits until no further question comes: after each a quiet time, but not beyond a bound from the first.

    Args:
        limits: how long that is.
        on_quiet: called when the time is over.
    """

    def __init__(self, limits: CallLimits, on_quiet: Callable[[], None]) -> None:
        self._limits = limits
        self._on_quiet = on_quiet
        self._timer: asyncio.TimerHandle | None = None
        self._until_s = 0.0

    def start(self) -> None:
        """A question has come."""
        loop = asyncio.get_running_loop()
        now_s = loop.time()
        if self._timer is None:
            self._until_s = now_s + self._limits.gather_max_s
        else:
            self._timer.cancel()
        self._timer = loop.call_at(min(now_s + self._limits.gather_s, self._until_s), self._end)

    def cancel(self) -> None:
        """There is nothing to gather any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._timer = None
        self._on_quiet()
