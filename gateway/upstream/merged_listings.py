"""What the lists of several upstreams say: learned to the last page, and known for a while, for each context apart."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

from gateway.core.cursors import cursor_of
from gateway.core.inbound_request import InboundRequest
from gateway.core.merging import KEYS, NAMED, usable_entries
from gateway.core.names import Names
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller
from gateway.core.uri_templates import UriTemplate
from gateway.upstream.contexts import Context, Upstream, context_of
from gateway.upstream.fan_out import FanOut
from gateway.wire import meta, methods
from gateway.wire.jsonrpc import JsonObject

MAX_PAGES: Final = 100
"""How many pages of one list are looked at to learn whose something is."""

_MAX_ENTRIES: Final = 200_000
_NOT_FOR_A_LIST: Final = frozenset({meta.PROGRESS_TOKEN, meta.LOG_LEVEL})


class Inquiry(NamedTuple):
    """Who wants to know, and of whom.

    Args:
        upstreams: those that the caller may use, in the order of the file.
        request: in whose course.
        caller: in whose name.
    """

    upstreams: Sequence[Upstream]
    request: InboundRequest
    caller: Caller


@dataclass(slots=True)
class Listing:
    """One list of one upstream.

    Attributes:
        asked_at_s: when it was asked for.
        entries: by public name, or URI, what the upstream calls it.
        templates: for the list of resource templates.
        failure: why it is not known, or only from earlier.
    """

    asked_at_s: float
    entries: dict[str, str] = field(default_factory=dict)
    templates: list[UriTemplate] = field(default_factory=list)
    failure: Outcome | None = None


_Key: TypeAlias = tuple[Context, str, int]
"""For whom, which list, and after how many changes of it."""


class Listings:
    """Learns and remembers lists.

    Args:
        names: makes public names.
        fan_out: asks the upstreams.
        now_s: a monotonic clock.
    """

    def __init__(self, names: Names, fan_out: FanOut, now_s: Callable[[], float]) -> None:
        self._names = names
        self._fan_out = fan_out
        self.now_s = now_s
        self._known: OrderedDict[_Key, Listing] = OrderedDict()
        self._size = 0
        self._changes: Counter[tuple[str, str]] = Counter()
        self._learning: dict[_Key, asyncio.Task[Listing]] = {}
        self._tasks: set[asyncio.Task[Listing]] = set()

    def known(self, method: str, upstream: Upstream, inquiry: Inquiry) -> Listing | None:
        """A list as it is known since it changed last."""
        return self._known.get(self._key(method, upstream, inquiry))

    def learn(self, method: str, upstream: Upstream, inquiry: Inquiry, max_age_s: float) -> "asyncio.Task[Listing]":
        """Ask for a list. All who want one at the same time share the asking, which outlives those who leave.

        Args:
            method: which list.
            upstream: whose.
            inquiry: for whom.
            max_age_s: how old it may be, if it was asked for already.
        """
        key = self._key(method, upstream, inquiry)
        learning = self._learning.get(key)
        if learning is None:
            learning = asyncio.get_running_loop().create_task(self._learn(key, method, upstream, inquiry, max_age_s))
            self._learning[key] = learning
            self._tasks.add(learning)
            learning.add_done_callback(lambda task: self._learned(key, task))
        return learning

    def forget(self, upstream: str, method: str) -> None:
        """A list has changed: what is known of it, or being asked for now, is from before."""
        self._changes[upstream, method] += 1

    async def close(self) -> None:
        """Stop asking."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _key(self, method: str, upstream: Upstream, inquiry: Inquiry) -> _Key:
        context = context_of(upstream, inquiry.request, inquiry.caller)
        return context, method, self._changes[upstream.name, method]

    def _learned(self, key: _Key, task: "asyncio.Task[Listing]") -> None:
        self._tasks.discard(task)
        if self._learning.get(key) is task:
            del self._learning[key]
        if not task.cancelled() and task.exception() is None:
            self._remember(key, task.result())

    def _remember(self, key: _Key, listing: Listing) -> None:
        before = self._known.pop(key, None)
        self._known[key] = listing
        self._size += 1 + len(listing.entries) - (1 + len(before.entries) if before is not None else 0)
        while self._size > _MAX_ENTRIES and len(self._known) > 1:
            _key, oldest = self._known.popitem(last=False)
            self._size -= 1 + len(oldest.entries)

    async def _learn(self, key: _Key, method: str, upstream: Upstream, inquiry: Inquiry, max_age_s: float) -> Listing:
        listing = Listing(self.now_s())
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(MAX_PAGES):
            asked = [(upstream, list_request(inquiry.request, method, cursor))]
            answer = (await self._fan_out.ask(asked, inquiry.caller, max_age_s=max_age_s))[upstream.name]
            listing.failure = listing.failure or (answer.failure if answer.is_missing else None)
            if answer.result is None:
                break
            if not answer.is_missing:
                listing.asked_at_s = min(listing.asked_at_s, answer.asked_at_s)
            self._note(listing, method, upstream.name, answer.result)
            cursor = cursor_of(answer.result)
            if cursor is None or cursor in seen:
                break
            seen.add(cursor)
        return listing

    def _note(self, listing: Listing, method: str, upstream: str, result: JsonObject) -> None:
        for entry in usable_entries(method, result):
            own: str = entry[KEYS[method]]
            listing.entries.setdefault(self._names.to_public(upstream, own) if method in NAMED else own, own)
            if method == methods.RESOURCE_TEMPLATES_LIST:
                listing.templates.append(UriTemplate(own))


def list_request(request: InboundRequest, method: str, cursor: str | None) -> InboundRequest:
    """The request for a page of a list, in the name of whoever made another request."""
    about = {key: value for key, value in request.meta.items() if key not in _NOT_FOR_A_LIST}
    params: JsonObject = {"_meta": about}
    if cursor is not None:
        params["cursor"] = cursor
    return replace(
        request,
        method=method,
        params=params,
        meta=about,
        log_level=None,
        progress_token=None,
        target=None,
        param_headers={},
        input_responses=None,
        request_state=None,
    )
