"""What the gateway knows of the tools of a legacy server: which arguments clients must mirror into headers.

The server side of `Mcp-Param-*` is the gateway's, since a legacy server knows nothing of it; so the gateway has to
know a tool's marks before the first call of it. 2026-07-28, basic/transports/streamable-http, "Custom Headers".
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import structlog

from gateway.core.session import SessionKey
from gateway.errors import UpstreamError
from gateway.translate.param_marks import ParamMark, marks_of
from gateway.upstream.legacy_session import LegacySession
from gateway.upstream.refusal import UpstreamRefused
from gateway.upstream.replay import Hints, hints_by_tool
from gateway.wire import methods
from gateway.wire.jsonrpc import Json

log = structlog.get_logger()

Marks: TypeAlias = Mapping[str, tuple[ParamMark, ...]]
"""By tool; a tool without marks is not in it."""

_MAX_PAGES: Final = 100
_MAX_KEYS: Final = 4096
_STALE_S: Final = 5.0
_RETRY_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class _Known:
    marks: dict[str, tuple[ParamMark, ...]]
    hints: dict[str, frozenset[str]]
    learned_at_s: float
    is_failure: bool = False


class ToolMarks:
    """The marks of one upstream's tools, as each session key sees them (a list may depend on capabilities).

    Args:
        now_s: a monotonic clock.
        patience_s: how long a look at all pages of a list may take.
    """

    def __init__(self, now_s: Callable[[], float], patience_s: float) -> None:
        self._now_s = now_s
        self._patience_s = patience_s
        self._known: OrderedDict[SessionKey, _Known] = OrderedDict()
        self._looking: dict[SessionKey, asyncio.Task[Marks]] = {}
        self._changes = 0

    def known(self, key: SessionKey) -> Marks | None:
        """The marks, None if they have to be learned first."""
        known = self._known.get(key)
        if known is None or (known.is_failure and self._age_s(known) > _RETRY_S):
            return None
        return known.marks

    def hints(self, key: SessionKey) -> Hints:
        """What the server says of the effects of its tools, as far as it is known."""
        known = self._known.get(key)
        return {} if known is None else known.hints

    def is_stale(self, key: SessionKey) -> bool:
        """Whether a request that contradicts the marks deserves a second look at the list."""
        known = self._known.get(key)
        return known is None or self._age_s(known) > _STALE_S

    async def learn(self, session: LegacySession) -> Marks:
        """List the tools, all pages of them. A server that will not tell is taken to have no marks, for a while.

        Concurrent first calls share one look; one whose client leaves does not take it away from the others.

        Raises:
            SessionExpired: the server does not know the session.
        """
        looking = self._looking.get(session.key)
        if looking is None:
            looking = asyncio.get_running_loop().create_task(self._look(session))
            self._looking[session.key] = looking
            looking.add_done_callback(lambda done: self._looked(session.key, done))
        return await asyncio.shield(looking)

    def _looked(self, key: SessionKey, looking: "asyncio.Task[Marks]") -> None:
        del self._looking[key]
        if not looking.cancelled():
            looking.exception()  # seen by whoever waited, and maybe nobody did

    async def _look(self, session: LegacySession) -> Marks:
        marks: dict[str, tuple[ParamMark, ...]] = {}
        hints: dict[str, frozenset[str]] = {}
        failed, changes = False, self._changes
        try:
            async with asyncio.timeout(self._patience_s):
                for tools in [page async for page in _pages(session)]:
                    marks.update(_marks_by_tool(tools))
                    hints.update(hints_by_tool(tools))
        except (UpstreamError, UpstreamRefused, TimeoutError) as error:
            failed = True
            log.warning("tools not listed", upstream=session.name, reason=str(error) or "too slow")
        if changes == self._changes:  # else the list has changed while it was being read
            self._keep(session.key, _Known(marks, hints, self._now_s(), failed))
        return marks

    def note(self, key: SessionKey, result: Json, *, is_first_page: bool) -> None:
        """Take note of a tools list that passes by."""
        tools = result.get("tools") if isinstance(result, dict) else None
        if not isinstance(tools, list):
            return
        if is_first_page and not isinstance(result.get("nextCursor"), str):  # an empty cursor is one, too
            self._keep(key, _Known(_marks_by_tool(tools), hints_by_tool(tools), self._now_s()))
        elif (known := self._known.get(key)) is not None:
            known.marks.update(_marks_by_tool(tools))
            known.hints.update(hints_by_tool(tools))

    def forget(self) -> None:
        """The list has changed."""
        self._known.clear()
        self._changes += 1

    def _age_s(self, known: _Known) -> float:
        return self._now_s() - known.learned_at_s

    def _keep(self, key: SessionKey, known: _Known) -> None:
        self._known[key] = known
        if len(self._known) > _MAX_KEYS:
            self._known.popitem(last=False)


async def _pages(session: LegacySession) -> AsyncIterator[list[Json]]:
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(_MAX_PAGES):
        result = await session.ask(methods.TOOLS_LIST, None if cursor is None else {"cursor": cursor})
        if not isinstance(result, dict) or not isinstance(result.get("tools"), list):
            return
        yield result["tools"]
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str) or cursor in seen:
            return
        seen.add(cursor)
    log.warning("tools list cut", upstream=session.name, pages=_MAX_PAGES)


def _marks_by_tool(tools: list[Json]) -> dict[str, tuple[ParamMark, ...]]:
    by_tool: dict[str, tuple[ParamMark, ...]] = {}
    for tool in tools:
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            continue
        try:
            marks = marks_of(tool)
        except ValueError:
            continue  # such a tool is left out of the list, and no client knows its marks
        if marks:
            by_tool[tool["name"]] = marks
    return by_tool
