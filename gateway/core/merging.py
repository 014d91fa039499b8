"""Makes one server out of several: capabilities united, lists joined, instructions under a heading each."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from gateway.core.cursors import Place, cursor_of
from gateway.core.names import Names
from gateway.wire import meta, methods
from gateway.wire.jsonrpc import Json, JsonObject
from gateway.wire.versions import SUPPORTED

UNAVAILABLE: Final = "era-gateway/unavailable"
"""The `_meta` key that names the upstreams which a result had to do without."""

NAMED: Final = frozenset({methods.TOOLS_LIST, methods.PROMPTS_LIST})
"""The lists whose entries have a name that the gateway may change; the others have a URI, which it never does."""

KEYS: Final = {
    methods.TOOLS_LIST: "name",
    methods.PROMPTS_LIST: "name",
    methods.RESOURCES_LIST: "uri",
    methods.RESOURCE_TEMPLATES_LIST: "uriTemplate",
}
"""What two entries of a list must not have in common."""

OwnerOf = Callable[[str], str | None]
"""The upstream that has the entry of a key, among several that do; None: whichever is met first."""


@dataclass(frozen=True, slots=True)
class Page:
    """One upstream's page of a list, or the lack of one.

    Args:
        place: where it begins.
        result: the upstream's result; None if it failed and nothing older is known.
        is_stale: whether it is what the upstream said earlier, since it says nothing now.
    """

    place: Place
    result: JsonObject | None
    is_stale: bool = False


@dataclass(slots=True)
class Joined:
    """Pages made one.

    Attributes:
        entries: under their public names, each key once.
        places: where the list goes on, empty at its end.
        clashes: the key, the upstream that has it, and another one that has it too.
        endless: the upstreams whose lists were ended, since they showed that they never would.
    """

    entries: list[JsonObject] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    clashes: list[tuple[str, str, str]] = field(default_factory=list)
    endless: list[str] = field(default_factory=list)


def join_pages(
    method: str, pages: Sequence[Page], names: Names, *, page_size: int | None = None, owner_of: OwnerOf | None = None
) -> Joined:
    """Join pages in the order in which they are given.

    An upstream without a page is asked for it again together with the next page, if there is one.

    Args:
        method: the list.
        pages: one for each upstream.
        names: makes public names.
        page_size: how many entries there may be; None: as many as there are.
        owner_of: decides where two upstreams have the same entry; by default, the first one wins.
    """
    joined = Joined()
    unanswered: set[str] = set()
    taken = _Taken(method, joined, owner_of)
    room = page_size
    for page in pages:
        if page.result is None:
            unanswered.add(page.place.upstream)
            joined.places.append(page.place)
            continue
        entries = usable_entries(method, page.result)[page.place.skip :]
        fitting = entries if room is None else entries[:room]
        for entry in fitting:
            taken.add(page.place.upstream, _published(method, entry, page.place.upstream, names))
        if room is not None:
            room -= len(fitting)
        _note_rest(joined, page, is_cut=len(fitting) < len(entries), taken=len(fitting))
    if all(place.upstream in unanswered for place in joined.places):
        joined.places.clear()
    return joined


def _note_rest(joined: Joined, page: Page, *, is_cut: bool, taken: int) -> None:
    """Note where a list goes on after a page."""
    cursor = cursor_of(page.result or {})
    if is_cut:
        joined.places.append(page.place.further(taken))
    elif cursor is not None:
        following = page.place.following(cursor)
        if following is None:
            joined.endless.append(page.place.upstream)
        else:
            joined.places.append(following)


class _Taken:
    """Takes each key once."""

    def __init__(self, method: str, joined: Joined, owner_of: OwnerOf | None) -> None:
        self._key = KEYS[method]
        self._joined = joined
        self._owner_of = owner_of
        self._owners: dict[str, str] = {}

    def add(self, upstream: str, entry: JsonObject) -> None:
        key = entry[self._key]
        decided = self._owner_of(key) if self._owner_of is not None else None
        owner = decided or self._owners.get(key, upstream)
        if owner != upstream:
            self._joined.clashes.append((key, owner, upstream))
        elif key not in self._owners:
            self._owners[key] = upstream
            self._joined.entries.append(entry)


def usable_entries(method: str, result: JsonObject) -> list[JsonObject]:
    """The entries of a list result that have the key by which they are known, each key once."""
    entries = result.get(methods.LIST_KEYS[method])
    key = KEYS[method]
    found: dict[str, JsonObject] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get(key), str):
            found.setdefault(entry[key], entry)
    return list(found.values())


def _published(method: str, entry: JsonObject, upstream: str, names: Names) -> JsonObject:
    return {**entry, "name": names.to_public(upstream, entry["name"])} if method in NAMED else entry


@dataclass(frozen=True, slots=True)
class Byline:
    """What a merged result says of itself.

    Args:
        server_info: the gateway's own identity.
        unavailable: the upstreams that the result had to do without, or whose part in it is old.
        may_be_shared: whether everybody is shown the same; not if some may use fewer upstreams than others.
    """

    server_info: JsonObject
    unavailable: Sequence[str] = ()
    may_be_shared: bool = True

    def sign(self, result: JsonObject, parts: Iterable[JsonObject]) -> JsonObject:
        """As fresh as the stalest part, as public as the most private one; what lacks a part is not to be kept."""
        about: JsonObject = {meta.SERVER_INFO: self.server_info}
        if self.unavailable:
            about[UNAVAILABLE] = list(self.unavailable)
        hints = list(parts)
        is_kept = bool(hints) and not self.unavailable
        is_public = is_kept and self.may_be_shared and all(hint.get("cacheScope") == "public" for hint in hints)
        return {
            **result,
            "ttlMs": min(hint.get("ttlMs", 0) for hint in hints) if is_kept else 0,
            "cacheScope": "public" if is_public else "private",
            "_meta": about,
        }


def list_result(
    method: str, joined: Joined, pages: Sequence[Page], next_cursor: str | None, byline: Byline
) -> JsonObject:
    """The result of a merged list.

    Args:
        method: the list.
        joined: what stands in it.
        pages: what that comes from.
        next_cursor: where it goes on; None at its end.
        byline: who says so.
    """
    merged: JsonObject = {"resultType": "complete", methods.LIST_KEYS[method]: joined.entries}
    if next_cursor is not None:
        merged["nextCursor"] = next_cursor
    return byline.sign(merged, [page.result for page in pages if page.result is not None])


def merge_discovery(results: Mapping[str, JsonObject], byline: Byline) -> JsonObject:
    """One discover result out of several.

    Args:
        results: by upstream, in the order of the file.
        byline: who says so.
    """
    capabilities: JsonObject = {}
    for result in results.values():
        capabilities = _unite(capabilities, result.get("capabilities"))
    merged: JsonObject = {
        "resultType": "complete",
        "supportedVersions": list(SUPPORTED),
        "capabilities": capabilities,
    }
    instructions = [
        f"# {name}\n\n{text}"
        for name, result in results.items()
        if isinstance(text := result.get("instructions"), str) and text.strip()
    ]
    if instructions:
        merged["instructions"] = "\n\n".join(instructions)
    return byline.sign(merged, results.values())


def _unite(one: JsonObject, other: Json) -> JsonObject:
    """A capability is offered if one of the servers offers it, and so is each of its parts."""
    if not isinstance(other, dict):
        return one
    united = dict(one)
    for name, value in other.items():
        before = united.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            united[name] = _unite(before, value)
        elif before is None or before is False:
            united[name] = value
    return united
