"""gateway.server.stalled: clients that begin a request and do not go on with it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from gateway.server import stalled
from tests.support.gateway_app import gateway_for
from tests.support.messages import good_request
from tests.support.raw_http import RawConnection, connect, head
from tests.support.scripted import ScriptedUpstream, Wire

CALL = {"name": "echo", "arguments": {"text": "hi"}}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalled, "STALL_S", 0.1)


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[RawConnection, ScriptedUpstream]]:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front, connect(front.url) as connection:
        yield connection, upstream


def whole() -> bytes:
    headers, body = good_request("tools/call", CALL)
    return head("POST", "/mcp", headers, host="localhost", length=len(body)) + body


@pytest.mark.parametrize("size", [0, 1, 100])
async def test_a_head_that_does_not_go_on_is_too_late(size: int) -> None:
    async with connected() as (connection, upstream):
        await connection.send_bytes(whole()[:size])
        assert (await connection.read()).status == 408
        assert await connection.is_closed()
        assert upstream.log == []


async def test_a_body_that_does_not_go_on_is_given_up() -> None:
    async with connected() as (connection, upstream):
        await connection.send_bytes(whole()[:-1])
        assert await connection.is_closed()
        assert upstream.log == []


async def test_who_goes_on_slowly_is_served() -> None:
    async with connected() as (connection, _upstream):
        sent = whole()
        for start in range(0, len(sent), 100):
            await connection.send_bytes(sent[start : start + 100])
            await asyncio.sleep(0.04)  # the slowness under test
        assert (await connection.read()).status == 200


async def test_who_waits_for_an_answer_may_be_silent() -> None:
    async with connected() as (connection, upstream):

        @upstream.on("tools/call")
        async def slow(wire: Wire) -> None:
            await asyncio.sleep(0.3)  # the slowness under test
            await upstream.answer(wire)

        for _ in range(2):
            await connection.send_bytes(whole())
            assert (await connection.read()).status == 200


async def test_who_was_served_and_begins_another_request_is_told_that_it_is_late() -> None:
    async with connected() as (connection, _upstream):
        await connection.send_bytes(whole())
        assert (await connection.read()).status == 200
        await connection.send_bytes(whole()[:50])
        assert (await connection.read()).status == 408


def answer_at_length(upstream: ScriptedUpstream, lost: asyncio.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the sockets between here and there can hold; and tell when the gateway gives a connection up."""

    @upstream.on("tools/call")
    async def answer(wire: Wire) -> None:
        await wire.result({"content": [{"type": "text", "text": "x" * 20_000_000}]})

    connection_lost = stalled.StalledProtocol.connection_lost

    def tell(protocol: stalled.StalledProtocol, error: Exception | None) -> None:
        connection_lost(protocol, error)
        lost.set()

    monkeypatch.setattr(stalled.StalledProtocol, "connection_lost", tell)


async def test_a_reply_that_nobody_reads_is_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalled, "UNREAD_S", 0.1)
    lost = asyncio.Event()
    async with connected() as (connection, upstream):
        answer_at_length(upstream, lost, monkeypatch)
        await connection.send_bytes(whole())
        async with asyncio.timeout(10):
            await lost.wait()


async def test_a_reply_that_is_read_slowly_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalled, "UNREAD_S", 0.3)
    lost = asyncio.Event()
    async with connected() as (connection, upstream):
        answer_at_length(upstream, lost, monkeypatch)
        await connection.send_bytes(whole())
        left = int((await connection.read_head()).headers["content-length"])
        while left > 0:
            left -= len(await connection._reader.readexactly(min(left, 1_000_000)))
            await asyncio.sleep(0.03)  # the slowness under test
        assert not lost.is_set()


async def drip(connection: RawConnection, data: bytes) -> None:
    with contextlib.suppress(ConnectionError):
        for position in range(len(data)):
            await connection.send_bytes(data[position : position + 1])
            await asyncio.sleep(0.05)  # the slowness under test


async def test_a_head_that_comes_byte_by_byte_is_too_late_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalled, "HEAD_S", 0.3)
    async with connected() as (connection, upstream):
        dripping = asyncio.create_task(drip(connection, whole()[:-100]))
        assert (await connection.read()).status == 408
        await dripping
        assert upstream.log == []


async def test_a_body_that_comes_byte_by_byte_is_given_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalled, "BODY_S", 0.3)
    async with connected() as (connection, upstream):
        await connection.send_bytes(whole()[:-100])
        dripping = asyncio.create_task(drip(connection, whole()[-100:]))
        assert await connection.is_closed()
        await dripping
        assert upstream.log == []
