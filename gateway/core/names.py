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
        self._upstreams = frozenset(upstreams)
        self.is_prefixed = is_prefixed

    def to_public(self, upstream: str, name: str) -> str:
        """What a client calls it."""
        public = f"{upstream}{SEPARATOR}{name}" if self.is_prefixed else name
        if len(public) <= MAX_NAME:
            return public
        digest = hashlib.sha256(public.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]
        return f"{public[: MAX_NAME - _DIGEST_CHARS - 1]}_{digest}"

    def parse(self, public: str) -> tuple[str, str] | None:
        """The upstream that a public name belongs to, and the name there; None if the name itself does not tell.

        It does not without a prefix, nor if it may have been cut: then only the lists of the upstreams can tell.
        """
        if not self.is_prefixed or len(public) >= MAX_NAME:
            return None
        upstream, _separator, name = public.partition(SEPARATOR)
        return (upstream, name) if name and upstream in self._upstreams else None

    def may_exist(self, public: str) -> bool:
        """Whether a name that does not tell its owner can have one, so that the lists are worth a look."""
        if len(public) > MAX_NAME:
            return False
        return not self.is_prefixed or (len(public) == MAX_NAME and public.partition(SEPARATOR)[0] in self._upstreams)
