"""gateway.server.stalled: clients that begin a request and do not go on with it."""

import asyncio
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
