"""The cursor of a merged list: for every upstream that has more, where it goes on.

Sealed, and bound to the list, the principal and a time; it carries the upstreams' own cursors, so that any replica can
go on from it. 2026-07-28, server/utilities/pagination.

A server whose cursors lead in a circle would never let its list end. Each place therefore carries a mark of one cursor
that it has passed, and the mark moves up whenever the number of pages is a power of two: however long the circle, the
mark comes to lie in it and is met again (R. P. Brent, 1980). Nothing needs to be remembered beside the cursor.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gateway.core.request_state import digest
from gateway.core.tokens import Sealer
from gateway.errors import ProtocolError
from gateway.wire import codes
from gateway.wire.jsonrpc import Json, JsonObject

MAX_PAGES: Final = 10_000
"""Pages of one upstream's list after which nobody believes that it ends."""

MAX_CURSOR_CHARS: Final = 16_384
"""The longest cursor of an upstream that is carried; with those of many others it has to fit into one token."""

_MARK_CHARS: Final = 16


@dataclass(frozen=True, slots=True)
class Place:
    """Where one upstream's list goes on.

    Args:
        upstream: its configured name.
        cursor: its own cursor, None for its first page; "" is a cursor like any other.
        skip: entries of that page which have been given out already.
        pages: pages given out so far.
        mark: a digest of one of their cursors.
        is_known: whether the page was asked for before, and there was no room for all of it.
    """

    upstream: str
    cursor: str | None = None
    skip: int = 0
    pages: int = 0
    mark: str = ""
    is_known: bool = False

    def further(self, taken: int) -> "Place":
        """The same page, after some of it was given out."""
        return replace(self, skip=self.skip + taken, is_known=True)

    def following(self, cursor: str) -> "Place | None":
        """The next page; None if the list has shown that it would never end."""
        mark = digest(cursor)[:_MARK_CHARS]
        pages = self.pages + 1
        if cursor == self.cursor or mark == self.mark or pages > MAX_PAGES or len(cursor) > MAX_CURSOR_CHARS:
            return None
        return Place(self.upstream, cursor, 0, pages, mark if _is_power_of_two(pages) else self.mark)


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

    def seal(self, method: str, principal_id: str, places: Sequence[Place]) -> str:
        """The `nextCursor` that leads to these places."""
        return self._sealer.seal(
            {
                "list": method,
                "principal": digest(principal_id),
                "expires": int(self._now_s() + self._ttl_s),
                "places": [_to_json(place) for place in places],
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
            raise bad_cursor("not a cursor of ours") from error
        if payload.get("list") != method or payload.get("principal") != digest(principal_id):
            raise bad_cursor("of another list or principal")
        if payload.get("expires", 0) <= self._now_s():
            raise bad_cursor("expired")
        try:
            return [Place(*place) for place in payload["places"]]
        except (KeyError, TypeError) as error:  # sealed by a replica of another release
            raise bad_cursor("of another release") from error


def bad_cursor(reason: str) -> ProtocolError:
    """What a client is told of a cursor that leads nowhere."""
    message = "Invalid or expired cursor; begin the list again without one"
    return ProtocolError(codes.INVALID_PARAMS, message, reason=reason)


def cursor_of(result: JsonObject) -> str | None:
    """The `nextCursor` of a list result; None at the end of the list."""
    cursor: Json = result.get("nextCursor")
    return cursor if isinstance(cursor, str) else None


def _to_json(place: Place) -> list[Json]:
    return [place.upstream, place.cursor, place.skip, place.pages, place.mark, place.is_known]


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0
