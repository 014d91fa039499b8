"""A scripted legacy server that tells what changes: on the GET streams of its sessions, and to who subscribed.

    async with served() as (upstream, front), listening(front) as listener:
        await upstream.tell(TOOLS)
        assert (await listener.message())["method"] == TOOLS

What tests look at: `streams` (the open GET streams by session), `subscribed` (how often each session is subscribed to
each URI), `most` (the highest count that this ever had). URIs in `refused` cannot be subscribed to.
`await upstream.until(condition)` waits for any of it, with a bound. `drop()` ends the streams; with `is_deaf` a GET is
answered 409, as by a server that has not noticed yet that the stream before it is gone.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.support.gateway_app import Front, gateway_for
from tests.support.scripted import WAIT_S, ScriptedUpstream, Wire

TOOLS = "notifications/tools/list_changed"
PROMPTS = "notifications/prompts/list_changed"
RESOURCES = "notifications/resources/list_changed"
UPDATED = "notifications/resources/updated"


class ChangingUpstream(ScriptedUpstream):
    """See the module."""

    def __init__(self) -> None:
        super().__init__()
        self.capabilities = {
            "tools": {"listChanged": True},
            "prompts": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
        }
        self.streams: dict[str | None, Wire] = {}
        self.subscribed: Counter[tuple[str | None, str]] = Counter()
        self.most: Counter[tuple[str | None, str]] = Counter()
        self.refused: set[str] = set()
        self.is_deaf = False
        self._cuts: dict[Wire, asyncio.Event] = {}
        self.on("GET", self._listen)
        self.on("resources/subscribe", self._subscribe)
        self.on("resources/unsubscribe", self._unsubscribe)
        self.on("DELETE", self._delete)

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(WAIT_S), self._arrival:
            await self._arrival.wait_for(condition)

    async def tell(self, method: str, *sessions: str | None, **params: Any) -> None:
        """Say on the GET streams of these sessions, or of all, that something has changed."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params:
            message["params"] = params
        for session, wire in list(self.streams.items()):
            if not sessions or session in sessions:
                await wire.event(message)

    async def drop(self) -> None:
        """End every GET stream in order, and wait until it is gone."""
        for wire in list(self.streams.values()):
            self._cuts[wire].set()
        await self.until(lambda: not self._cuts)

    async def _listen(self, wire: Wire) -> None:
        session = wire.request.session
        if self.is_deaf or session in self.streams:
            await wire.reply(409)
            return
        await wire.sse()
        cut = self._cuts[wire] = asyncio.Event()
        self.streams[session] = wire
        await self._tell_tests()
        ends = [asyncio.ensure_future(event.wait()) for event in (cut, wire.gone)]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            del self.streams[session]
            await wire.end()
        finally:
            for end in ends:
                end.cancel()
            self._cuts.pop(wire)
            self.streams.pop(session, None)
        await self._tell_tests()

    async def _subscribe(self, wire: Wire) -> None:
        if wire.request.params["uri"] in self.refused:
            await wire.error(-32002, "Resource not found")
            return
        await self._count(wire, 1)

    async def _unsubscribe(self, wire: Wire) -> None:
        await self._count(wire, -1)

    async def _count(self, wire: Wire, by: int) -> None:
        key = (wire.request.session, wire.request.params["uri"])
        self.subscribed[key] += by
        self.most[key] = max(self.most[key], self.subscribed[key])
        self.subscribed = +self.subscribed
        await self._tell_tests()
        await wire.result({})

    async def _delete(self, wire: Wire) -> None:
        for key in [key for key in self.subscribed if key[0] == wire.request.session]:
            del self.subscribed[key]
        await self.answer(wire)
        await self._tell_tests()

    async def _tell_tests(self) -> None:
        async with self._arrival:
            self._arrival.notify_all()


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[tuple[ChangingUpstream, Front]]:
    """Such a server and a gateway in front of it; the options are those of `gateway_for`."""
    async with ChangingUpstream() as upstream, gateway_for(upstream, era="legacy", **options) as front:
        yield upstream, front


def sessions_of(counts: Mapping[tuple[str | None, str], int], uri: str) -> list[int]:
    """How often each session is subscribed to a URI."""
    return [count for (_, subscribed), count in counts.items() if subscribed == uri]
