import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import httpx
import pytest

from gateway.demo.server import create_app
from gateway.wire.jsonrpc import JsonObject
from tests.support.legacy_client import LegacyClient
from tests.support.serving import serving

Connect = Callable[..., Awaitable[LegacyClient]]


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    """One demo server for all tests: what it remembers, it remembers by session."""
    with serving(create_app()) as base:
        yield f"{base}/mcp"


@pytest.fixture(scope="session")
def no_tls() -> ssl.SSLContext:
    """Made once: a client that is left to read the system's certificates takes longer than its test."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@pytest.fixture
async def http(url: str, no_tls: ssl.SSLContext) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=10, verify=no_tls) as client:
        yield client


@pytest.fixture
def connect(http: httpx.AsyncClient, url: str) -> Connect:
    async def connected(capabilities: JsonObject | None = None, version: str = "2025-11-25") -> LegacyClient:
        return await LegacyClient.connect(http, url, capabilities, version)

    return connected
