"""What a call leaves behind: nothing large that would have to wait for the garbage collector."""

import gc
from typing import Any

import pytest

from gateway.wire.jsonrpc import WORTH_KEEPING, Sourced, Spliced
from tests.support.gateway_app import gateway_for
from tests.support.scripted import ScriptedUpstream, Wire

ASKING: dict[str, Any] = {"elicitation": {"form": {}}}


@pytest.mark.parametrize("capabilities", [{}, ASKING], ids=["shared session", "session of its own"])
@pytest.mark.parametrize("kind", ["json", "sse"])
async def test_a_large_result_is_let_go_of_with_its_call(capabilities: dict[str, Any], kind: str) -> None:
    async def large(wire: Wire) -> None:
        if kind == "sse":
            await wire.sse()
        await wire.result({"content": [{"type": "text", "text": "x" * WORTH_KEEPING}]})

    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.on("tools/call", large)
        await front.call(capabilities=capabilities)
        gc.collect()
        gc.disable()
        try:
            for _ in range(5):
                await front.call(capabilities=capabilities)
            assert sum(type(found) in (Sourced, Spliced) for found in gc.get_objects()) <= 1
        finally:
            gc.enable()
