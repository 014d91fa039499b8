"""Servers of the 2024-11-05 transport, configured or found."""

import asyncio
from typing import Any

import pytest

from tests.support.gateway_app import Front, gateway_for
from tests.support.messages import good_meta
from tests.support.scripted import ScriptedUpstream, Wire
from tests.support.sse_server import SseServer
from tests.support.stream_client import listening

ASKS = {"elicitation": {"form": {}}}
MESSAGES = "/messages?session_id=1"


async def tell_progress(front: Front) -> list[Any]:
    reply = await front.call("x", tool="report", meta={"progressToken": "p", **good_meta(logLevel="info")})
    assert reply.text == "reported"
    return [message["params"].get("data", message["params"].get("progress")) for message in reply.notifications]


# --- the transport ---


async def test_a_server_of_the_oldest_transport_is_served() -> None:
    async with SseServer() as server, gateway_for(server, transport="sse") as front:
        assert [tool["name"] for tool in (await front.ask("tools/list")).result["tools"]] == ["echo"]
        assert (await front.call("hi")).text == "hi"
        assert [(seen.verb, seen.path, seen.method) for seen in server.log[:4]] == [
            ("GET", "/sse", "GET"),
            ("POST", MESSAGES, "initialize"),
            ("POST", MESSAGES, "notifications/initialized"),
            ("POST", MESSAGES, "tools/list"),
        ]
        assert front.gateway.upstreams["docs"].era == "legacy"
        assert len(server.streams) == 1
    assert server.streams == {}


async def test_calls_side_by_side_get_their_own_answers() -> None:
    async with SseServer() as server, gateway_for(server, transport="sse") as front:
        texts = [str(number) for number in range(20)]
        calls = [asyncio.create_task(front.call(text, tool="hold")) for text in texts]
        await server.seen("tools/call", 20)
        await front.call("sync")
        await server.release()
        assert [reply.text for reply in await asyncio.gather(*calls)] == texts
        assert len(server.streams) == 1


async def test_a_question_becomes_a_round() -> None:
    async with SseServer() as server, gateway_for(server, transport="sse") as front:
        asked = (await front.call("x", tool="ask", capabilities=ASKS)).result
        [name] = asked["inputRequests"]
        answer = {"action": "accept", "content": {"name": "Ada"}}
        params = {
            "name": "ask",
            "arguments": {"text": "x"},
            "inputResponses": {name: answer},
            "requestState": asked["requestState"],
        }
        done = await front.ask("tools/call", params, capabilities=ASKS)
        assert done.text == "Ada"
        assert server.methods().count("tools/call") == 1


async def test_progress_and_log_come_before_the_result() -> None:
    async with SseServer() as server, gateway_for(server, transport="sse") as front:
        assert await tell_progress(front) == [1, "log"]


async def test_a_change_reaches_those_who_listen() -> None:
    async with SseServer() as server, gateway_for(server, transport="sse") as front, listening(front) as stream:
        for each in server.streams.values():
            await server.say(each, {"method": "notifications/tools/list_changed"})
        assert (await stream.message())["method"] == "notifications/tools/list_changed"


async def test_configured_headers_go_with_everything_and_those_of_other_transports_with_nothing() -> None:
    async with SseServer() as server, gateway_for(server, transport="sse", headers={"X-Team": "blue"}) as front:
        await front.call("hi")
        assert {seen.headers["x-team"] for seen in server.log} == {"blue"}
        assert not [seen for seen in server.log if {"mcp-session-id", "mcp-protocol-version"} & seen.headers.keys()]


async def test_the_callers_own_credential_goes_with_everything_of_his() -> None:
    async with SseServer() as server, gateway_for(server, transport="sse", auth={"type": "passthrough"}) as front:
        for name in ("alice", "bob"):
            assert (await front.call(name, headers={"Authorization": f"Bearer {name}"})).text == name
        calls = {seen.path: seen.headers["authorization"] for seen in server.received("tools/call")}
        assert sorted(calls.values()) == ["Bearer alice", "Bearer bob"]
        assert [seen.headers["authorization"] for seen in server.received("GET")] == ["Bearer alice", "Bearer bob"]


@pytest.mark.parametrize(
    "framing",
    [
        lambda data: b"data:" + data + b"\r\n\r\n",
        lambda data: b"event:message\rdata: " + data + b"\r\r",
        lambda data: b": x\n\nid: 1\nretry: 5\nevent: message\ndata: " + data + b"\n\nevent: other\ndata: {}\n\n",
    ],
)
async def test_events_may_be_framed_in_any_way(framing: Any) -> None:
    async with SseServer() as server, gateway_for(server, transport="sse") as front:
        server.framing = framing
        assert (await front.call("hi")).text == "hi"
        assert await tell_progress(front) == [1, "log"]


async def test_an_answer_may_come_before_the_post_is_accepted() -> None:
    may_accept = asyncio.Event()
    async with SseServer() as server, gateway_for(server, transport="sse") as front:

        async def accept_late(wire: Wire) -> None:
            stream = next(iter(server.streams.values()))
            if wire.request.method == "tools/call":
                await server._take(stream, wire.request.message)
                await may_accept.wait()
            await wire.reply(202)

        server.accept = accept_late
        assert (await front.call("hi")).text == "hi"
        may_accept.set()


async def test_an_answer_may_come_in_the_reply_to_the_post() -> None:
    async with SseServer() as server, gateway_for(server, transport="sse") as front:

        async def answer(wire: Wire) -> None:
            if wire.request.method != "tools/list":
                await wire.reply(202)
                return
            await wire.result({"tools": []})

        server.accept = answer
        assert (await front.ask("tools/list")).result["tools"] == []


# --- where messages go ---


@pytest.mark.parametrize(
    ("endpoint", "path"),
    [
        ("/messages?session_id={id}", MESSAGES),
        ("messages?session_id={id}", MESSAGES),
        ("?session_id={id}", "/sse?session_id=1"),
        ("http://127.0.0.1:{port}/messages?session_id={id}", MESSAGES),
        ("//127.0.0.1:{port}/messages?session_id={id}#x", MESSAGES),
    ],
)
async def test_the_endpoint_is_relative_to_the_url(endpoint: str, path: str) -> None:
    async with SseServer() as server, gateway_for(server, transport="sse") as front:
        server.endpoint = endpoint.replace("{port}", str(server.port))
        await front.call("hi")
        assert server.log[1].path == path


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("http://other.test/messages", "wants messages on another origin, where its credentials must not go"),
        ("https://127.0.0.1/messages", "wants messages on another origin, where its credentials must not go"),
        ("http://127.0.0.1:1/messages", "wants messages on another origin, where its credentials must not go"),
        ("http://[", "names an endpoint for messages that is no URL"),
        ("file:///etc/passwd", "names an endpoint for messages that is no URL"),
    ],
)
async def test_messages_go_nowhere_else(endpoint: str, said: str) -> None:
    async with SseServer(endpoint) as server, gateway_for(server, transport="sse") as front:
        reply = await front.call("hi")
        assert reply.failure == (502, "nonsense", True)
        assert reply.error["message"] == f"Upstream 'docs' {said}"
        assert server.methods() == ["GET"]
        await server.seen("GET")
        assert (await front.http.get(front.url + "/healthz")).status_code == 200


# --- what breaks ---


async def test_a_call_whose_stream_breaks_fails_at_once_and_the_next_one_has_another() -> None:
    async with SseServer() as server, gateway_for(server, transport="sse") as front:
        held = asyncio.create_task(front.call("x", tool="hold"))
        await server.seen("tools/call")
        server.cut()
        assert (await held).failure == (502, "outcome_unknown", False)
        assert (await front.call("hi")).text == "hi"
        assert len(server.received("GET")) == 2


async def test_a_stream_that_breaks_while_it_is_idle_is_not_noticed_by_clients() -> None:
    async with SseServer() as server, gateway_for(server, transport="sse") as front:
        await front.call("hi")
        server.cut()
        assert (await front.call("hi")).text == "hi"


async def test_a_session_that_the_server_forgot_is_replaced() -> None:
    async with SseServer() as server, gateway_for(server, transport="sse") as front:
        await front.call("hi")
        server.streams.clear()
        assert (await front.call("hi")).text == "hi"
        assert len(server.received("initialize")) == 2


async def test_a_post_that_is_refused_fails_its_call_and_no_other() -> None:
    async with SseServer() as server, gateway_for(server, transport="sse") as front:
        await front.call("hi")
        server.accept = lambda wire: wire.reply(500)
        assert (await front.call("hi")).failure == (502, "nonsense", False)
        server.accept = lambda wire: wire.reply(202)
        assert (await front.call("hi")).text == "hi"
        assert len(server.received("initialize")) == 1


async def test_a_message_over_the_limit_ends_the_session_and_says_why() -> None:
    async with SseServer() as server, gateway_for(server, transport="sse", max_message_bytes="10KB") as front:
        assert (await front.call("x" * 20_000)).failure == (502, "too_large", False)
        assert (await front.call("hi")).text == "hi"


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (401, (502, "unauthorized", False)),
        (503, (503, "full", True)),
        (404, (502, "nonsense", True)),
        (500, (502, "nonsense", True)),
    ],
)
async def test_a_stream_that_is_refused_is_no_server(status: int, failure: tuple[int, str, bool]) -> None:
    async with SseServer() as server, gateway_for(server, transport="sse") as front:
        server.gate = lambda wire: wire.reply(status)
        assert (await front.call("hi")).failure == failure


async def test_a_stream_that_is_no_stream_or_names_no_endpoint_is_no_server() -> None:
    async with SseServer() as server, gateway_for(server, transport="sse", connect_timeout="100ms") as front:

        async def silent(wire: Wire) -> None:
            await wire.sse()
            await wire.hang()

        async def early(wire: Wire) -> None:
            await wire.sse()
            await wire.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            await wire.hang()

        for gate in (silent, early, lambda wire: wire.reply(200, b"<html>", "text/html")):
            server.gate = gate
            reply = await front.call("hi")
            assert reply.status in (502, 504)
            assert reply.error["data"]["retryable"]


# --- found, not configured ---


async def test_the_older_transport_is_found_when_initialize_is_not_taken() -> None:
    async with SseServer() as server, gateway_for(server) as front:
        assert (await front.call("hi")).text == "hi"
        assert (await front.call("hi", capabilities=ASKS)).text == "hi"
        assert [(seen.verb, seen.path, seen.method) for seen in server.log[:5]] == [
            ("POST", "/sse", "server/discover"),
            ("POST", "/sse", "initialize"),
            ("GET", "/sse", "GET"),
            ("POST", MESSAGES, "initialize"),
            ("POST", MESSAGES, "notifications/initialized"),
        ]
        assert [seen.path for seen in server.received("initialize")] == ["/sse", MESSAGES, "/messages?session_id=2"]
    assert server.streams == {}


@pytest.mark.parametrize("status", [400, 404, 405])
async def test_a_server_of_neither_transport_is_said_to_be_none(status: int) -> None:
    async with ScriptedUpstream() as server, gateway_for(server) as front:
        server.on("initialize", lambda wire: wire.reply(status))
        reply = await front.call("hi")
        assert reply.failure == (502, "nonsense", True)
        assert f"HTTP {status}" in reply.error["message"]
        assert server.methods() == ["server/discover", "initialize", "GET"]


async def test_a_stream_that_says_nothing_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.upstream.either_http.LOOK_S", 0.05)
    async with ScriptedUpstream() as server, gateway_for(server, connect_timeout="500ms") as front:
        gone = asyncio.Event()

        async def silent(wire: Wire) -> None:
            if wire.request.verb == "GET":
                await wire.sse()
                await wire.hang()
                gone.set()

        server.gate = silent
        server.on("initialize", lambda wire: wire.reply(400))
        assert (await front.call("hi")).failure == (502, "nonsense", True)
        await asyncio.wait_for(gone.wait(), 5)


async def test_a_server_that_is_replaced_by_a_newer_one_is_found_again() -> None:
    async with SseServer() as server, gateway_for(server) as front:
        assert (await front.call("hi")).text == "hi"
        port = server.port
        await server.stop()
        newer = ScriptedUpstream(path="/sse")
        await newer.start(port)
        assert (await front.call("hi")).text == "hi"
        assert newer.sessions
        await newer.stop()
        await server.start(port)
        assert (await front.call("hi")).text == "hi"
        assert server.received("tools/call")


async def test_a_server_that_is_said_to_be_of_the_newer_transport_is_not_looked_at_for_the_older() -> None:
    async with SseServer() as server, gateway_for(server, transport="streamable-http") as front:
        assert (await front.call("hi")).failure == (502, "nonsense", True)
        assert "GET" not in server.methods()
