"""The random dialogues once more, in which the process may die whenever its client is away.

Another one restores the call from the token, the server repeats what it has said since, and all promises hold:
above all, a question that the client has answered is answered once, whichever process does it.
"""

import json
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from gateway.core.exchange import Exchange
from gateway.core.exchange_events import Asked, Complete, Event, Fail, Notified, Post, RequireInput, Responded, Withdrew
from gateway.core.recovery import RecoveryPoint
from gateway.wire.jsonrpc import JsonObject
from tests.playbook.test_random_walks import WALKS, Walk
from tests.playbook.vocabulary import CALL_ID
from tests.support.playbook import show


class MortalWalk(Walk):
    """One call, and the processes that it goes through."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__(dice)
        self.deaths = 0
        self.token: JsonObject = {}
        self.said_since: list[Event] = []
        self.replies_then = self.replies.copy()

    def happen(self, event: Event) -> None:
        """Note what the server says while the client is away: it is what it will repeat."""
        if self.exchange.awaits_client and isinstance(event, Asked | Notified | Withdrew | Responded):
            self.said_since.append(event)
        super().happen(event)

    def end_leg(self, ending: RequireInput | Complete | Fail) -> None:
        """The client has a token."""
        super().end_leg(ending)
        if isinstance(ending, RequireInput):
            point = RecoveryPoint(CALL_ID, "s", "2025-11-25", None, "e-1", None, self.exchange.standing)
            self.token = json.loads(json.dumps(point.to_members(in_full=True)))
            self.said_since, self.replies_then = [], self.replies.copy()

    def retry(self) -> None:
        """The client comes back, maybe to another process."""
        if self.exchange.awaits_client and not self.cancellations and self.dice.random() < 0.5:
            self.die()
        super().retry()

    def die(self) -> None:
        """What the dead one refused or answered by itself since then, the next one does again: nobody knows of it."""
        self.deaths += 1
        self.story.append("-- death")
        self.replies = self.replies_then.copy()
        self.exchange = Exchange(self.exchange.method, CALL_ID, self.leg)
        self.exchange.restore(RecoveryPoint.from_members(self.token).standing)
        for event in self.said_since:
            self._repeat(event, self.exchange.receive(event))

    def _repeat(self, event: Event, commands: Sequence[object]) -> None:
        self.story.append(f">> {show(event)} (again)")
        for command in commands:
            self.story.append(f"<< {show(command)}")
            assert isinstance(command, Post)
            self.hear(command.message)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_and_whoever_dies(seed: int) -> None:
    deaths: Counter[int] = Counter()
    for number in range(WALKS):
        walk = MortalWalk(random.Random(f"mortal-{seed}-{number}"))  # noqa: S311 -- the same at every run
        try:
            walk.run()
        except AssertionError as error:
            raise AssertionError("\n".join([f"walk {seed}-{number}", *walk.story])) from error
        deaths[walk.deaths] += 1
    assert sum(count for number, count in deaths.items() if number > 1) > WALKS / 20, "hardly anybody dies"
