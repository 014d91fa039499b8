"""Whose a tool, a prompt or a resource is, where its name does not tell: found in the upstreams' lists.

Rule: the first upstream in the order of the file that has it. A lookup waits only for lists that are not known at all:
one that is merely old is used while it is learned anew, and once somebody is known to have the thing, those before it
in the file get a moment to say that they have it too, and no more.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gateway.core.merging import OwnerOf
from gateway.core.names import Names
from gateway.core.outcome import Outcome
from gateway.upstream.contexts import Context, Upstream, context_of, in_short
from gateway.upstream.merged_listings import Inquiry, Listing, Listings
from gateway.wire import methods

FRESH_S: Final = 60.0
"""How long a list is taken to be as it was."""

LOOK_AGAIN_S: Final = 1.0
"""How old a list must be to be looked at again for something that is not in it."""

GRACE_S: Final = 0.25
_MAX_HINTS: Final = 10_000

LIST_OF: Final = {methods.TOOLS_CALL: methods.TOOLS_LIST, methods.PROMPTS_GET: methods.PROMPTS_LIST}
"""The list in which the target of a request stands."""

_Find = Callable[[Listing], str | None]
"""What an upstream calls the thing that is looked for; None: it does not have it."""


@dataclass(frozen=True, slots=True)
class Holders:
    """Who has a resource.

    Args:
        listed: the upstream that lists it; then nobody else counts.
        likely: those that have a template for it, or told of it.
        others: the rest of those that said anything at all, which may have it without saying so.
        failures: why the others said nothing.
    """

    listed: str | None = None
    likely: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    failures: Mapping[str, Outcome] = field(default_factory=dict)

    @property
    def known(self) -> list[str]:
        """Those that are known to have it, as far as anybody can tell."""
        return [self.listed] if self.listed is not None else self.likely


class Directory:
    """Finds owners, for each authorization context apart.

    Args:
        names: makes public names.
        listings: what the lists say.
    """

    def __init__(self, names: Names, listings: Listings) -> None:
        self._names = names
        self._listings = listings
        self._hints: OrderedDict[tuple[Context, str], None] = OrderedDict()

    async def owner_of_name(self, method: str, public: str, inquiry: Inquiry) -> tuple[str, str] | None:
        """The upstream of a tool or prompt, and its name there; None if nobody has it."""
        parsed = self._names.parse(public)
        if parsed is not None:
            return parsed
        if not self._names.may_exist(public):
            return None
        return await self._search(LIST_OF[method], inquiry, lambda listing: listing.entries.get(public))

    def silent_on_name(self, method: str, public: str, inquiry: Inquiry) -> Outcome | None:
        """Why one of the upstreams could not say whether a name that nobody has is its own; None if all could."""
        may_be_theirs = self._names.parse(public) is None and self._names.may_exist(public)
        failures = self.failures(LIST_OF[method], inquiry) if may_be_theirs else {}
        return next(iter(failures.values()), None)

    async def owner_of_template(self, template: str, inquiry: Inquiry) -> str | None:
        """The upstream that has a resource template."""
        found = await self._search(
            methods.RESOURCE_TEMPLATES_LIST, inquiry, lambda listing: listing.entries.get(template)
        )
        return found[0] if found is not None else None

    async def owners(self, method: str, inquiry: Inquiry) -> OwnerOf:
        """Who has each of the entries of a list that several have, as `owner_of_name` would say."""
        learning = [
            self._listings.learn(method, upstream, inquiry, FRESH_S)
            for upstream in inquiry.upstreams
            if self._age_s(method, upstream, inquiry) >= FRESH_S
        ]
        if learning:
            await asyncio.wait(learning)
        owners: dict[str, str] = {}
        for name, listing in self._known(method, inquiry).items():
            for key in listing.entries:
                owners.setdefault(key, name)
        return owners.get

    async def holders_of(self, uri: str, inquiry: Inquiry) -> Holders:
        """Who has a resource, as far as the lists tell."""
        holders = await self._look_for(uri, inquiry, usable_s=float("inf"))
        return holders if holders.known else await self._look_for(uri, inquiry, usable_s=LOOK_AGAIN_S)

    def note_hint(self, uri: str, upstream: str, inquiry: Inquiry) -> None:
        """An upstream told of a resource, or turned out to have it."""
        context = next(
            context_of(one, inquiry.request, inquiry.caller) for one in inquiry.upstreams if one.name == upstream
        )
        key = (context, in_short(uri))
        self._hints[key] = None
        self._hints.move_to_end(key)
        if len(self._hints) > _MAX_HINTS:
            self._hints.popitem(last=False)

    def failures(self, method: str, inquiry: Inquiry) -> Mapping[str, Outcome]:
        """Why some upstreams could not say whether they have something, by upstream."""
        known = self._known(method, inquiry)
        return {name: listing.failure for name, listing in known.items() if listing.failure is not None}

    def _known(self, method: str, inquiry: Inquiry) -> Mapping[str, Listing]:
        known = {upstream.name: self._listings.known(method, upstream, inquiry) for upstream in inquiry.upstreams}
        return {name: listing for name, listing in known.items() if listing is not None}

    def _age_s(self, method: str, upstream: Upstream, inquiry: Inquiry) -> float:
        known = self._listings.known(method, upstream, inquiry)
        return float("inf") if known is None else self._listings.now_s() - known.asked_at_s

    # --- resources ---

    async def _look_for(self, uri: str, inquiry: Inquiry, *, usable_s: float) -> Holders:
        found = await self._find(
            methods.RESOURCES_LIST, inquiry, lambda listing: listing.entries.get(uri), usable_s=usable_s
        )
        if found is not None:
            return Holders(listed=found[0])
        await self._find(
            methods.RESOURCE_TEMPLATES_LIST, inquiry, lambda listing: _matching(listing, uri), usable_s=usable_s
        )
        templates = self._known(methods.RESOURCE_TEMPLATES_LIST, inquiry)
        failures = self.failures(methods.RESOURCES_LIST, inquiry)
        exact = [name for name, one in templates.items() if _matching(one, uri) is not None]
        hinted = [
            upstream.name
            for upstream in inquiry.upstreams
            if (context_of(upstream, inquiry.request, inquiry.caller), in_short(uri)) in self._hints
        ]
        rough = [name for name, one in templates.items() if any(t.resembles(uri) for t in one.templates)]
        likely = list(dict.fromkeys([*exact, *hinted, *rough]))
        others = [one.name for one in inquiry.upstreams if one.name not in likely and one.name not in failures]
        return Holders(None, likely, others, failures)

    # --- the search ---

    async def _search(self, method: str, inquiry: Inquiry, find: _Find) -> tuple[str, str] | None:
        """Look for something; once more in newer lists if it is not found, since it may be new."""
        found = await self._find(method, inquiry, find, usable_s=float("inf"))
        return found or await self._find(method, inquiry, find, usable_s=LOOK_AGAIN_S)

    async def _find(self, method: str, inquiry: Inquiry, find: _Find, *, usable_s: float) -> tuple[str, str] | None:
        """The first upstream that has something, and what it calls it.

        Args:
            method: the list that it stands in.
            inquiry: for whom.
            find: looks into one list.
            usable_s: how old a known list may be to be believed.
        """
        listings: dict[str, Listing] = {}
        learning: dict[str, asyncio.Task[Listing]] = {}
        for upstream in inquiry.upstreams:
            known, age_s = self._listings.known(method, upstream, inquiry), self._age_s(method, upstream, inquiry)
            if known is not None and age_s < usable_s:
                listings[upstream.name] = known
            if age_s >= min(usable_s, FRESH_S):
                max_age_s = min(usable_s, FRESH_S)
                learning[upstream.name] = self._listings.learn(method, upstream, inquiry, max_age_s)
        while True:
            found, is_certain = _first(inquiry, listings, find)
            waiting = [task for name, task in learning.items() if name not in listings]
            if is_certain or not waiting:
                return found
            timeout_s = GRACE_S if found is not None else None
            done, _ = await asyncio.wait(waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                return found
            listings |= {name: task.result() for name, task in learning.items() if task.done()}


def _matching(listing: Listing, uri: str) -> str | None:
    return next((template.text for template in listing.templates if template.matches(uri)), None)


def _first(inquiry: Inquiry, listings: Mapping[str, Listing], find: _Find) -> tuple[tuple[str, str] | None, bool]:
    """The first upstream that has something, and whether none that is still to answer comes before it."""
    is_certain = True
    for upstream in inquiry.upstreams:
        listing = listings.get(upstream.name)
        if listing is None:
            is_certain = False
        elif (found := find(listing)) is not None:
            return (upstream.name, found), is_certain
    return None, False
