"""Names on the merged endpoint: whose a tool or prompt is, and what it is called where.

With a prefix, `docs__search` is `search` of `docs`: an upstream's name has no underscore, so the first separator ends
it. A public name has at most 128 characters (2026-07-28, server/tools, "Tool Names"); a longer one is cut and ends in a
digest of the whole, so that it stays the same wherever it is made. Without prefixes the first upstream that has a name
keeps it.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

SEPARATOR: Final = "__"
MAX_NAME: Final = 128
_DIGEST_CHARS: Final = 8


class Names:
    """The public names of several upstreams' tools and prompts.

    Args:
        upstreams: their configured names, in the order of the file.
        is_prefixed: whether a public name begins with its upstream's.
    """

    def __init__(self, upstreams: Sequence[str], *, is_prefixed: bool) -> None:
        self._upstreams = tuple(upstreams)
        self.is_prefixed = is_prefixed

    def to_public(self, upstream: str, name: str) -> str:
        """What a client calls it."""
        public = f"{upstream}{SEPARATOR}{name}" if self.is_prefixed else name
        if len(public) <= MAX_NAME:
            return public
        digest = hashlib.sha256(public.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]
        return f"{public[: MAX_NAME - _DIGEST_CHARS - 1]}_{digest}"

    def owner(self, public: str) -> str | None:
        """The upstream that a public name can only belong to; None if the name does not tell."""
        if not self.is_prefixed:
            return self._upstreams[0] if len(self._upstreams) == 1 else None
        upstream, separator, _name = public.partition(SEPARATOR)
        return upstream if separator and upstream in self._upstreams else None

    def original(self, public: str) -> str | None:
        """What the owner calls it; None if the name was cut, so that only the owner's list can tell."""
        if len(public) >= MAX_NAME:
            return None
        return public.partition(SEPARATOR)[2] if self.is_prefixed else public
