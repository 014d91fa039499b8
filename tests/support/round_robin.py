"""A plain load balancer: each request goes to the next replica that is ready, and none is sent twice.

As a real one does, it looks at `/readyz` now and then; a replica that takes no connection is passed over at once.
"""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

import aiohttp
from aiohttp import web

_LOOK_S: Final = 0.1
_LOOK_BOUND_S: Final = 1.0
"""A replica that does not say whether it is ready is not."""

_HOP: Final = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding"})


class RoundRobin:
    """Balances between replicas.

    Args:
        bases: their base URLs.

    Attributes:
        url: where clients go.
        served: how many requests each replica got.
    """

    def __init__(self, bases: Sequence[str]) -> None:
        self.url = ""
        self.served = dict.fromkeys(bases, 0)
        self._bases = list(bases)
        self._unready: set[str] = set()
        self._turn = 0

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None, connect=2)
        )
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", self._forward)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, backlog=1024)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self._looking = [asyncio.create_task(self._look(base)) for base in self._bases]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._looking:
            task.cancel()
        await asyncio.gather(*self._looking, return_exceptions=True)
        await self._runner.cleanup()
        await self._http.close()

    async def _look(self, base: str) -> None:
        while True:
            try:
                async with asyncio.timeout(_LOOK_BOUND_S), self._http.get(f"{base}/readyz") as answer:
                    is_ready = answer.status == 200
            except (TimeoutError, aiohttp.ClientError):
                is_ready = False
            (self._unready.discard if is_ready else self._unready.add)(base)
            await asyncio.sleep(_LOOK_S)

    def _order(self) -> list[str]:
        self._turn += 1
        turn = self._turn % len(self._bases)
        order = [*self._bases[turn:], *self._bases[:turn]]
        return sorted(order, key=lambda base: base in self._unready)

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _HOP]
        for base in self._order():
            try:
                answer = await self._http.request(
                    request.method, base + request.path_qs, data=body, headers=headers, allow_redirects=False
                )
            except aiohttp.ClientConnectorError:
                continue  # nothing was sent
            except aiohttp.ClientError:
                return self._break_off(request)
            self.served[base] += 1
            return await self._carry(request, answer)
        return web.Response(status=503, text="no replica", headers={"Retry-After": "1"})

    async def _carry(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        reply = web.StreamResponse(status=answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in _HOP:
                reply.headers.add(name, value)
        try:
            await reply.prepare(request)
            async for chunk in answer.content.iter_any():
                await reply.write(chunk)
        except aiohttp.ClientError:
            return self._break_off(request)
        finally:
            answer.close()
        return reply

    def _break_off(self, request: web.Request) -> web.StreamResponse:
        """The replica died: so does the client's connection."""
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=502)
