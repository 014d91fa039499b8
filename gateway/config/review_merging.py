"""What `check` says of how upstreams are merged, and of what is offered of them."""

import fnmatch
from collections.abc import Iterator
from typing import Final

from gateway.config.model import Settings, Upstream
from gateway.config.offers import Offered

_DEFAULTS: Final = {"partial": "degrade", "list_timeout": 5.0, "page_size": None}


def merging_warnings(settings: Settings) -> Iterator[str]:
    """Name what is allowed and yet may surprise, one line each."""
    for name, upstream in settings.upstreams.items():
        yield from _override_warnings(name, upstream)
    if settings.is_merged:
        yield from _clash_warnings(settings)
    else:
        yield from _useless(settings)


def _useless(settings: Settings) -> Iterator[str]:
    values = {"partial": settings.partial, "list_timeout": settings.list_timeout_s, "page_size": settings.page_size}
    for key, value in values.items():
        if value != _DEFAULTS[key]:
            yield f"{key}: has no effect on a single upstream; remove it, or write prefix: always"


def _clash_warnings(settings: Settings) -> Iterator[str]:
    if settings.prefix != "never" or len(settings.upstreams) < 2:
        return
    yield (
        "prefix: never while there are several upstreams, so where two have a tool or prompt of one name, only that of "
        "the first in the file can be used; write prefix: auto"
    )
    owners: dict[str, str] = {}
    for name, upstream in settings.upstreams.items():
        for own, new in upstream.tools.rename.items():
            if owners.setdefault(new, name) != name:
                yield f"upstreams.{name}.tools.rename.{own}: {owners[new]} has a tool named {new} too; choose another"


def _override_warnings(name: str, upstream: Upstream) -> Iterator[str]:
    tools = upstream.tools
    for kind, overrides in (("rename", tools.rename), ("describe", tools.describe)):
        for own in overrides:
            if not _is_offered(tools, own):
                yield f"upstreams.{name}.tools.{kind}.{own}: not offered, see include and exclude; remove one of them"
    hidden = {new: own for own, new in tools.rename.items() if new not in tools.rename and _is_offered(tools, own)}
    for own in tools.describe:
        if own in hidden:
            yield f"upstreams.{name}.tools.describe.{own}: hidden, since {hidden[own]} is renamed to it; rename it too"


def _is_offered(offered: Offered, name: str) -> bool:
    def fits(globs: tuple[str, ...]) -> bool:
        return any(fnmatch.fnmatchcase(name, glob) for glob in globs)

    return not fits(offered.exclude) and (not offered.include or fits(offered.include))
