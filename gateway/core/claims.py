"""Who may go on with a suspended round: one replica, and no other unless that one is dead.

A claim says who, and whether the answers have been delivered to the server, so that nobody delivers them twice.
"""

from dataclasses import dataclass
from enum import Enum


class Stage(Enum):
    """How far the holder of a claim has come."""

    CLAIMED = "claimed"
    POSTED = "posted"
    LOST = "lost"


class OwnerLost(Exception):  # noqa: N818 -- an event: this replica takes the round over
    """The replica that kept a round is dead, and this one has claimed the round.

    Args:
        is_posted: whether the answers have been delivered to the server already; None: it died over it.
    """

    def __init__(self, *, is_posted: bool | None) -> None:
        super().__init__()
        self.is_posted = is_posted


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim on a round.

    Args:
        replica: who has it.
        stage: whether the server has taken the answers, or nobody can go on with the call.
    """

    replica: str
    stage: Stage = Stage.CLAIMED

    def to_text(self) -> str:
        """As it stands in the store."""
        return f"{self.replica} {self.stage.value}"

    @classmethod
    def from_text(cls, text: bytes) -> "Claim":
        """As `to_text` wrote it; a stage that is not known counts as the first."""
        replica, _, word = text.decode("utf-8", "replace").partition(" ")
        return cls(replica, next((stage for stage in Stage if stage.value == word), Stage.CLAIMED))
