"""What became of the rounds of a process, counted."""

from dataclasses import dataclass


@dataclass(slots=True)
class RoundCounts:
    """Since the start.

    Attributes:
        suspended: questions that were put to a client.
        resumed: retries that were taken up where their round is kept.
        expired: rounds that nobody came back for.
        relayed: retries that another replica was asked to serve.
        taken_over: rounds whose replica was dead.
        recovered: calls of those that were gone on with on the server's own session.
        replayed: calls of those that were made again.
        lost: calls that nobody could go on with.
    """

    suspended: int = 0
    resumed: int = 0
    expired: int = 0
    relayed: int = 0
    taken_over: int = 0
    recovered: int = 0
    replayed: int = 0
    lost: int = 0
