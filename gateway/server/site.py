"""Everything that is served on one port: the endpoints by path, and health beside them."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.server.gate import Gate
from gateway.wire import codes
from gateway.wire.jsonrpc import error_object, error_response

Readiness = Callable[[], Mapping[str, object]]
"""What `/readyz` tells; ready if its member `ready` is true."""

Lifespan = Callable[[Starlette], AbstractAsyncContextManager[None]]

_EXPOSITION: Final = "text/plain; version=0.0.4"
"""The media type of Prometheus' text format."""

_NO_STORE: Final = {"Cache-Control": "no-store"}


class Site:
    """The ASGI application: endpoints by path, without any routing in their way, and Starlette for the rest.

    Args:
        endpoints: by path, without a trailing slash; each is served with one as well.
        readiness: what `/readyz` tells.
        lifespan: what runs before the first and after the last request.
        gate: whether connections are kept.
        hint: what somebody is told who asks for a path that is not there.
    """

    def __init__(
        self, endpoints: Mapping[str, ASGIApp], readiness: Readiness, lifespan: Lifespan, gate: Gate, *, hint: str
    ) -> None:
        self._gate = gate
        self._endpoints = {path + slash: endpoint for path, endpoint in endpoints.items() for slash in ("", "/")}
        self._rest = Starlette(routes=health_routes(readiness), lifespan=lifespan)
        self._rest.add_exception_handler(404, _not_found(hint))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            if self._gate.is_leaving:
                send = self._gate.show_out(send)
            endpoint = self._endpoints.get(scope["path"])
            if endpoint is not None:
                await endpoint(scope, receive, send)
                return
        await self._rest(scope, receive, send)


def admin_site(readiness: Readiness, exposition: Callable[[], bytes]) -> Starlette:
    """What the operator's own port serves.

    Args:
        readiness: what `/readyz` tells.
        exposition: what `/metrics` tells.
    """

    async def metrics(_request: Request) -> Response:
        return Response(exposition(), media_type=_EXPOSITION, headers=_NO_STORE)

    site = Starlette(routes=[*health_routes(readiness), Route("/metrics", metrics)])
    site.add_exception_handler(404, _not_found("this is the operator's port: /healthz, /readyz, /metrics"))
    return site


def health_routes(readiness: Readiness) -> list[Route]:
    """`/healthz`: the process runs. `/readyz`: it takes requests."""

    async def healthz(_request: Request) -> Response:
        return JSONResponse({"status": "ok"}, headers=_NO_STORE)

    async def readyz(_request: Request) -> Response:
        state = readiness()
        return JSONResponse(state, status_code=200 if state["ready"] else 503, headers=_NO_STORE)

    return [Route("/healthz", healthz), Route("/readyz", readyz)]


def _not_found(hint: str) -> Callable[[Request, Exception], Awaitable[Response]]:
    body = error_response(None, error_object(codes.INVALID_REQUEST, f"Nothing is served here; {hint}"))

    async def not_found(_request: Request, _error: Exception) -> Response:
        return JSONResponse(body, status_code=404)

    return not_found
