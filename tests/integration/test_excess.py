"""What one client, or one server, may cost the others: how much is kept of what they say, and for how long."""

import asyncio
import gzip
from typing import Any

import pytest

from tests.support.gateway_app import gateway_for
from tests.support.scripted import ScriptedUpstream, Wire

LONG = "x" * 60_000


def declaring(text: str) -> dict[str, Any]:
    return {"experimental": {"own": {"text": text}}}


async def test_a_client_that_declares_too_much_is_refused() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        answer = await front.call(capabilities=declaring("x" * 70_000))
        assert (answer.status, answer.error["code"]) == (400, -32602)
        assert upstream.received("tools/call") == []


async def test_what_a_client_declares_at_length_reaches_the_server_and_is_not_kept() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        for number in range(3):
            answer = await front.call(capabilities=declaring(f"{LONG}{number}"))
            assert answer.text == "hi"
        assert [LONG.encode() in each.body for each in upstream.received("initialize")] == [True] * 3
        sessions = front.gateway.upstreams["docs"]._legacy._sessions
        assert not sessions._wanted
        assert all(len(session.key.capabilities) < 100 for session in sessions._pool._sessions)


@pytest.mark.parametrize("name", ["a\x7fb", "a\x01b"])
async def test_a_session_id_that_no_header_can_carry_is_the_servers_fault(name: str) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("initialize")
        async def initialize(wire: Wire) -> None:
            wire.extra_headers["Mcp-Session-Id"] = name
            await wire.result({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}})

        assert (await front.call()).failure[:2] == (502, "nonsense")


async def test_a_flood_that_was_little_when_compressed_lets_others_have_their_turn() -> None:
    """What ends the flood after a moment is a turn of somebody else; without one, it would go on to its end."""
    ping = b'data: {"jsonrpc":"2.0","method":"notifications/x"}\n\n'
    flood = gzip.compress(ping * 40_000)
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call", times=1)
        async def answer(wire: Wire) -> None:
            await wire.reply(200, flood, "text/event-stream", {"Content-Encoding": "gzip"})

        call = asyncio.create_task(front.call())
        await upstream.seen("tools/call")
        turns = 0
        while not call.done():
            turns += 1
            await asyncio.sleep(0)
        assert (await call).failure[1] == "outcome_unknown"
        assert turns > 300
