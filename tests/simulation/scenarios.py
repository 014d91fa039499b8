"""What is done to a fleet, and what is looked at."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from random import Random

from tests.simulation.costs import Costs
from tests.simulation.fleet import Fleet, Second
from tests.simulation.placement import pinned, spread
from tests.simulation.workload import Workload


@dataclass(frozen=True, slots=True)
class Plan:
    """A run.

    Args:
        seed: two runs with the same one come to the same.
        replicas: of the fleet.
        rounds: that are suspended.
        seconds: of each look at a fleet that stays as it is.
    """

    seed: int = 7
    replicas: int = 1_000
    rounds: int = 1_000_000
    seconds: int = 60


@dataclass(frozen=True, slots=True)
class Steady:
    """A fleet that stays as it is.

    Args:
        rounds_per_s: retries.
        relayed: their share that is relayed.
        commands_per_s, bytes_per_s: at the store.
        held: the most and the least rounds of a replica, as multiples of the mean.
        busy: the processor time of the busiest and the idlest, likewise.
        busy_share: of a core, the mean.
    """

    rounds_per_s: float
    relayed: float
    commands_per_s: float
    bytes_per_s: float
    held: tuple[float, float]
    busy: tuple[float, float]
    busy_share: float


@dataclass(frozen=True, slots=True)
class Loss:
    """Replicas that are killed.

    Args:
        replicas: how many.
        rounds: that they kept.
        delayed: retries that had to wait until it was known.
        peak_per_s: the most calls taken over in a second.
        mean_per_s: in the first minute after it was known.
        peak_each: the most in a second, of one replica.
        commands: the most commands in a second, as a multiple of what it was.
    """

    replicas: int
    rounds: int
    delayed: int
    peak_per_s: int
    mean_per_s: float
    peak_each: float
    commands: float


@dataclass(frozen=True, slots=True)
class Change:
    """A fleet after some time of change: rounds of a replica, and what was taken over."""

    after_s: int
    held: tuple[float, float]
    recovered: int
    peak_per_s: int


class Scenarios:
    """Fleets that all begin alike.

    Args:
        plan: how large.
        costs: what things cost.
        workload: what users do.
    """

    def __init__(self, plan: Plan, costs: Costs, workload: Workload) -> None:
        self._plan = plan
        self._costs = costs
        self._workload = workload
        self._begin = Fleet(Random(plan.seed), plan.replicas, workload, costs)  # noqa: S311 -- nothing is secret here
        self._begin.fill(plan.rounds)
        self.calls_per_s = self._begin.steady_calls(plan.rounds)

    def steady(self) -> Steady:
        """Every request lands anywhere."""
        return self._look_at(deepcopy(self._begin))

    def by_connection(self, connections: int, shape: float) -> Steady:
        """Every request of a connection lands at the same replica."""
        random = Random(self._plan.seed)  # noqa: S311
        fleet = Fleet(random, self._plan.replicas, self._workload, self._costs)
        fleet.landing = pinned(random, self._plan.replicas, connections, shape)
        fleet.fill(self._plan.rounds)
        return self._look_at(fleet)

    def loss(self, count: int) -> Loss:
        """So many replicas are killed at the same time."""
        fleet = deepcopy(self._begin)
        before = fleet.step(self.calls_per_s)
        rounds = fleet.lose(range(count), self._costs.noticed_s)
        seconds = list(self._pass(fleet, self._costs.noticed_s + 60))
        after = seconds[self._costs.noticed_s :]
        peak = max(second.recovered for second in seconds)
        return Loss(
            count,
            rounds,
            sum(second.delayed for second in seconds),
            peak,
            sum(second.recovered for second in after) / len(after),
            peak / (self._plan.replicas - count),
            max(second.commands for second in seconds) / before.commands,
        )

    def rolling_restart(self, at_once: int, drain_s: int) -> list[Change]:
        """Every replica is replaced: new ones come, old ones drain and leave their rounds to others."""
        fleet = deepcopy(self._begin)
        old = list(fleet.replicas)
        after_s, recovered, peak = 0, 0, 0
        for first in range(0, len(old), at_once):
            leaving = old[first : first + at_once]
            fleet.join(len(leaving))
            fleet.drain(leaving)
            for second in self._pass(fleet, drain_s):
                recovered, peak = recovered + second.recovered, max(peak, second.recovered)
            fleet.lose(leaving, 0)
            after_s += drain_s
        changes = [self._change(fleet, after_s, recovered, peak)]
        for second in self._pass(fleet, 300):
            recovered, peak = recovered + second.recovered, max(peak, second.recovered)
        return [*changes, self._change(fleet, after_s + 300, recovered, peak)]

    def scale_out(self, count: int, looks_s: tuple[int, ...]) -> list[Change]:
        """So many replicas come in addition."""
        fleet = deepcopy(self._begin)
        fleet.join(count)
        changes, now_s = [], 0
        for look_s in looks_s:
            for _ in self._pass(fleet, look_s - now_s):
                pass
            now_s = look_s
            changes.append(self._change(fleet, now_s, 0, 0))
        return changes

    def _look_at(self, fleet: Fleet) -> Steady:
        seconds = list(self._pass(fleet, self._plan.seconds))
        local = _mean(seconds, lambda second: second.local)
        relayed = _mean(seconds, lambda second: second.relayed)
        return Steady(
            local + relayed,
            relayed / (local + relayed),
            _mean(seconds, lambda second: second.commands),
            _mean(seconds, lambda second: second.traffic),
            spread(fleet.held),
            spread(fleet.busy_ms),
            sum(fleet.busy_ms) / len(fleet.busy_ms) / 1000 / len(seconds),
        )

    def _pass(self, fleet: Fleet, seconds: int) -> Iterator[Second]:
        for _ in range(seconds):
            yield fleet.step(self.calls_per_s)

    @staticmethod
    def _change(fleet: Fleet, after_s: int, recovered: int, peak: int) -> Change:
        return Change(after_s, spread([fleet.held[number] for number in fleet.replicas]), recovered, peak)


def _mean(seconds: list[Second], value: Callable[[Second], float]) -> float:
    return sum(map(value, seconds)) / len(seconds)
