"""An upstream without a server: it answers from what a test says, when the test says so.

    upstream = FakeUpstream("a", tools=["search"])
    upstream.hold()                     # from now on requests wait,
    upstream.let_go()                   # until now
    upstream.answers["tools/call"] = lambda request: Outcome.of_result({...})

`asked` has every request; `failure` is raised instead of an answer. A list may have several pages: `tools=[["x"],
["y"]]`, whose cursors are "1", "2" and so on.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import ANONYMOUS, Caller, Principal
from gateway.upstream.client_stream import ClientStream
from gateway.wire import methods

Pages = Sequence[str] | Sequence[Sequence[str]]

_KEYS = {
    methods.TOOLS_LIST: ("tools", "name"),
    methods.PROMPTS_LIST: ("prompts", "name"),
    methods.RESOURCES_LIST: ("resources", "uri"),
    methods.RESOURCE_TEMPLATES_LIST: ("resourceTemplates", "uriTemplate"),
}
NOBODY = Caller(ANONYMOUS)


def request(method: str, params: Mapping[str, Any] | None = None, **more: Any) -> InboundRequest:
    """A request as the ladder hands it on."""
    meta = more.pop("meta", {})
    full = {**(params or {}), "_meta": meta}
    target = full.get(methods.TARGET_PARAM.get(method, ""))
    return InboundRequest(1, method, full, meta, more.pop("capabilities", {}), target=target, **more)


def listing(method: str, *keys: str, cursor: str | None = None, **more: Any) -> dict[str, Any]:
    """The result of a list."""
    member, key = _KEYS[method]
    entries = [{"name": name, key: name} for name in keys]
    result = {"resultType": "complete", member: entries, "ttlMs": 0, "cacheScope": "private", **more}
    return result if cursor is None else {**result, "nextCursor": cursor}


class FakeUpstream:
    """See the module.

    Args:
        name: as configured.
        lists: `tools`, `prompts`, `resources`, `resourceTemplates`, each a list, or a list of pages.
    """

    def __init__(self, name: str, **lists: Pages) -> None:
        self.name = name
        self.lists = lists
        self.answers: dict[str, Callable[[InboundRequest], Outcome]] = {}
        self.failure: Exception | None = None
        self.asked: list[InboundRequest] = []
        self.cancelled = 0
        self.passes_authorization = False
        self._may_answer = asyncio.Event()
        self._may_answer.set()
        self._arrived = asyncio.Condition()

    def admits(self, principal: Principal) -> bool:
        """Whether a principal may use it."""
        return principal.may_use(self.name)

    def owner(self, caller: Caller) -> tuple[str, str]:
        """Whom answers belong to."""
        return caller.principal.id, (caller.authorization or "") if self.passes_authorization else ""

    def hold(self) -> None:
        """Answer nothing from now on."""
        self._may_answer.clear()

    def let_go(self) -> None:
        """Answer everything."""
        self._may_answer.set()

    async def seen(self, count: int) -> None:
        """Wait until so many requests have come."""
        async with asyncio.timeout(10), self._arrived:
            await self._arrived.wait_for(lambda: len(self.asked) >= count)

    def methods(self) -> list[str]:
        """What was asked, in order."""
        return [asked.method for asked in self.asked]

    async def serve(self, request: InboundRequest, _caller: Caller, _client: ClientStream) -> Outcome:
        """Serve one request."""
        self.asked.append(request)
        async with self._arrived:
            self._arrived.notify_all()
        try:
            await self._may_answer.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.failure is not None:
            raise self.failure
        answer = self.answers.get(request.method, self._list)
        return answer(request)

    def _list(self, request: InboundRequest) -> Outcome:
        pages = self.lists.get(_KEYS[request.method][0], [])
        if not pages or isinstance(pages[0], str):
            return Outcome.of_result(listing(request.method, *pages))  # type: ignore[arg-type]
        number = int(request.params.get("cursor") or 0)
        more = str(number + 1) if number + 1 < len(pages) else None
        return Outcome.of_result(listing(request.method, *pages[number], cursor=more))


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s
