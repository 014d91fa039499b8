"""Every upstream behind one endpoint.

Tools and prompts have their upstream's prefix, resources their own URI. Lists are asked for of all upstreams at once;
what has to do without one says so (`partial: degrade`), or fails (`partial: fail`).
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from gateway import __version__
from gateway.core.cursors import Cursors, Place, bad_cursor
from gateway.core.inbound_request import InboundRequest
from gateway.core.merged_replies import with_server_info
from gateway.core.merging import NAMED, Byline, Joined, OwnerOf, Page, join_pages, list_result, merge_discovery
from gateway.core.names import Names
from gateway.core.outcome import Outcome
from gateway.core.principal import ANONYMOUS, Caller, Principal
from gateway.core.subscriptions import LISTS
from gateway.core.unknown import unknown_method
from gateway.upstream.client_stream import ClientStream
from gateway.upstream.contexts import Upstream
from gateway.upstream.fan_out import Answer, FanOut
from gateway.upstream.merged_calls import MergedCalls
from gateway.upstream.merged_directory import Directory
from gateway.upstream.merged_listening import MergedListening
from gateway.upstream.merged_listings import Inquiry, Listings, list_request
from gateway.upstream.merged_reading import MergedReading
from gateway.wire import codes, methods
from gateway.wire.jsonrpc import JsonObject

log = structlog.get_logger()

GATEWAY_INFO: Final[JsonObject] = {"name": "era-gateway", "version": __version__}

_WALK_S: Final = 60.0
"""How long the pages of a list that was begun are those that it was begun with."""

_MOST_WARNED: Final = 10_000


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """How several upstreams are made one.

    Args:
        is_prefixed: whether names begin with their upstream's.
        fails_partially: whether a result without one of the upstreams is an error.
        page_size: entries of a list in one result; None: as they come.
        deadline_s: seconds that an upstream is waited for when all are asked.
    """

    is_prefixed: bool = True
    fails_partially: bool = False
    page_size: int | None = None
    deadline_s: float = 5.0


class MergedUpstream:
    """Several upstreams, as one.

    Args:
        upstreams: in the order of the file.
        options: how they are made one.
        cursors: seals the cursors of merged lists.
        now_s: a monotonic clock.
    """

    name = "*"

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        options: MergeOptions,
        cursors: Cursors,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._upstreams = {upstream.name: upstream for upstream in upstreams}
        self._options = options
        self._cursors = cursors
        self._names = Names(list(self._upstreams), is_prefixed=options.is_prefixed)
        self._fan_out = FanOut(options.deadline_s, now_s)
        self._listings = Listings(self._names, self._fan_out, now_s)
        self._directory = Directory(self._names, self._listings)
        self._listening = MergedListening(self._directory, self._fan_out)
        self._reading = MergedReading(self._directory, self._upstreams)
        self._calls = MergedCalls(self._directory, self._upstreams)
        self._warned: set[tuple[str, str]] = set()

    def admits(self, principal: Principal) -> bool:
        """Whether a principal may use any of them."""
        return any(upstream.admits(principal) for upstream in self._upstreams.values())

    def note_change(self, upstream: str, change: JsonObject | None) -> None:
        """An upstream says that something has changed; None: it may have said so unheard."""
        for method in methods.LIST_KEYS if change is None else LISTS.get(change["method"], ()):
            self._fan_out.forget(upstream, method)
            self._listings.forget(upstream, method)

    async def close(self) -> None:
        """End what is being asked for nobody in particular."""
        await self._listings.close()
        await self._fan_out.close()

    async def serve(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        """Serve one request. Raises GatewayError."""
        admitted = [upstream for upstream in self._upstreams.values() if upstream.admits(caller.principal)]
        inquiry = Inquiry(admitted, request, caller)
        if request.method == methods.DISCOVER:
            return await self._discover(inquiry)
        if request.method in methods.LIST_KEYS:
            return await self._list(inquiry)
        if request.method == methods.LISTEN:
            return await self._listening.serve(inquiry, client)
        one = self._reading if request.method == methods.RESOURCES_READ else self._calls
        return with_server_info(await one.serve(inquiry, client), GATEWAY_INFO)

    # --- all of them at once ---

    async def _discover(self, inquiry: Inquiry) -> Outcome:
        asked = [(upstream, inquiry.request) for upstream in inquiry.upstreams]
        answers = await self._fan_out.ask(asked, inquiry.caller)
        if (failure := self._failure(inquiry.request.method, answers)) is not None:
            return failure
        results = {name: answer.result for name, answer in answers.items() if answer.result is not None}
        return Outcome.of_result(merge_discovery(results, self._byline(inquiry, answers)))

    async def _list(self, inquiry: Inquiry) -> Outcome:
        method, cursor = inquiry.request.method, inquiry.request.params.get("cursor")
        places = self._places(inquiry, cursor)
        answers = await self._ask(inquiry, places)
        if cursor is not None and all(answer.code == codes.INVALID_PARAMS for answer in answers.values()):
            raise bad_cursor("refused by its upstream")
        if (failure := self._failure(inquiry.request.method, answers)) is not None:
            return failure
        pages = [Page(place, answers[place.upstream].result, answers[place.upstream].is_stale) for place in places]
        pages = [page for page in pages if not answers[page.place.upstream].is_refused]
        owner_of = await self._owner_of(inquiry, pages)
        joined = join_pages(method, pages, self._names, page_size=self._options.page_size, owner_of=owner_of)
        self._warn(method, joined)
        following = joined.places
        next_cursor = self._cursors.seal(method, inquiry.caller.principal.id, following) if following else None
        return Outcome.of_result(list_result(method, joined, pages, next_cursor, self._byline(inquiry, answers)))

    def _places(self, inquiry: Inquiry, cursor: str | None) -> list[Place]:
        if cursor is None:
            return [Place(upstream.name) for upstream in inquiry.upstreams]
        admitted = {upstream.name for upstream in inquiry.upstreams}
        opened = self._cursors.open(cursor, inquiry.request.method, inquiry.caller.principal.id)
        places = [place for place in opened if place.upstream in admitted]
        if not places:
            raise bad_cursor("of upstreams that are no more")
        return places

    async def _ask(self, inquiry: Inquiry, places: Sequence[Place]) -> Mapping[str, Answer]:
        """Ask for pages; what is left of a page that was asked for before is taken from what was said then."""
        request = inquiry.request
        asking = []
        for place in places:
            asked = [(self._upstreams[place.upstream], list_request(request, request.method, place.cursor))]
            max_age_s = _WALK_S if place.is_known else 0.0
            asking.append(self._fan_out.ask(asked, inquiry.caller, max_age_s=max_age_s))
        answers: dict[str, Answer] = {}
        for answer in await asyncio.gather(*asking):
            answers |= answer
        return answers

    async def _owner_of(self, inquiry: Inquiry, pages: Sequence[Page]) -> OwnerOf | None:
        """Who has which name, if names may clash and not all of them are at hand."""
        method = inquiry.request.method
        has_more = any(page.place.cursor is not None or (page.result or {}).get("nextCursor") for page in pages)
        if self._names.is_prefixed or method not in NAMED or not has_more:
            return None
        return await self._directory.owners(method, inquiry)

    def _failure(self, method: str, answers: Mapping[str, Answer]) -> Outcome | None:
        """What there is to say if the answers come to nothing."""
        failures = [answer.failure for answer in answers.values() if answer.is_missing]
        if failures and (self._options.fails_partially or all(answer.result is None for answer in answers.values())):
            return failures[0]
        if all(answer.is_refused for answer in answers.values()):
            raise unknown_method(method)
        return None

    def _byline(self, inquiry: Inquiry, answers: Mapping[str, Answer]) -> Byline:
        unavailable = [name for name, answer in answers.items() if answer.is_missing]
        # With users there are scopes, and with scopes a list that is not the same for everybody.
        return Byline(GATEWAY_INFO, unavailable, may_be_shared=inquiry.caller.principal == ANONYMOUS)

    def _warn(self, method: str, joined: Joined) -> None:
        """Say once what an operator should know."""
        for key, owner, other in joined.clashes:
            if self._is_news(method, f"{other} {key}"):
                shown = {"name": key} if method in NAMED else {}  # a URI may hold what nobody should log
                log.warning("clash", rpc_method=method, listed=owner, left_out=other, **shown)
        for upstream in joined.endless:
            if self._is_news(method, upstream):
                log.warning("list without end", rpc_method=method, upstream=upstream)

    def _is_news(self, method: str, what: str) -> bool:
        if (method, what) in self._warned or len(self._warned) >= _MOST_WARNED:
            return False
        self._warned.add((method, what))
        return True
