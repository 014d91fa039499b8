"""Who may go on with a suspended round: one replica, and no other unless that one is dead.

A claim says who, and whether the answers have been delivered to the server, so that nobody delivers them twice.
"""

from dataclasses import dataclass
from typing import Final

_CLAIMED: Final = "claimed"
_POSTED: Final = "posted"


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
        is_posted: whether the server has taken the answers.
    """

    replica: str
    is_posted: bool = False

    def to_text(self) -> str:
        """As it stands in the store."""
        return f"{self.replica} {_POSTED if self.is_posted else _CLAIMED}"

    @classmethod
    def from_text(cls, text: bytes) -> "Claim":
        """As `to_text` wrote it."""
        replica, _, state = text.decode("utf-8", "replace").partition(" ")
        return cls(replica, state == _POSTED)
