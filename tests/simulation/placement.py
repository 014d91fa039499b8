"""How things fall to replicas and to parts of a cluster."""

from binascii import crc_hqx
from collections import Counter
from collections.abc import Sequence
from random import Random

_SLOTS = 16_384


def slot(key: str) -> int:
    """The slot of a key in a Redis or Valkey cluster."""
    return crc_hqx(key.encode(), 0) % _SLOTS


def busiest_part(random: Random, replicas: int, parts: int) -> float:
    """How much more than the mean the busiest of some parts of a cluster has to do with the inboxes of replicas."""
    owners = [f"{random.getrandbits(64):016x}" for _ in range(replicas)]
    counts = Counter(slot(f"era-gateway:inbox:{owner}") * parts // _SLOTS for owner in owners)
    return max(counts.values()) * parts / replicas


def pinned(random: Random, replicas: int, connections: int, shape: float) -> list[int]:
    """Where requests land if connections are spread instead: each stays at a replica, and some carry much more.

    Args:
        random: decides.
        replicas: how many.
        connections: how many.
        shape: of the Pareto distribution of what they carry; the smaller, the more uneven.
    """
    landing: list[int] = []
    for _ in range(connections):
        landing += [random.randrange(replicas)] * round(10 * random.paretovariate(shape))
    return landing


def spread(values: Sequence[float]) -> tuple[float, float]:
    """The most and the least, as multiples of the mean."""
    mean = sum(values) / len(values)
    return max(values) / mean, min(values) / mean
