"""A scripted modern server that tells what changes on its `subscriptions/listen` streams.

What tests look at: `streams`, the open ones; `asked`, what each listen ever made asked for. It grants what is in
`offers`, and every URI that is not in `refused`. `drop()` ends the streams as a server does that shuts down.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.support.gateway_app import Front, gateway_for
from tests.support.scripted import WAIT_S, ScriptedUpstream, Wire
from tests.support.stream_client import ACKNOWLEDGED, SUBSCRIPTION


class ModernChanging(ScriptedUpstream):
    """See the module."""

    def __init__(self) -> None:
        super().__init__("modern")
        self.capabilities = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
        self.offers = {"toolsListChanged", "promptsListChanged", "resourcesListChanged"}
        self.refused: set[str] = set()
        self.streams: list[Wire] = []
        self.asked: list[dict[str, Any]] = []
        self._cuts: dict[Wire, asyncio.Event] = {}
        self.on("subscriptions/listen", self._listen)

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(WAIT_S), self._arrival:
            await self._arrival.wait_for(condition)

    async def tell(self, method: str, **params: Any) -> None:
        """Say on every stream that something has changed."""
        for wire in list(self.streams):
            await wire.notify(method, {**params, "_meta": {SUBSCRIPTION: wire.request.id}})

    async def drop(self) -> None:
        """End every stream in order, and wait until it is gone."""
        for cut in self._cuts.values():
            cut.set()
        await self.until(lambda: not self._cuts)

    async def _listen(self, wire: Wire) -> None:
        asked = wire.request.params["notifications"]
        self.asked.append(asked)
        granted: dict[str, Any] = {flag: True for flag in self.offers if asked.get(flag)}
        if uris := [uri for uri in asked.get("resourceSubscriptions", []) if uri not in self.refused]:
            granted["resourceSubscriptions"] = uris
        await wire.sse()
        about = {SUBSCRIPTION: wire.request.id}
        await wire.notify(ACKNOWLEDGED, {"notifications": granted, "_meta": about})
        if granted:
            await self._hold(wire)
        await wire.end(result={"resultType": "complete", "_meta": about})

    async def _hold(self, wire: Wire) -> None:
        self.streams.append(wire)
        cut = self._cuts[wire] = asyncio.Event()
        await self._tell_tests()
        ends = [asyncio.ensure_future(event.wait()) for event in (cut, wire.gone)]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            del self._cuts[wire]
            self.streams.remove(wire)
        await self._tell_tests()

    async def _tell_tests(self) -> None:
        async with self._arrival:
            self._arrival.notify_all()


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[tuple[ModernChanging, Front]]:
    """Such a server and a gateway in front of it; the options are those of `gateway_for`."""
    async with ModernChanging() as upstream, gateway_for(upstream, era="modern", **options) as front:
        yield upstream, front
