"""The cursor of a merged list: for every upstream that has more, where it goes on.

Sealed, and bound to the list, the principal and a time; it carries the upstreams' own cursors, so that any replica can
go on from it. 2026-07-28, server/utilities/pagination.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gateway.core.request_state import digest
from gateway.core.tokens import Sealer
from gateway.errors import ProtocolError
from gateway.wire import codes
from gateway.wire.jsonrpc import Json

MAX_PAGES: Final = 10_000
"""Pages of one upstream's list after which nobody believes that it ends."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one upstream's list goes on.

    Args:
        upstream: its configured name.
        cursor: its own cursor, None for its first page.
        skip: entries of that page which have been given out already.
        pages: pages given out so far.
    """

    upstream: str
    cursor: str | None = None
    skip: int = 0
    pages: int = 0


class Cursors:
    """Seals and opens the cursors of merged lists.

    Args:
        sealer: seals what they say.
        ttl_s: seconds for which a cursor is good.
        now_s: seconds since the epoch.
    """

    def __init__(self, sealer: Sealer, ttl_s: float, now_s: Callable[[], float]) -> None:
        self._sealer = sealer
        self._ttl_s = ttl_s
        self._now_s = now_s

    def seal(self, method: str, principal_id: str, places: list[Place]) -> str:
        """The `nextCursor` that leads to these places."""
        return self._sealer.seal(
            {
                "list": method,
                "principal": digest(principal_id),
                "expires": int(self._now_s() + self._ttl_s),
                "places": [[place.upstream, place.cursor, place.skip, place.pages] for place in places],
            }
        )

    def open(self, cursor: str, method: str, principal_id: str) -> list[Place]:
        """The places that a cursor leads to.

        Raises:
            ProtocolError: `-32602`; the reason goes to the log only.
        """
        try:
            payload = self._sealer.open(cursor)
        except ValueError as error:
            raise _refused("not a cursor of ours") from error
        if payload.get("list") != method or payload.get("principal") != digest(principal_id):
            raise _refused("of another list or principal")
        expires: Json = payload.get("expires")
        if not isinstance(expires, int) or expires <= self._now_s():
            raise _refused("expired")
        return [Place(*place) for place in payload["places"]]


def _refused(reason: str) -> ProtocolError:
    message = "Invalid or expired cursor; begin the list again without one"
    return ProtocolError(codes.INVALID_PARAMS, message, reason=reason)
