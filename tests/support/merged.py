"""The gateway in front of several upstreams that offer things, and what a client finds there."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

from tests.support.gateway_app import Answer, Front, gateway_for
from tests.support.scripted import ScriptedUpstream

UNAVAILABLE = "era-gateway/unavailable"
_MEMBERS = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}


@asynccontextmanager
async def merged(*upstreams: Any, **more: Any) -> AsyncIterator[Front]:
    """The gateway in front of upstreams, which are called as they are labelled; `more` as in `gateway_for`."""
    for upstream in upstreams:
        await upstream.start()
    try:
        async with gateway_for(upstreams={upstream.label: upstream for upstream in upstreams}, **more) as front:
            yield front
    except BaseException:
        await _stop(upstreams, is_failure=True)
        raise
    await _stop(upstreams, is_failure=False)


async def _stop(upstreams: tuple[ScriptedUpstream, ...], *, is_failure: bool) -> None:
    for upstream in upstreams:
        await upstream.__aexit__(Exception if is_failure else None)


def users(**scopes: list[str] | None) -> Mapping[str, Any]:
    """A configuration of users, whose keys are their names."""
    keys = []
    for name, allowed in scopes.items():
        key: dict[str, Any] = {"name": name, "sha256": sha256(name.encode()).hexdigest()}
        keys.append(key if allowed is None else {**key, "scopes": allowed})
    return {"type": "api_key", "keys": keys}


def as_user(name: str) -> dict[str, str]:
    """The headers of a user's request."""
    return {"Authorization": f"Bearer {name}"}


def names(answer: Answer, member: str = "tools", key: str = "name") -> list[str]:
    """What stands in a list."""
    return [entry[key] for entry in answer.result[member]]


def unavailable(answer: Answer) -> list[str]:
    """Which upstreams a result had to do without."""
    found: list[str] = answer.result["_meta"].get(UNAVAILABLE, [])
    assert not found or (answer.result["ttlMs"], answer.result["cacheScope"]) == (0, "private")
    return found


async def walk(front: Front, method: str, most: int = 100, **more: Any) -> tuple[list[str], list[Answer]]:
    """Every entry of a list, page by page, and the pages."""
    member, key = _MEMBERS[method]
    found: list[str] = []
    pages: list[Answer] = []
    params: dict[str, Any] = {}
    while len(pages) < most:
        pages.append(await front.ask(method, params, **more))
        found += names(pages[-1], member, key)
        if "nextCursor" not in pages[-1].result:
            return found, pages
        params = {"cursor": pages[-1].result["nextCursor"]}
    raise AssertionError(f"{method} does not end: {found}")
