"""Messages that nest deeply: whatever their depth, they pass or are refused, and nothing breaks."""

import json
from typing import Any, Literal

import pytest

from tests.support.gateway_app import gateway_for
from tests.support.messages import PREFIX, good_headers
from tests.support.scripted import ScriptedUpstream, Wire

Era = Literal["legacy", "modern"]
eras = pytest.mark.parametrize("era", ["legacy", "modern"])
JSON = "application/json"
OBJECT = {"type": "object"}


@eras
@pytest.mark.parametrize("levels", [100, 300, 500, 900, 985, 1000, 1020, 1030, 20_000])
async def test_a_result_of_any_depth_passes_or_is_an_error_and_breaks_nothing(era: Era, levels: int) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call", times=1)
        async def answer(wire: Wire) -> None:
            result = json.dumps(upstream._in_era({"content": []}))[:-1]
            head = json.dumps({"jsonrpc": "2.0", "id": wire.request.id})[:-1]
            nested = "[" * levels + "]" * levels
            await wire.reply(200, f'{head},"result":{result},"deep":{nested}}}}}'.encode(), JSON)

        answer_ = await front.call()
        assert answer_.status == (200 if levels <= 500 else answer_.status)
        assert answer_.status == 200 or answer_.failure == (502, "nonsense", False)
        assert (await front.call("next")).text == "next"


@eras
@pytest.mark.parametrize("levels", [300, 950, 1000, 20_000])
async def test_a_notification_of_any_depth_passes_or_is_dropped(era: Era, levels: int) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call")
        async def answer(wire: Wire) -> None:
            nested = "[" * levels + "]" * levels
            message = (
                f'{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"error","data":{nested}}}}}'
            )
            await wire.sse()
            await wire.text(f"data: {message}\n\n".encode())
            await wire.end(result=upstream._in_era({"content": []}))

        answer_ = await front.call(meta={f"{PREFIX}logLevel": "debug"})
        assert "result" in answer_.response or answer_.failure == (502, "nonsense", False)


@eras
@pytest.mark.parametrize("levels", [300, 500, 900, *range(950, 1000, 5), 1020, 20_000])
@pytest.mark.parametrize("state", ["", ',"requestState":"gAAAAA"'], ids=["fresh", "retry"])
async def test_a_request_of_any_depth_is_served_or_refused(era: Era, levels: int, state: str) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:
        upstream.on("tools/call", lambda wire: wire.result(upstream._in_era({"content": []})))
        nested = "[" * levels + "]" * levels
        meta = json.dumps({f"{PREFIX}protocolVersion": "2026-07-28", f"{PREFIX}clientCapabilities": {}})
        params = f'{{"name":"echo","arguments":{{"deep":{nested}}}{state},"_meta":{meta}}}'
        body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}'.encode()
        headers = good_headers("tools/call", {"name": "echo"})
        reply = await front.http.post(f"{front.url}/mcp", content=body, headers=headers)
        assert reply.status_code in ((400,) if state else (200, 400)), reply.content
        if reply.status_code == 200:
            assert nested.encode() in upstream.received("tools/call")[0].body
        else:
            assert levels > 500 or state


@eras
@pytest.mark.parametrize("levels", [300, 500, *range(950, 1000, 3)])
async def test_capabilities_of_any_depth_are_taken_or_refused(era: Era, levels: int) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:
        upstream.on("tools/call", lambda wire: wire.result(upstream._in_era({"content": []})))
        nested = '{"a":' * levels + "{}" + "}" * levels
        declared = f'{{"experimental":{{"x":{nested}}}}}'
        meta = f'{{"{PREFIX}protocolVersion":"2026-07-28","{PREFIX}clientCapabilities":{declared}}}'
        body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","_meta":{meta}}}}}'.encode()
        headers = good_headers("tools/call", {"name": "echo"})
        reply = await front.http.post(f"{front.url}/mcp", content=body, headers=headers)
        assert reply.status_code == (200 if levels <= 500 else 400), reply.content


@pytest.mark.parametrize("levels", [300, 500, 900, *range(940, 990, 3)])
async def test_a_call_of_any_depth_may_be_asked_about(levels: int) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call")
        async def ask(wire: Wire) -> None:
            await wire.sse()
            await upstream.ask(wire, "elicitation/create", {"message": "?", "requestedSchema": OBJECT}, id="e-1")
            await wire.end(result={"content": []})

        nested = "[" * levels + "]" * levels
        capabilities = {f"{PREFIX}clientCapabilities": {"elicitation": {}}, f"{PREFIX}protocolVersion": "2026-07-28"}
        about = f'"arguments":{{"deep":{nested}}},"_meta":{json.dumps(capabilities)}'
        headers = good_headers("tools/call", {"name": "echo"})

        async def send(more: str = "") -> Any:
            body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo"{more},{about}}}}}'
            reply = await front.http.post(f"{front.url}/mcp", content=body.encode(), headers=headers)
            assert reply.status_code in (200, 400), reply.content
            return json.loads(reply.content)

        first = await send()
        if "result" in first:
            answers = json.dumps({key: {"action": "cancel"} for key in first["result"]["inputRequests"]})
            state = first["result"]["requestState"]
            assert (await send(f',"requestState":"{state}","inputResponses":{answers}'))["result"]["content"] == []
