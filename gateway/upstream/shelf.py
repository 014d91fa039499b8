"""Results that are kept for later, bounded in bytes: the ones that were not needed for longest make room.

They are kept as the bytes that they are on the wire: a fraction of what the objects would take, and exactly countable.
"""

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

from gateway.wire.jsonrpc import JsonObject, decode, encode

_OVERHEAD_BYTES = 1024
"""What a key and its place cost, roughly, so that many small results are bounded too."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One result on the shelf.

    Args:
        body: as JSON.
        kept_at_s: when it was kept.
        expires_s: when it is too old to be taken for fresh.
    """

    body: bytes
    kept_at_s: float
    expires_s: float

    def result(self) -> JsonObject:
        """The result, a new object each time."""
        result: JsonObject = decode(self.body)
        return result


class Shelf:
    """Keeps results.

    Args:
        max_bytes: of all of them together; one of more than an eighth of that is not kept.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, key: Hashable, result: JsonObject, *, now_s: float, expires_s: float = 0.0) -> None:
        """Keep a result in place of the one before; what cannot be kept is forgotten."""
        self.drop(key)
        try:
            body = encode(result)
        except ValueError:
            return
        if len(body) * 8 > self._max_bytes:
            return
        self._kept[key] = Kept(body, now_s, expires_s)
        self.size_bytes += _cost(body)
        while self.size_bytes > self._max_bytes:
            _key, oldest = self._kept.popitem(last=False)
            self.size_bytes -= _cost(oldest.body)

    def get(self, key: Hashable) -> Kept | None:
        """What is kept under a key."""
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
        return kept

    def drop(self, key: Hashable) -> None:
        """Forget what is kept under a key, if anything is."""
        kept = self._kept.pop(key, None)
        if kept is not None:
            self.size_bytes -= _cost(kept.body)


def _cost(body: bytes) -> int:
    return len(body) + _OVERHEAD_BYTES
