"""Which resources one listening session is subscribed to: each once, for as long as any listener wants it.

2025-11-25, server/resources, "Subscriptions".
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final

from gateway.errors import UpstreamError
from gateway.upstream.background import Background
from gateway.upstream.legacy_session import SessionExpired
from gateway.upstream.refusal import UpstreamRefused
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject

_FAILURES: Final = (UpstreamError, UpstreamRefused, SessionExpired, TimeoutError)
_ASK_S: Final = 5.0
_AT_ONCE: Final = 16

Ask = Callable[[str, JsonObject | None], Awaitable[Json]]


@dataclass(slots=True, eq=False)
class _Resource:
    """One that is wanted.

    Args:
        subscribed: whether the server agreed, as soon as that is known.
        holders: how many listeners want it.
    """

    subscribed: "asyncio.Task[bool]"
    holders: int = 0


class ResourceSubscriptions:
    """The resources of one listening session and its successors.

    Args:
        ask: makes a request on the session.
        background: where the server is told what nobody waits for.
    """

    def __init__(self, ask: Ask, background: Background) -> None:
        self._ask = ask
        self._background = background
        self._resources: dict[str, _Resource] = {}
        self._leaving: dict[str, asyncio.Task[None]] = {}
        self._room = asyncio.Semaphore(_AT_ONCE)

    def __len__(self) -> int:
        return len(self._resources)

    async def hold(self, uris: frozenset[str]) -> frozenset[str]:
        """Subscribe to what is not subscribed yet; says what the server agreed to. Let go of that later."""
        held = {uri: self._hold(uri) for uri in uris}
        try:
            # Not cancelled with the listener that waits: others may wait for the same.
            agreed = await asyncio.gather(*(asyncio.shield(resource.subscribed) for resource in held.values()))
        except BaseException:
            self.let_go(held)
            raise
        granted = frozenset(uri for uri, is_subscribed in zip(held, agreed, strict=True) if is_subscribed)
        self.let_go(uris - granted)
        return granted

    def let_go(self, uris: Iterable[str]) -> None:
        """A listener has gone; what nobody else wants is unsubscribed from."""
        for uri in uris:
            resource = self._resources[uri]
            resource.holders -= 1
            if resource.holders == 0:
                del self._resources[uri]
                self._leaving[uri] = self._background.run(self._leave(uri, resource))

    async def renew(self, ask: Ask) -> None:
        """Subscribe to everything again, on a session that knows of nothing."""
        known = [uri for uri, resource in self._resources.items() if resource.subscribed.done()]
        await asyncio.gather(*(self._request(ask, methods.SUBSCRIBE, uri) for uri in known))

    async def close(self) -> None:
        """Let go of everything, and wait until the server has heard of it."""
        for uri, resource in list(self._resources.items()):
            resource.holders = 1
            self.let_go([uri])
        if self._leaving:
            await asyncio.wait(list(self._leaving.values()))

    def _hold(self, uri: str) -> _Resource:
        resource = self._resources.get(uri)
        if resource is None:
            subscribed = asyncio.get_running_loop().create_task(self._subscribe(uri))
            resource = self._resources[uri] = _Resource(subscribed)
        resource.holders += 1
        return resource

    async def _subscribe(self, uri: str) -> bool:
        leaving = self._leaving.get(uri)
        if leaving is not None:
            await asyncio.wait([leaving])  # the server must hear of the end before it hears of the new beginning
        return await self._request(self._ask, methods.SUBSCRIBE, uri)

    async def _leave(self, uri: str, resource: _Resource) -> None:
        try:
            if await resource.subscribed:
                await self._request(self._ask, methods.UNSUBSCRIBE, uri)
        finally:
            if self._leaving.get(uri) is asyncio.current_task():
                del self._leaving[uri]

    async def _request(self, ask: Ask, method: str, uri: str) -> bool:
        try:
            async with self._room, asyncio.timeout(_ASK_S):
                await ask(method, {"uri": uri})
        except _FAILURES:
            return False
        return True
