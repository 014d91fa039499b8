"""Upstreams that are down, slow, broken or beside themselves: what the client is told, and how the gateway recovers.

Whatever happens, the client gets a clear error in time that names the upstream, no call is made twice, and the next
one succeeds as soon as the server does.
"""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.gateway_app import Answer, Front, conversation, gateway_for
from tests.support.scripted import MODERN, Handler, ScriptedUpstream, Wire, error_message

ASKS: dict[str, Any] = {"elicitation": {}}
QUIET: dict[str, Any] = {}
IMPATIENT: dict[str, Any] = {"timeout": "200ms", "connect_timeout": "200ms"}
PROGRESS: dict[str, Any] = {"progressToken": "p-1"}

both_eras = pytest.mark.parametrize("era", ["legacy", "modern"])
both_kinds = pytest.mark.parametrize("capabilities", [QUIET, ASKS], ids=["shared", "exclusive"])


def failure_of(answer: Answer) -> tuple[int, str, bool]:
    """How a request failed, after it was seen that the error names the upstream and nothing else of it."""
    assert answer.error["code"] == -32603
    assert "'docs'" in answer.error["message"]
    assert "127.0.0.1" not in answer.error["message"]
    assert answer.error["data"]["upstream"] == "docs"
    assert set(answer.error["data"]) == {"upstream", "reason", "retryable"}
    return answer.failure


async def recovers(front: Front, upstream: ScriptedUpstream, **more: Any) -> None:
    """The next call succeeds, and is made once."""
    before = len(upstream.received("tools/call"))
    assert (await front.call("hi", **more)).text == "hi"
    assert len(upstream.received("tools/call")) == before + 1


async def reset(wire: Wire) -> None:
    wire.reset()


# --- down ---


@both_eras
@both_kinds
async def test_a_server_that_is_down_cannot_be_reached_and_comes_back(era: Any, capabilities: dict[str, Any]) -> None:
    async with ScriptedUpstream(era=era) as upstream, gateway_for(upstream) as front:
        await upstream.stop()
        for _ in range(2):
            assert failure_of(await front.call(capabilities=capabilities)) == (502, "unreachable", True)
        await upstream.start()
        await recovers(front, upstream, capabilities=capabilities)
        await upstream.stop()
        assert failure_of(await front.call(capabilities=capabilities)) == (502, "unreachable", True)
        await upstream.start()
        upstream.forget()
        await recovers(front, upstream, capabilities=capabilities)


@both_eras
@both_kinds
async def test_a_server_that_restarts_between_calls_is_not_noticed(era: Any, capabilities: dict[str, Any]) -> None:
    async with ScriptedUpstream(era=era) as upstream, gateway_for(upstream) as front:
        runs = []

        @upstream.on("tools/call")
        async def run(wire: Wire) -> None:
            runs.append(wire.request.params["arguments"]["text"])
            await upstream.answer(wire)

        for text in ("a", "b", "c"):
            assert (await front.call(text, capabilities=capabilities)).text == text
            await upstream.stop()
            upstream.forget()
            await upstream.start()
        assert runs == ["a", "b", "c"]


@both_eras
@both_kinds
async def test_a_server_that_restarts_in_the_middle_of_a_call_leaves_its_outcome_unknown(
    era: Any, capabilities: dict[str, Any]
) -> None:
    async with ScriptedUpstream(era=era) as upstream, gateway_for(upstream) as front:
        upstream.on("tools/call", Wire.hang, times=1)
        calling = asyncio.create_task(front.call(capabilities=capabilities))
        await upstream.seen("tools/call")
        await upstream.stop()
        upstream.forget()
        await upstream.start()
        assert failure_of(await calling) == (502, "outcome_unknown", False)
        assert len(upstream.received("tools/call")) == 1
        upstream.log.clear()
        assert (await front.call("hi", capabilities=capabilities)).text == "hi"


@contextmanager
def deaf_port() -> Iterator[str]:
    """The URL of a port on which connecting never ends, since nobody takes the connections that are waiting."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        try:
            for each in waiting:
                each.setblocking(False)
                each.connect_ex(listener.getsockname())
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            for each in waiting:
                each.close()


async def test_a_server_that_takes_no_connection_is_given_up_in_time() -> None:
    with deaf_port() as url:
        async with asyncio.timeout(3), gateway_for(url, **IMPATIENT) as front:
            failed = failure_of(await front.call())
            assert failed in [(502, "unreachable", True), (504, "timeout", True)]


async def test_what_speaks_no_http_is_no_server() -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.7\r\n")
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with gateway_for(f"http://127.0.0.1:{port}/mcp") as front:
            assert failure_of(await front.call())[:2] == (502, "nonsense")


async def test_a_server_without_tls_is_not_spoken_to_in_the_clear() -> None:
    async with (
        ScriptedUpstream() as upstream,
        gateway_for(upstream.url.replace("http:", "https:"), **IMPATIENT) as front,
    ):
        assert failure_of(await front.call())[2]
        assert upstream.log == []


async def test_one_server_that_is_down_is_no_affair_of_the_others() -> None:
    async with (
        ScriptedUpstream() as docs,
        ScriptedUpstream() as git,
        gateway_for(upstreams={"docs": docs, "git": git}) as front,
    ):
        await docs.stop()
        down, up = await asyncio.gather(front.call(path="/mcp/docs"), front.call("hi", path="/mcp/git"))
        assert failure_of(down) == (502, "unreachable", True)
        assert up.text == "hi"


# --- slow ---


async def send_a_head(wire: Wire) -> None:
    await wire.raw(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"jsonrpc":')
    await wire.hang()


async def begin_a_stream(wire: Wire) -> None:
    await wire.sse()
    await wire.hang()


async def begin_an_event(wire: Wire) -> None:
    await wire.sse()
    await wire.text(b'data: {"jsonrpc":')
    await wire.hang()


HANGS: dict[str, Handler] = {
    "before its head": Wire.hang,
    "in its body": send_a_head,
    "in its stream": begin_a_stream,
    "in its event": begin_an_event,
}
hangs = pytest.mark.parametrize("hang", HANGS.values(), ids=HANGS)
some_hangs = pytest.mark.parametrize("hang", [Wire.hang, begin_a_stream], ids=["before its head", "in its stream"])


@both_eras
@some_hangs
async def test_a_probe_and_a_handshake_without_an_end_are_given_up_in_time(era: Any, hang: Handler) -> None:
    async with asyncio.timeout(5), ScriptedUpstream(era=era) as upstream, gateway_for(upstream, **IMPATIENT) as front:
        upstream.gate = hang
        assert failure_of(await front.call()) == (504, "timeout", True)
        assert upstream.methods() == ["server/discover", "initialize"]
        upstream.gate = None
        await recovers(front, upstream)


@some_hangs
async def test_a_probe_without_an_end_keeps_nobody_from_an_old_server(hang: Handler) -> None:
    async with asyncio.timeout(5), ScriptedUpstream() as upstream, gateway_for(upstream, **IMPATIENT) as front:
        upstream.on("server/discover", hang)
        await recovers(front, upstream)
        await recovers(front, upstream)
        assert len(upstream.received("server/discover")) == 1


@hangs
async def test_a_handshake_without_an_end_is_given_up_in_time(hang: Handler) -> None:
    async with asyncio.timeout(5), ScriptedUpstream() as upstream, gateway_for(upstream, **IMPATIENT) as front:
        upstream.on("initialize", hang, times=1)
        assert failure_of(await front.call()) == (504, "timeout", True)
        assert "tools/call" not in upstream.methods()
        await recovers(front, upstream)


@pytest.mark.parametrize("method", ["tools/list", "logging/setLevel", "notifications/initialized"])
@some_hangs
async def test_what_the_gateway_asks_for_itself_holds_a_call_up_for_a_while_only(hang: Handler, method: str) -> None:
    async with asyncio.timeout(5), ScriptedUpstream() as upstream, gateway_for(upstream, **IMPATIENT) as front:
        upstream.capabilities = {"tools": {}, "logging": {}}
        upstream.on("logging/setLevel", lambda wire: wire.result({}))
        upstream.on(method, hang)
        meta = {"io.modelcontextprotocol/logLevel": "info"}
        await recovers(front, upstream, meta=meta)


@pytest.mark.parametrize(
    ("era", "capabilities"),
    [("legacy", QUIET), ("legacy", ASKS), ("modern", QUIET)],
    ids=["shared-legacy", "exclusive-legacy", "modern"],
)
@hangs
async def test_a_call_without_an_end_is_given_up_in_time_and_cancelled(
    hang: Handler, capabilities: dict[str, Any], era: Any
) -> None:
    async with asyncio.timeout(5), ScriptedUpstream(era=era) as upstream, gateway_for(upstream, **IMPATIENT) as front:
        gone = asyncio.Event()

        @upstream.on("tools/call", times=1)
        async def wait(wire: Wire) -> None:
            await hang(wire)
            gone.set()

        assert failure_of(await front.call(capabilities=capabilities)) == (504, "timeout", False)
        await gone.wait()
        if era == "legacy":
            cancelled = await upstream.seen("notifications/cancelled")
            [call] = upstream.received("tools/call")
            assert (cancelled.params["requestId"], cancelled.session) == (call.id, call.session)
        await recovers(front, upstream, capabilities=capabilities)


@both_eras
async def test_a_call_that_falls_silent_after_progress_fails_in_its_stream(era: Any) -> None:
    async with asyncio.timeout(5), ScriptedUpstream(era=era) as upstream, gateway_for(upstream, **IMPATIENT) as front:

        @upstream.on("tools/call", times=1)
        async def fall_silent(wire: Wire) -> None:
            await wire.sse()
            await wire.notify("notifications/progress", {"progressToken": wire.request.progress_token, "progress": 1})
            await wire.hang()

        failed = await front.call(meta=PROGRESS)
        assert failed.is_stream
        assert failure_of(failed) == (200, "timeout", False)
        assert len(failed.notifications) == 1
        await recovers(front, upstream)


@both_eras
async def test_progress_keeps_a_call_alive_but_not_for_ever(era: Any) -> None:
    options: dict[str, Any] = {"timeout": "100ms", "max_duration": "300ms"}
    async with asyncio.timeout(5), ScriptedUpstream(era=era) as upstream, gateway_for(upstream, **options) as front:

        @upstream.on("tools/call", times=1)
        async def go_on_for_ever(wire: Wire) -> None:
            await wire.sse()
            progress = 0
            while not wire.gone.is_set():
                progress += 1
                params = {"progressToken": wire.request.progress_token, "progress": progress}
                await wire.notify("notifications/progress", params)
                await asyncio.sleep(0.02)  # the server's own pace

        failed = await front.call(meta=PROGRESS)
        assert failure_of(failed) == (200, "timeout", False)
        assert len(failed.notifications) > 5
        await recovers(front, upstream)


@both_eras
@both_kinds
async def test_a_server_that_falls_silent_altogether_is_given_up_in_time_every_time(
    capabilities: dict[str, Any], era: Any
) -> None:
    async with asyncio.timeout(8), ScriptedUpstream(era=era) as upstream, gateway_for(upstream, **IMPATIENT) as front:
        await recovers(front, upstream, capabilities=capabilities)
        upstream.gate = lambda wire: wire.reply(200) if wire.request.verb == "DELETE" else wire.hang()
        for _ in range(2):
            assert failure_of(await front.call(capabilities=capabilities))[:2] == (504, "timeout")
        assert len(upstream.received("tools/call")) <= 3
        upstream.gate = None
        await recovers(front, upstream, capabilities=capabilities)


async def test_a_slow_server_fails_only_those_who_waited_for_it() -> None:
    async with asyncio.timeout(5), ScriptedUpstream() as upstream, gateway_for(upstream, timeout="200ms") as front:
        await front.call()
        upstream.on("tools/call", Wire.hang, times=1)
        slow = asyncio.create_task(front.call("slow"))
        await upstream.seen("tools/call", 2)
        assert [answer.text for answer in await front.calls(["a", "b"])] == ["a", "b"]
        assert failure_of(await slow) == (504, "timeout", False)
        assert len(upstream.received("initialize")) == 1


# --- connections that break ---


@both_eras
async def test_a_connection_that_breaks_at_first_contact_is_an_error_and_no_verdict(era: Any) -> None:
    async with ScriptedUpstream(era=era) as upstream, gateway_for(upstream) as front:
        upstream.gate = reset
        status, _reason, retryable = failure_of(await front.call())
        assert (status, retryable) == (502, True)
        assert "tools/call" not in upstream.methods()
        upstream.gate = None
        await recovers(front, upstream)


@both_kinds
async def test_a_handshake_whose_connection_breaks_means_that_nothing_was_called(capabilities: dict[str, Any]) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.on("initialize", reset, times=1)
        assert failure_of(await front.call(capabilities=capabilities)) == (502, "unreachable", True)
        assert "tools/call" not in upstream.methods()
        await recovers(front, upstream, capabilities=capabilities)


@both_kinds
@pytest.mark.parametrize("method", ["tools/list", "logging/setLevel", "notifications/initialized", "GET"])
async def test_what_the_gateway_asks_for_itself_may_break(method: str, capabilities: dict[str, Any]) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.capabilities = {"tools": {}, "logging": {}}
        upstream.on("logging/setLevel", lambda wire: wire.result({}))
        upstream.on(method, reset, times=1)
        meta = {"io.modelcontextprotocol/logLevel": "info"}
        await recovers(front, upstream, capabilities=capabilities, meta=meta)


# --- nonsense ---

NONSENSE: dict[str, Handler] = {
    "a page": lambda wire: wire.reply(200, b"<!doctype html><title>Sign in</title>", "text/html"),
    "a page of a proxy": lambda wire: wire.reply(502, b"<html>Bad Gateway</html>", "text/html"),
    "a page that says it is json": lambda wire: wire.reply(200, b"<html>", "application/json"),
    "text": lambda wire: wire.reply(200, b"OK", "text/plain"),
    "nothing": lambda wire: wire.reply(200),
    "nothing that says it is json": lambda wire: wire.reply(200, b"", "application/json"),
    "202": lambda wire: wire.reply(202),
    "204": lambda wire: wire.reply(204),
    "500 with nothing": lambda wire: wire.reply(500),
    "418 with json of its own": lambda wire: wire.message({"error": "teapot"}, status=418),
    "half of a message": lambda wire: wire.reply(200, b'{"jsonrpc":"2.0","id":1,"resu', "application/json"),
    "a list": lambda wire: wire.message([]),
    "a word": lambda wire: wire.message("hello"),
    "null": lambda wire: wire.message(None),
    "no message": lambda wire: wire.message({"hello": "world"}),
    "a request": lambda wire: wire.message({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage"}),
    "no utf-8": lambda wire: wire.reply(200, b'{"jsonrpc":"2.0","id":1,"result":{"a":"\xff"}}', "application/json"),
    "a redirect elsewhere": lambda wire: wire.reply(302, headers={"Location": "https://login.example.com/"}),
    "an encoding nobody asked for": lambda wire: wire.reply(
        200, b"x", "application/json", {"Content-Encoding": "zstd"}
    ),
    "what is not gzip": lambda wire: wire.reply(200, b"{}", "application/json", {"Content-Encoding": "gzip"}),
}


@both_eras
@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE)
async def test_nonsense_in_answer_to_a_call_is_an_error_and_the_call_is_not_repeated(
    nonsense: Handler, era: Any
) -> None:
    async with ScriptedUpstream(era=era) as upstream, gateway_for(upstream) as front:
        await recovers(front, upstream)
        upstream.on("tools/call", nonsense, times=1)
        status, reason, _retryable = failure_of(await front.call())
        assert (status, reason) in [(502, "nonsense"), (502, "outcome_unknown")]
        assert len(upstream.received("tools/call")) == 2
        upstream.on("tools/list", nonsense, times=1)
        assert failure_of(await front.ask("tools/list"))[0] == 502
        await recovers(front, upstream)


@both_kinds
@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE)
async def test_nonsense_in_a_handshake_is_an_error_before_any_call(
    nonsense: Handler, capabilities: dict[str, Any]
) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.on("initialize", nonsense, times=1)
        status, reason, retryable = failure_of(await front.call(capabilities=capabilities))
        assert (status, retryable) == (502, True)
        assert reason in ("nonsense", "unreachable")
        assert "tools/call" not in upstream.methods()
        await recovers(front, upstream, capabilities=capabilities)


@both_eras
@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE)
async def test_nonsense_in_answer_to_everything_is_forgotten_when_it_ends(nonsense: Handler, era: Any) -> None:
    async with ScriptedUpstream(era=era) as upstream, gateway_for(upstream) as front:
        upstream.gate = nonsense
        assert failure_of(await front.call())[0] == 502
        assert "tools/call" not in upstream.methods()
        upstream.gate = None
        await recovers(front, upstream)


async def result_for_another(wire: Wire) -> None:
    await wire.message({"jsonrpc": "2.0", "id": 4711, "result": {"content": []}})


async def error_for_another(wire: Wire) -> None:
    await wire.message(error_message(4711, -32603))


async def stream_for_another(wire: Wire) -> None:
    await wire.sse()
    await wire.event({"jsonrpc": "2.0", "id": 4711, "result": {"content": []}})
    await wire.event(error_message(4712, -32603))
    await wire.end()


@both_eras
@both_kinds
@pytest.mark.parametrize("answer", [result_for_another, error_for_another, stream_for_another])
async def test_an_answer_to_another_request_is_none(answer: Handler, capabilities: dict[str, Any], era: Any) -> None:
    async with ScriptedUpstream(era=era) as upstream, gateway_for(upstream) as front:
        upstream.on("tools/call", answer, times=1)
        status, reason, retryable = failure_of(await front.call(capabilities=capabilities))
        assert (status, retryable) == (502, False)
        assert reason in ("nonsense", "outcome_unknown")
        assert len(upstream.received("tools/call")) == 1
        await recovers(front, upstream, capabilities=capabilities)


@both_eras
@pytest.mark.parametrize("result", [None, 5, "text", [], True])
async def test_a_result_that_is_no_object_is_nonsense(result: Any, era: Any) -> None:
    async with ScriptedUpstream(era=era) as upstream, gateway_for(upstream) as front:
        upstream.on("tools/call", lambda wire: wire.result(result), times=1)
        assert failure_of(await front.call()) == (502, "nonsense", False)
        await recovers(front, upstream)


@both_eras
@pytest.mark.parametrize("error", [None, 5, "text", [], {}, {"code": "x"}, {"code": 1.5, "message": 7}])
async def test_an_error_of_any_shape_reaches_the_client_as_one_that_it_can_read(error: Any, era: Any) -> None:
    async with ScriptedUpstream(era=era) as upstream, gateway_for(upstream) as front:
        upstream.on(
            "tools/call",
            lambda wire: wire.message({"jsonrpc": "2.0", "id": wire.request.id, "error": error}),
            times=1,
        )
        assert (await front.call()).error["code"] == -32603
        await recovers(front, upstream)


@both_eras
@pytest.mark.parametrize("event", [b"data: <html>\n\n", b"data: {\n\n", b"data: \xff\n\n"])
async def test_an_event_that_is_no_json_is_nonsense(event: bytes, era: Any) -> None:
    async with ScriptedUpstream(era=era) as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call", times=1)
        async def stream(wire: Wire) -> None:
            await wire.sse()
            await wire.text(event)
            await wire.end(result={"content": []})

        assert failure_of(await front.call()) == (502, "nonsense", False)
        await recovers(front, upstream)


# --- overload ---


@both_eras
@pytest.mark.parametrize("status", [429, 503])
async def test_an_overloaded_server_is_left_alone_for_as_long_as_it_says(status: int, era: Any) -> None:
    async with ScriptedUpstream(era=era) as upstream, gateway_for(upstream) as front:
        await recovers(front, upstream)
        upstream.on("tools/call", lambda wire: wire.reply(status, headers={"Retry-After": "9"}), times=1)
        full = await front.call()
        assert failure_of(full) == (503, "full", True)
        assert full.headers["retry-after"] == "9"
        assert len(upstream.received("tools/call")) == 2
        await recovers(front, upstream)


@both_eras
@pytest.mark.parametrize("status", [408, 504])
async def test_a_proxy_that_gave_up_waiting_is_a_timeout(status: int, era: Any) -> None:
    async with ScriptedUpstream(era=era) as upstream, gateway_for(upstream) as front:
        upstream.on("tools/call", lambda wire: wire.reply(status, b"<html>", "text/html"), times=1)
        assert failure_of(await front.call()) == (504, "timeout", False)
        assert len(upstream.received("tools/call")) == 1
        await recovers(front, upstream)


# --- a server of another era than yesterday ---


async def only_modern(wire: Wire) -> None:
    """Refuse whatever is not of 2026-07-28, as such a server does."""
    if wire.request.headers.get("mcp-protocol-version") != MODERN:
        await wire.error(-32022, data={"supported": [MODERN], "requested": "2025-11-25"}, status=400)


@both_kinds
async def test_a_server_that_was_upgraded_is_found_out_without_a_restart(capabilities: dict[str, Any]) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        await recovers(front, upstream, capabilities=capabilities)
        upstream.era, upstream.gate = "modern", only_modern
        assert failure_of(await front.call(capabilities=capabilities)) == (502, "nonsense", True)
        await recovers(front, upstream, capabilities=capabilities)
        assert upstream.log[-1].headers["mcp-protocol-version"] == MODERN


@both_kinds
async def test_a_server_that_was_rolled_back_is_found_out_without_a_restart(capabilities: dict[str, Any]) -> None:
    async with ScriptedUpstream(era="modern") as upstream, gateway_for(upstream) as front:
        await recovers(front, upstream, capabilities=capabilities)
        upstream.era = "legacy"
        assert failure_of(await front.call(capabilities=capabilities))[:2] == (502, "nonsense")
        await recovers(front, upstream, capabilities=capabilities)
        assert "initialize" in conversation(upstream)
