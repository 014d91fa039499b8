"""The real gateway on a real socket, in this very process, so that a test can look inside.

async with running_gateway({"upstreams": {"docs": {"url": server.url}}}) as gateway:
    client = RoundClient(gateway.url)
    ...
    await gateway.until_idle()
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import structlog.testing

from gateway.app import Gateway
from gateway.config.model import Settings
from gateway.upstream.pool import SessionPool
from tests.support.asking_server import AskingServer
from tests.support.gateway_app import _UNFORESEEN, _serving

WAIT_S = 10.0
"""The bound of every wait."""

_QUICK: dict[str, Any] = {
    "server": {"admin": False, "drain": "2s"},
    "rounds": {"gather": "5ms", "gather_max": "50ms"},
}


class RunningGateway:
    """A gateway that serves, and what it holds.

    Attributes:
        gateway: the real thing.
        url: its endpoint for a single upstream, else the prefix of all.
        log: what it has logged.
    """

    def __init__(self, gateway: Gateway, url: str, log: Sequence[Mapping[str, Any]]) -> None:
        self.gateway = gateway
        self.url = url
        self.log = log

    @property
    def suspended(self) -> int:
        """Rounds that wait for their client."""
        return len(self.gateway.rounds)

    @property
    def leased(self) -> int:
        """Calls that hold a session."""
        return sum(session.in_flight for pool in self._pools() for session in pool._sessions)

    @property
    def sessions(self) -> int:
        """Sessions with upstreams, at work or idle."""
        return sum(map(len, self._pools()))

    @property
    def at_work(self) -> int:
        """Sessions that count against `sessions.max`."""
        return sum(len(pool) - pool._suspended for pool in self._pools())

    @property
    def background(self) -> int:
        """Tasks that outlive requests."""
        upstreams = self.gateway.upstreams.values()
        return len(self.gateway._background) + sum(len(upstream._background) for upstream in upstreams)

    def sweep(self) -> None:
        """End every idle session now."""
        for pool in self._pools():
            for session in [session for session in pool._sessions if session.in_flight == 0]:
                pool._retire(session)

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until something is so within the gateway, where nothing announces it; bounded."""
        async with asyncio.timeout(WAIT_S):
            while not condition():  # noqa: ASYNC110 -- nothing within the gateway announces it
                await asyncio.sleep(0.002)

    async def until_idle(self) -> None:
        """Wait until nothing is suspended, leased or at work, and say what is left if that does not come about."""
        await self._until_left(lambda: self.suspended + self.leased + self.background == 0)
        assert self.at_work == self.sessions

    async def until_at_rest(self) -> None:
        """The same, but for the calls that are suspended: each of them holds one session and one task."""
        await self._until_left(lambda: self.suspended == self.leased == self.background)

    async def _until_left(self, condition: Callable[[], bool]) -> None:
        try:
            await self.until(condition)
        except TimeoutError:
            left = f"{self.suspended} suspended, {self.leased} leased, {self.background} tasks"
            raise AssertionError(f"left behind: {left}") from None

    def _pools(self) -> list[SessionPool]:
        return [upstream._legacy._sessions._pool for upstream in self.gateway.upstreams.values()]


def settings_of(upstreams: Mapping[str, Mapping[str, Any]], changes: Mapping[str, Any]) -> Settings:
    """Settings that make tests quick, with changes section by section."""
    sections = {**_QUICK, **changes}
    merged = {
        name: {**_QUICK.get(name, {}), **section} if isinstance(section, Mapping) else section
        for name, section in sections.items()
    }
    return Settings.model_validate({**merged, "upstreams": upstreams})


@asynccontextmanager
async def running_gateway(
    server: AskingServer | None = None,
    *,
    upstream: Mapping[str, Any] | None = None,
    upstreams: Mapping[str, Mapping[str, Any]] | None = None,
    **sections: Any,
) -> AsyncIterator[RunningGateway]:
    """Serve until the block is left. Nothing unforeseen may happen meanwhile.

    Args:
        server: a legacy server, which becomes the upstream `docs`.
        upstream: more configuration of it.
        upstreams: several, in place of the one.
        sections: configuration by section, or by key.
    """
    docs = {} if server is None else {"docs": {"url": server.url, "era": "legacy", **(upstream or {})}}
    settings = settings_of({**docs, **(upstreams or {})}, sections)
    with structlog.testing.capture_logs() as log:
        gateway = Gateway(settings)
        async with _serving(gateway) as base:
            yield RunningGateway(gateway, base + settings.server.path, log)
    assert not [entry for entry in log if entry["event"] in _UNFORESEEN], log
