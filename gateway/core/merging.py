"""Makes one server out of several: capabilities united, lists joined, instructions under a heading each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.core.cursors import MAX_PAGES, Place
from gateway.core.names import Names
from gateway.wire import meta, methods
from gateway.wire.jsonrpc import Json, JsonObject
from gateway.wire.versions import SUPPORTED

UNAVAILABLE: Final = "era-gateway/unavailable"
"""The `_meta` key that names the upstreams which a result had to do without."""

_NAMED: Final = (methods.TOOLS_LIST, methods.PROMPTS_LIST)
_KEYS: Final = {
    methods.TOOLS_LIST: "name",
    methods.PROMPTS_LIST: "name",
    methods.RESOURCES_LIST: "uri",
    methods.RESOURCE_TEMPLATES_LIST: "uriTemplate",
}
"""What two entries of a list must not have in common."""


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


def merge_discovery(
    results: Mapping[str, JsonObject], unavailable: Sequence[str], server_info: JsonObject
) -> JsonObject:
    """One discover result out of several.

    Args:
        results: by upstream, in the order of the file.
        unavailable: the upstreams that did not answer.
        server_info: the gateway's own identity.
    """
    capabilities: JsonObject = {}
    for result in results.values():
        capabilities = _unite(capabilities, result.get("capabilities"))
    merged: JsonObject = {
        "resultType": "complete",
        "supportedVersions": list(SUPPORTED),
        "capabilities": capabilities,
        **_cache_hints(results.values(), is_degraded=bool(unavailable)),
    }
    headed = [f"# {name}\n\n{text}" for name, result in results.items() if (text := result.get("instructions"))]
    if headed:
        merged["instructions"] = "\n\n".join(headed)
    return with_meta(merged, server_info, unavailable)


def merge_lists(
    method: str, pages: Sequence[Page], names: Names, page_size: int | None
) -> tuple[list[tuple[str, JsonObject]], list[Place]]:
    """Join pages in the order of the file.

    Returns:
        The entries, each with its upstream and under its public name, the first of two alike; and where the list goes
        on, empty at its end.
    """
    entries: list[tuple[str, JsonObject]] = []
    places: list[Place] = []
    for page in pages:
        own = _entries(method, page)
        room = len(own) if page_size is None else max(page_size - len(entries), 0)
        taken = own[:room]
        entries += [(page.place.upstream, _published(method, entry, page.place.upstream, names)) for entry in taken]
        if len(taken) < len(own):
            place = page.place
            places.append(Place(place.upstream, place.cursor, place.skip + len(taken), place.pages))
        elif (following := _following(page)) is not None:
            places.append(following)
    return list(_unique(method, entries)), places


def _entries(method: str, page: Page) -> list[JsonObject]:
    if page.result is None:
        return []
    entries: list[JsonObject] = page.result[methods.LIST_KEYS[method]][page.place.skip :]
    return entries


def _following(page: Page) -> Place | None:
    """Where an upstream's list goes on after a page; a cursor that leads back to itself ends it."""
    cursor = page.result.get("nextCursor") if page.result is not None else None
    if not isinstance(cursor, str) or cursor == page.place.cursor or page.place.pages >= MAX_PAGES:
        return None
    return Place(page.place.upstream, cursor, 0, page.place.pages + 1)


def _published(method: str, entry: JsonObject, upstream: str, names: Names) -> JsonObject:
    return {**entry, "name": names.to_public(upstream, entry["name"])} if method in _NAMED else entry


def _unique(method: str, entries: Iterable[tuple[str, JsonObject]]) -> Iterable[tuple[str, JsonObject]]:
    seen: set[Json] = set()
    key = _KEYS[method]
    for upstream, entry in entries:
        if entry[key] not in seen:
            seen.add(entry[key])
            yield upstream, entry


def list_result(
    method: str,
    entries: Sequence[tuple[str, JsonObject]],
    pages: Sequence[Page],
    next_cursor: str | None,
    server_info: JsonObject,
) -> JsonObject:
    """The result of a merged list, which says what is missing from it."""
    unavailable = [page.place.upstream for page in pages if page.result is None or page.is_stale]
    results = [page.result for page in pages if page.result is not None]
    merged: JsonObject = {
        "resultType": "complete",
        methods.LIST_KEYS[method]: [entry for _upstream, entry in entries],
        **_cache_hints(results, is_degraded=bool(unavailable)),
    }
    if next_cursor is not None:
        merged["nextCursor"] = next_cursor
    return with_meta(merged, server_info, unavailable)


def with_meta(result: JsonObject, server_info: JsonObject, unavailable: Sequence[str]) -> JsonObject:
    """Say who answers, and who did not."""
    about: JsonObject = {meta.SERVER_INFO: server_info}
    if unavailable:
        about[UNAVAILABLE] = list(unavailable)
    return {**result, "_meta": about}


def _cache_hints(results: Iterable[JsonObject], *, is_degraded: bool) -> JsonObject:
    """As fresh as the stalest part, as public as the most private one; what lacks a part is not to be kept."""
    hints = list(results)
    if is_degraded or not hints:
        return {"ttlMs": 0, "cacheScope": "private"}
    is_public = all(hint.get("cacheScope") == "public" for hint in hints)
    return {
        "ttlMs": min(hint.get("ttlMs", 0) for hint in hints),
        "cacheScope": "public" if is_public else "private",
    }


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
