"""A fleet of replicas, second by second.

A round belongs to the replica on which its call landed. Its retry lands anywhere: at home it is served there, elsewhere
it is relayed, and if its replica is gone, whoever got the retry takes the call over.
"""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from tests.simulation.costs import Costs
from tests.simulation.workload import Workload


@dataclass(slots=True)
class Second:
    """What happened in one second.

    Args:
        calls: new ones.
        local: retries at home.
        relayed: retries elsewhere.
        recovered: retries of rounds whose replica is gone.
        delayed: retries that wait until it is known that their replica is gone.
        expired: rounds to which nobody came back.
        commands: that the store got.
        traffic: bytes to and from it.
    """

    calls: int = 0
    local: int = 0
    relayed: int = 0
    recovered: int = 0
    delayed: int = 0
    expired: int = 0
    commands: float = 0.0
    traffic: float = 0.0


class Fleet:
    """Replicas, and the rounds that they keep.

    Args:
        random: decides where things land and how long users wait.
        replicas: how many.
        workload: what users do.
        costs: what it costs.

    Attributes:
        held: how many rounds each replica keeps, by its number; a replica that comes in place of another has a new one.
        landing: numbers of replicas; a request lands on any of these entries alike.
        busy_ms: processor time that each replica has spent.
    """

    def __init__(self, random: Random, replicas: int, workload: Workload, costs: Costs) -> None:
        self.held = [0] * replicas
        self.busy_ms = [0.0] * replicas
        self.landing = list(range(replicas))
        self._random = random
        self._workload = workload
        self._costs = costs
        self._waits = workload.waits()
        self._now = 0
        self._slots = workload.ttl_s + 1
        self._due = [array("I") for _ in range(self._slots)]
        self._ending = [array("I") for _ in range(self._slots)]
        self._gone_at: dict[int, int] = {}
        self._left_over = 0.0

    @property
    def suspended(self) -> int:
        """Rounds that wait, those of replicas that are gone included."""
        return sum(map(len, self._due)) + sum(map(len, self._ending))

    @property
    def replicas(self) -> list[int]:
        """The numbers of the replicas that keep rounds."""
        return [number for number in range(len(self.held)) if number not in self._gone_at]

    def fill(self, rounds: int) -> None:
        """Begin with so many rounds, as they stand at any moment of a long time."""
        for wait in self._random.choices(self._waits, weights=self._waits, k=rounds):
            owner = self._lands()
            self.held[owner] += 1
            slots = self._ending if wait == self._workload.ttl_s else self._due
            slots[1 + int(self._random.random() * wait)].append(owner)

    def steady_calls(self, rounds: int) -> float:
        """Calls a second that keep so many rounds suspended."""
        return self._workload.calls_per_s(rounds, self._waits)

    # --- replicas come and go ---

    def join(self, count: int) -> list[int]:
        """New replicas, which keep nothing yet; their numbers."""
        first = len(self.held)
        new = list(range(first, first + count))
        self.held += [0] * count
        self.busy_ms += [0.0] * count
        self.landing += new
        return new

    def drain(self, replicas: Iterable[int]) -> None:
        """These get no requests any more; they still keep their rounds."""
        leaving = set(replicas)
        self.landing = [number for number in self.landing if number not in leaving]

    def lose(self, replicas: Iterable[int], noticed_s: int) -> int:
        """These are gone, and their rounds without a keeper; how many rounds.

        Args:
            replicas: their numbers.
            noticed_s: how long they are taken for alive: none, if they said goodbye.
        """
        lost = list(replicas)
        self.drain(lost)
        for number in lost:
            self._gone_at[number] = self._now + noticed_s
        return sum(self.held[number] for number in lost)

    # --- a second ---

    def step(self, calls_per_s: float) -> Second:
        """Let a second pass."""
        self._now += 1
        second = Second()
        slot = self._now % self._slots
        due, self._due[slot] = self._due[slot], array("I")
        ending, self._ending[slot] = self._ending[slot], array("I")
        self._retries(due, second)
        for owner in ending:
            self.held[owner] -= 1
            second.expired += owner not in self._gone_at
        self._left_over += calls_per_s
        second.calls = int(self._left_over)
        self._left_over -= second.calls
        for _ in range(second.calls):
            self._suspend(self._lands())
        self._charge(second)
        return second

    def _retries(self, due: "array[int]", second: Second) -> None:
        """Clients come back. Nearly all that a simulation does is done here, so it keeps what it needs at hand."""
        draw, landing, held, busy_ms = self._random.random, self.landing, self.held, self.busy_ms
        many, again = len(landing), self._workload.again
        local_ms, half_ms = self._costs.local_ms, self._costs.relayed_ms / 2
        local = relayed = 0
        for owner in due:
            here = landing[int(draw() * many)]
            if owner in self._gone_at:
                if self._is_early(owner, second):
                    continue
                held[owner] -= 1
                busy_ms[here] += local_ms
                owner = here
            else:
                held[owner] -= 1
                if here == owner:
                    local += 1
                    busy_ms[here] += local_ms
                else:
                    relayed += 1
                    busy_ms[here] += half_ms
                    busy_ms[owner] += half_ms
            if draw() < again:
                self._suspend(owner)
        second.local, second.relayed = local, relayed

    def _is_early(self, owner: int, second: Second) -> bool:
        """Whether a retry has to wait until it is known that the keeper of its round is gone."""
        noticed = self._gone_at[owner]
        if self._now >= noticed:
            second.recovered += 1
            return False
        second.delayed += 1
        self._due[(noticed + int(self._random.random() * self._costs.look_s)) % self._slots].append(owner)
        return True

    def _suspend(self, owner: int) -> None:
        wait = self._waits[self._random.getrandbits(12)]
        slots = self._ending if wait == self._workload.ttl_s else self._due
        slots[(self._now + wait) % self._slots].append(owner)
        self.held[owner] += 1
        self.busy_ms[owner] += self._costs.ask_ms

    def _lands(self) -> int:
        return self.landing[int(self._random.random() * len(self.landing))]

    def _charge(self, second: Second) -> None:
        costs = self._costs
        alive = len(self.held) - len(self._gone_at)
        second.commands = (
            alive * costs.idle_commands
            + second.local * costs.local_commands
            + second.relayed * costs.relayed_commands
            + second.recovered * costs.recovered_commands
            + second.delayed
            + second.expired
        )
        second.traffic = (
            alive * costs.idle_bytes
            + second.local * costs.local_bytes
            + second.relayed * costs.relayed_bytes
            + second.recovered * costs.recovered_bytes
        )
