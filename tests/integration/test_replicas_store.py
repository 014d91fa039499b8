"""Real replicas and the ways of a store: gone and back, empty, frozen, behind TLS and a password."""

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.asking_server import AskingServer
from tests.support.asking_tools import filled, offer_tools
from tests.support.redis_server import RedisServer
from tests.support.replicas import Replica, Replicas
from tests.support.round_client import Reply, RoundClient
from tests.support.tcp_front import TcpFront

pytestmark = pytest.mark.replicas

ADA = {"elicitation_1": filled("Ada")}
PASSWORD = "0123456789abcdef"
PATIENCE = 100


@asynccontextmanager
async def pair(server: AskingServer, store: str) -> AsyncIterator[tuple[Replica, Replica, RoundClient]]:
    """Two replicas, and a client."""
    async with Replicas(store, server.url, count=2) as (one, other), RoundClient(one.url, wait_s=30) as client:
        yield one, other, client


async def until_taken(client: RoundClient, key: str, asked: Reply, url: str) -> Reply:
    """Send a retry until the store is there for it."""
    for _ in range(PATIENCE):
        reply = await client.call("book", {"key": key}, answers=ADA, state=asked.state, url=url)
        if reply.status != 503:
            return reply
        await asyncio.sleep(0.05)  # a client in a hurry
    raise AssertionError(reply.message)


async def test_no_living_replica_is_taken_for_dead_when_the_store_comes_back() -> None:
    """The store comes back empty: nothing tells yet who lives. The server has no event ids, so taken over is lost."""
    async with AskingServer() as server, RedisServer() as redis:
        offer_tools(server)
        async with pair(server, redis.url) as (one, other, client):
            asked = await client.call("book", {"key": "k"})
            one.stop()  # for a moment: the other one is back in the store first
            await redis.kill()
            await other.until(store="down")
            await redis.start()
            await other.until(store="up")
            early = await client.call("book", {"key": "k"}, answers=ADA, state=asked.state, url=other.url)
            assert (early.status, early.error["data"]) == (503, {"reason": "store", "retryable": True})
            one.go_on()
            assert (await until_taken(client, "k", asked, other.url)).text == "Ada"
            await one.until(suspended=0)
            assert server.executions == {"k": 1}
            assert len(server.answers) == 1


async def test_a_store_that_stands_still_holds_up_no_plain_call_and_delays_a_retry() -> None:
    async with AskingServer() as server, RedisServer() as redis:
        offer_tools(server)
        async with pair(server, redis.url) as (one, other, client):
            here, there = await client.call("book", {"key": "here"}), await client.call("book", {"key": "there"})
            redis.freeze()
            refused = await client.call("book", {"key": "there"}, answers=ADA, state=there.state, url=other.url)
            assert (refused.status, refused.error["data"]) == (503, {"reason": "store", "retryable": True})
            assert (await client.call("plain", url=other.url)).text == "plain"
            assert (await client.call("book", {"key": "here"}, answers=ADA, state=here.state)).text == "Ada"
            redis.thaw()
            for replica in (one, other):
                await replica.until(store="up")
            assert (await until_taken(client, "there", there, other.url)).text == "Ada"
            assert server.executions == {"here": 1, "there": 1, "plain": 1}
            assert [answer.was_awaited for answer in server.answers] == [True, True]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A file with a certificate for this machine, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "store.test")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    made = builder.sign(key, hashes.SHA256())
    encoding = serialization.Encoding.PEM
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = tmp_path / "store.pem"
    path.write_bytes(made.public_bytes(encoding) + private)
    return path


@pytest.mark.parametrize("scheme", ["rediss", "valkeys"])
async def test_the_store_is_reached_over_tls_with_a_user_who_may_do_no_more_than_is_needed(
    certificate: Path, scheme: str
) -> None:
    rules = ["on", f">{PASSWORD}", "~era-gateway:*", "-@all", "+@read", "+@write", "+@scripting", "+@connection"]
    options = ["--user", "gateway", *rules, "--user", "default", "off"]
    speaks = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    speaks.load_cert_chain(certificate)
    async with AskingServer() as server, RedisServer(*options) as redis:
        offer_tools(server)
        async with TcpFront("127.0.0.1", redis.port, tls=speaks) as front:
            store = f"{scheme}://gateway:{PASSWORD}@127.0.0.1:{front.port}/0?ssl_ca_certs={certificate}"
            async with pair(server, store) as (one, other, client):
                asked = await client.call("book")
                assert (await client.call("book", answers=ADA, state=asked.state, url=other.url)).text == "Ada"
                for replica in (one, other):
                    assert (await replica.readiness())[1]["store"] == "up"
                    assert PASSWORD not in replica.log.read_text()


async def test_a_store_whose_certificate_nobody_vouches_for_is_not_talked_to(certificate: Path) -> None:
    speaks = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    speaks.load_cert_chain(certificate)
    async with AskingServer() as server, RedisServer() as redis:
        offer_tools(server)
        async with (
            TcpFront("127.0.0.1", redis.port, tls=speaks) as front,
            pair(server, f"rediss://127.0.0.1:{front.port}/0") as (one, other, client),
        ):
            asked = await client.call("book")
            refused = await client.call("book", answers=ADA, state=asked.state, url=other.url)
            assert refused.status == 503
            assert (await one.readiness())[1]["store"] == "down"
            assert (await client.call("book", answers=ADA, state=asked.state)).text == "Ada"
