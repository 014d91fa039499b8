"""Puts the rooms together: from settings to a running server.

The only place, beside the command line, that knows the configuration; it introduces the shells to each other.
"""

import asyncio
import contextlib
import gc
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import structlog
import uvicorn
from cryptography.fernet import Fernet, MultiFernet
from starlette.applications import Starlette

from gateway import telemetry
from gateway.auth.anonymous import Anonymous
from gateway.auth.api_key import ApiKey, ApiKeys
from gateway.config import model
from gateway.core.front_door import FrontDoor
from gateway.core.request_state import RequestStateSealer
from gateway.demo.calls import curl_calls
from gateway.demo.server import PATH as DEMO_PATH
from gateway.demo.server import create_app as create_demo
from gateway.process import raise_descriptor_limit
from gateway.rounds.memory import MemoryRounds, RoundLimits
from gateway.server.endpoint import Authenticator, Endpoint
from gateway.server.graceful import GracefulServer
from gateway.server.replies import ReplyTimes
from gateway.server.site import Site
from gateway.upstream.any_era import AnyEraUpstream
from gateway.upstream.background import Background
from gateway.upstream.build import UpstreamPlan, build_upstream
from gateway.upstream.subscriptions import StreamLimit

log = structlog.get_logger()

_SWEEP_S = 5.0


class Gateway:
    """Everything that one process serves.

    Args:
        settings: what the operator decided.
    """

    def __init__(self, settings: model.Settings) -> None:
        self._settings = settings
        self._background = Background()
        self.rounds = MemoryRounds(_round_limits(settings.rounds), self._background.run)
        self._limit = StreamLimit(settings.server.max_listeners)
        self._sealer = RequestStateSealer(_state_keys(settings.state), time.time)
        self.upstreams = {name: self._build(name, upstream) for name, upstream in settings.upstreams.items()}
        self._is_serving = False
        self.site = Site(
            self._endpoints(), self._readiness, self._lifespan, hint="the endpoints are " + ", ".join(self._paths())
        )

    def _build(self, name: str, settings: model.Upstream) -> AnyEraUpstream:
        return build_upstream(_upstream_plan(name, settings, self._settings), self.rounds, self._sealer, self._limit)

    def _paths(self) -> dict[str, AnyEraUpstream]:
        """The upstream behind each path; behind the plain one only if there is just one."""
        path = self._settings.server.path
        paths = {f"{path}/{name}": upstream for name, upstream in self.upstreams.items()}
        if len(self.upstreams) == 1:
            paths = {path: next(iter(self.upstreams.values())), **paths}
        return paths

    def _endpoints(self) -> dict[str, Any]:
        server = self._settings.server
        door = front_door(server)
        authenticator = _authenticator(self._settings.auth)
        times = ReplyTimes(server.stream_after_s, server.keepalive_s)
        return {path: Endpoint(upstream, door, authenticator, times) for path, upstream in self._paths().items()}

    def _readiness(self) -> Mapping[str, object]:
        eras = {name: upstream.era or "unknown" for name, upstream in self.upstreams.items()}
        return {"ready": self._is_serving, "upstreams": eras, "suspended": len(self.rounds)}

    @contextlib.asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        sweeper = asyncio.get_running_loop().create_task(self._sweep())
        self._is_serving = True
        _spare_the_collector()
        try:
            yield
        finally:
            self._is_serving = False
            sweeper.cancel()
            await self.close()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            for upstream in self.upstreams.values():
                upstream.sweep()

    def end_streams(self) -> None:
        """Take no more requests, and end the listeners' streams, which would never end by themselves."""
        self._is_serving = False
        for upstream in self.upstreams.values():
            upstream.end_streams()

    async def close(self) -> None:
        """End every round and every session."""
        await self.rounds.close()
        grace_s = min(self._settings.server.drain_s, 10.0)
        await asyncio.gather(*(upstream.close(grace_s) for upstream in self.upstreams.values()))
        await self._background.close(grace_s)


def _spare_the_collector() -> None:
    """What lives as long as the process is never looked at again, and young objects are looked at less often.

    A request leaves few cycles behind; with the default thresholds the collector runs several times in each.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def serve(settings: model.Settings) -> None:
    """Serve until a signal ends it."""
    telemetry.configure(settings.log.level)
    raise_descriptor_limit()
    gateway = Gateway(settings)
    log.info("serving", host=settings.server.host, port=settings.server.port, upstreams=list(gateway.upstreams))
    GracefulServer(uvicorn_config(gateway.site, settings.server), gateway.end_streams).run()


def uvicorn_config(site: Site, server: model.Server) -> uvicorn.Config:
    """How uvicorn serves a site."""
    return uvicorn.Config(
        site,
        host=server.host,
        port=server.port,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        lifespan="on",
        server_header=False,
        date_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=max(1, int(server.drain_s)),
        backlog=4096,
    )


def front_door(server: model.Server) -> FrontDoor:
    """Who may knock.

    Host is checked on loopback, where a page in a browser may reach the gateway by a name of its own (DNS rebinding),
    and wherever hosts are listed.
    """
    is_loopback = server.host in ("127.0.0.1", "::1", "localhost")
    checks_host = is_loopback or bool(server.allowed_hosts)
    return FrontDoor(
        allowed_origins=frozenset(server.allowed_origins),
        allowed_hosts=frozenset({*server.allowed_hosts, server.host}) if checks_host else None,
        max_body_bytes=server.max_body_bytes,
    )


def _authenticator(auth: model.Auth) -> Authenticator:
    if auth.type == "none":
        return Anonymous()
    return ApiKeys(ApiKey(key.name, key.sha256.get_secret_value(), key.scopes) for key in auth.keys)


def _round_limits(rounds: model.Rounds) -> RoundLimits:
    return RoundLimits(rounds.ttl_s, rounds.max, rounds.max_per_principal, rounds.max_per_upstream)


def _state_keys(state: model.State) -> MultiFernet:
    keys = [key.get_secret_value() for key in state.keys] or [Fernet.generate_key().decode()]
    return MultiFernet([Fernet(key) for key in keys])


def _upstream_plan(name: str, upstream: model.Upstream, settings: model.Settings) -> UpstreamPlan:
    rounds = settings.rounds
    return UpstreamPlan(
        name=name,
        url=str(upstream.url),
        era=None if upstream.era == "auto" else upstream.era,
        headers=upstream.plain_headers(),
        timeout_s=upstream.timeout_s,
        max_duration_s=upstream.max_duration_s,
        connect_timeout_s=upstream.connect_timeout_s,
        max_message_bytes=upstream.max_message_bytes,
        passes_authorization=upstream.auth.type == "passthrough",
        passes_client_info=upstream.pass_client_info,
        reuse=upstream.sessions.reuse,
        max_sessions=upstream.sessions.max,
        idle_s=upstream.sessions.idle_s,
        gather_s=rounds.gather_s,
        gather_max_s=rounds.gather_max_s,
        question_names=rounds.names,
        ttl_ms=int(settings.cache.ttl_s * 1000),
        cache_scope=settings.cache.scope,
        watch_s=upstream.watch_s,
    )


def demo(port: int | None) -> None:
    """Run the demo server with the gateway in front of it, and print calls to paste, until a signal ends it."""
    telemetry.configure("warning")
    asyncio.run(_demo(port or 8080))


async def _demo(port: int) -> None:
    demo_server = uvicorn.Server(uvicorn.Config(create_demo(), port=0, log_config=None, timeout_graceful_shutdown=1))
    upstream = asyncio.get_running_loop().create_task(demo_server.serve())
    while not demo_server.started:
        if upstream.done():
            return
        await asyncio.sleep(0.01)
    demo_port = demo_server.servers[0].sockets[0].getsockname()[1]
    settings = model.Settings.model_validate(
        {
            "server": {"port": port, "admin": False, "drain": "1s"},
            "upstreams": {"demo": {"url": f"http://127.0.0.1:{demo_port}{DEMO_PATH}"}},
        }
    )
    gateway = Gateway(settings)
    front = GracefulServer(uvicorn_config(gateway.site, settings.server), gateway.end_streams)
    print(curl_calls(f"http://127.0.0.1:{port}{settings.server.path}"), flush=True)
    await front.serve()
    demo_server.should_exit = True
    await upstream
