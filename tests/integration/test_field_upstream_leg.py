"""The way to servers: compression, credentials, time, hosts, and how they acknowledge what they are told."""

import asyncio
import gzip
import json
from collections.abc import Mapping
from typing import Any, Literal

import pytest

from tests.support.api_keys import keys
from tests.support.gateway_app import gateway_for
from tests.support.messages import HeaderChange, good_request
from tests.support.raw_http import connect
from tests.support.scripted import Handler, ScriptedUpstream, Wire

Era = Literal["legacy", "modern"]
eras = pytest.mark.parametrize("era", ["legacy", "modern"])
ASKS: dict[str, Any] = {"elicitation": {"form": {}}}
QUIET: dict[str, Any] = {}
TEXT = {"content": [{"type": "text", "text": "done"}]}
CALL = {"name": "echo", "arguments": {"text": "hi"}}
CANCELLED = "notifications/cancelled"
JSON = "application/json"


# --- compression ---


@eras
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "identity"])
@pytest.mark.parametrize("wanted", ["br, zstd, gzip", None])
async def test_a_compressed_answer_is_read_and_passed_on_as_what_it_is(
    era: Era, encoding: str, wanted: str | None
) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call")
        async def compressed(wire: Wire) -> None:
            await wire.result(upstream._in_era(TEXT), encoding=encoding)

        headers: dict[str, HeaderChange] = {"Accept-Encoding": wanted}
        async with connect(front.url) as connection:
            await connection.send("POST", "/mcp", *good_request("tools/call", CALL, headers=headers))
            answer = await connection.read()
        assert answer.message["result"]["content"] == TEXT["content"]
        assert "content-encoding" not in answer.headers
        assert int(answer.headers["content-length"]) == len(answer.body)
        assert {request.headers["accept-encoding"] for request in upstream.log} == {"gzip, deflate, br"}


@eras
@pytest.mark.parametrize("encoding", ["gzip", "br"])
async def test_what_a_compressed_stream_says_arrives_when_it_is_said(era: Era, encoding: str) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front, connect(front.url) as connection:
        was_read = [asyncio.Event(), asyncio.Event()]

        @upstream.on("tools/call")
        async def stream(wire: Wire) -> None:
            await wire.sse(encoding=encoding)
            for number, event in enumerate(was_read):
                params = {"progressToken": wire.request.progress_token, "progress": number}
                await wire.notify("notifications/progress", params)
                await event.wait()
            await wire.end(result=upstream._in_era(TEXT))

        await connection.send("POST", "/mcp", *good_request("tools/call", CALL, meta={"progressToken": "t"}))
        assert "content-encoding" not in (await connection.read_head()).headers
        for number, event in enumerate(was_read):
            assert f'"progress":{number}'.encode() in await connection.read_chunk()
            event.set()
        assert b'"done"' in await connection.read_chunk()


@eras
async def test_an_answer_that_nobody_can_decode_is_an_error_at_once(era: Era) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:
        headers = {"Content-Encoding": "zstd"}
        upstream.on("tools/call", lambda wire: wire.reply(200, b"(\xb5/\xfd", JSON, headers), times=1)
        assert (await front.call()).failure == (502, "nonsense", False)
        assert (await front.call("next")).text == "next"


@eras
async def test_an_answer_that_is_small_only_until_it_is_decoded_is_too_large(era: Era) -> None:
    bomb = gzip.compress(b"0" * 50_000_000)
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream, max_message_bytes="1MiB") as front:
        headers = {"Content-Encoding": "gzip"}
        upstream.on("tools/call", lambda wire: wire.reply(200, bomb, JSON, headers), times=1)
        answer = await front.call()
        assert answer.failure == (502, "too_large", False)
        assert "1048576" in answer.error["message"]
        assert (await front.call("next")).text == "next"


# --- credentials ---

PASSTHROUGH: dict[str, Any] = {"auth": {"type": "passthrough"}}
METADATA = "https://u.test/.well-known/oauth-protected-resource/mcp"
EXPIRED = f'Bearer error="invalid_token", resource_metadata="{METADATA}"'
TOO_LITTLE = 'Bearer error="insufficient_scope", scope="a b"'


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


class Guard:
    """Checks the bearer token of every request.

    Attributes:
        good: the tokens that are good now.
    """

    def __init__(self, upstream: ScriptedUpstream, *good: str) -> None:
        self.good = {f"Bearer {token}" for token in good}
        self.upstream = upstream
        upstream.gate = self.check

    async def check(self, wire: Wire) -> None:
        if wire.request.headers.get("authorization") not in self.good:
            await wire.reply(401, headers={"WWW-Authenticate": EXPIRED})
        elif wire.request.params.get("name") == "admin":
            await wire.reply(403, headers={"WWW-Authenticate": TOO_LITTLE})


@eras
@pytest.mark.parametrize("capabilities", [QUIET, ASKS], ids=["quiet", "asks"])
async def test_a_callers_token_is_used_at_once_and_what_the_server_says_of_it_reaches_the_caller(
    era: Era, capabilities: Mapping[str, Any]
) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream, **PASSTHROUGH) as front:
        upstream.offer_get()
        guard = Guard(upstream, "t1")
        more: dict[str, Any] = {"capabilities": capabilities}
        assert (await front.call("one", headers=bearer("t1"), **more)).text == "one"
        guard.good = {"Bearer t2"}
        expired = await front.call("two", headers=bearer("t1"), **more)
        assert (expired.status, expired.headers["www-authenticate"]) == (401, EXPIRED)
        assert (await front.call("two", headers=bearer("t2"), **more)).text == "two"
        small = await front.call("three", headers=bearer("t2"), tool="admin", **more)
        assert (small.status, small.headers["www-authenticate"]) == (403, TOO_LITTLE)
        nobody = await front.call("four", **more)
        assert (nobody.status, nobody.headers["www-authenticate"]) == (401, EXPIRED)
        again = await front.call("five", headers=bearer("t2"), **more)
        assert again.text == "five"
    calls = [call.params["arguments"]["text"] for call in upstream.received("tools/call")]
    assert {text: calls.count(text) for text in calls if text != "four"} == {"one": 1, "two": 2, "three": 1, "five": 1}
    assert len(upstream.received("initialize")) <= 6


@pytest.mark.parametrize("capabilities", [QUIET, ASKS], ids=["quiet", "asks"])
async def test_every_request_of_a_session_carries_the_token_of_its_caller(capabilities: Mapping[str, Any]) -> None:
    async with ScriptedUpstream() as upstream:
        upstream.offer_get()
        Guard(upstream, "t1", "t2")
        async with gateway_for(upstream, **PASSTHROUGH) as front:
            for token in ("t1", "t2", "t1"):
                await front.call(token, headers=bearer(token), capabilities=capabilities)
            await upstream.seen("GET", 2)
        await upstream.seen("DELETE", 2)
        owners: dict[str | None, set[str]] = {}
        for request in upstream.log:
            if request.session is not None:
                owners.setdefault(request.session, set()).add(request.headers["authorization"])
        assert sorted(map(list, owners.values())) == [["Bearer t1"], ["Bearer t2"]]
        assert {"tools/call", "GET", "DELETE", "notifications/initialized"} <= set(upstream.methods())


@eras
@pytest.mark.parametrize("size", [9 * 1024, 60 * 1024])
async def test_a_long_token_arrives_whole(era: Era, size: int) -> None:
    token = "x" * size
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream, **PASSTHROUGH) as front:
        Guard(upstream, token)
        assert (await front.call("hi", headers=bearer(token))).text == "hi"


@eras
async def test_a_refusal_after_the_stream_began_comes_as_an_event(era: Era) -> None:
    settings = {"server": {"stream_after": "1ms", "keepalive": "5ms"}}
    async with (
        ScriptedUpstream(era) as upstream,
        gateway_for(upstream, settings=settings, **PASSTHROUGH) as front,
        connect(front.url) as connection,
    ):
        may_answer = asyncio.Event()

        @upstream.on("tools/call")
        async def refuse(wire: Wire) -> None:
            await may_answer.wait()
            await wire.reply(401, headers={"WWW-Authenticate": EXPIRED})

        await connection.send("POST", "/mcp", *good_request("tools/call", CALL, headers=dict(bearer("t1"))))
        head = await connection.read_head()
        assert (head.status, head.headers["content-type"]) == (200, "text/event-stream")
        assert await connection.read_chunk() == b": keep-alive\n\n"
        may_answer.set()
        while (chunk := await connection.read_chunk()).startswith(b":"):
            pass
        assert json.loads(chunk.removeprefix(b"data: "))["error"]["code"] == -32600


@eras
@pytest.mark.parametrize("token", ["of-a-client", None])
async def test_the_gateways_own_credential_is_its_own_affair(era: Era, token: str | None) -> None:
    async with (
        ScriptedUpstream(era) as upstream,
        ScriptedUpstream(era) as other,
        gateway_for(upstreams={"other": other}) as elsewhere,
        gateway_for(upstream, headers=bearer("gw-secret")) as front,
    ):
        guard = Guard(upstream, "gw-secret")
        headers = {} if token is None else bearer(token)
        answers = [await front.call("one", headers=headers)]
        assert answers[0].text == "one"
        guard.good = set()
        answers.append(await front.call("two", headers=headers))
        assert answers[1].failure == (502, "unauthorized", False)
        guard.good = {"Bearer gw-secret"}
        answers.append(await front.call("three", tool="admin", headers=headers))
        assert answers[2].failure == (502, "unauthorized", False)
        answers.append(await front.call("four", headers=headers))
        assert answers[3].text == "four"
        await elsewhere.call("one", headers=headers)
        assert {request.headers.get("authorization") for request in upstream.log} == {"Bearer gw-secret"}
        assert {request.headers.get("authorization") for request in other.log} == {None}
        for answer in answers:
            assert "www-authenticate" not in answer.headers
            assert b"gw-secret" not in answer.body
            assert b"of-a-client" not in answer.body
        assert "gw-secret" not in repr(front.log)


@eras
async def test_two_upstreams_get_each_its_own_credential(era: Era) -> None:
    settings = keys(alice="key-a")
    async with ScriptedUpstream(era) as a, ScriptedUpstream(era) as b:
        upstreams: dict[str, Any] = {"a": a, "b": b}
        async with gateway_for(upstreams=upstreams, settings=settings, **PASSTHROUGH) as front:
            for name in ("a", "b"):
                headers = {"X-API-Key": "key-a", **bearer(f"of-{name}")}
                assert (await front.call(name, path=f"/mcp/{name}", headers=headers)).text == name
                await front.call(name, path=f"/mcp/{name}", headers=bearer("key-a"))
        for name, upstream in upstreams.items():
            sent = {request.headers.get("authorization") for request in upstream.log}
            assert sent == {f"Bearer of-{name}", None}
            assert "x-api-key" not in {header for request in upstream.log for header in request.headers}


# --- time ---

QUICK = {"server": {"stream_after": "1ms", "keepalive": "5ms"}}


async def hang(wire: Wire) -> None:
    await wire.hang()


async def hang_on_a_stream(wire: Wire) -> None:
    await wire.sse()
    await wire.hang()


async def trickle(wire: Wire) -> None:
    await wire.sse()
    while not wire.gone.is_set():
        await wire.text(b":")
        await asyncio.sleep(0.01)


async def trickle_json(wire: Wire) -> None:
    await wire.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n\r\n{")
    while not wire.gone.is_set():
        await wire.raw(b" ")
        await asyncio.sleep(0.01)
    wire.close()


SILENT: dict[str, Handler] = {
    "no headers": hang,
    "a stream without events": hang_on_a_stream,
    "a stream of single bytes": trickle,
    "json byte by byte": trickle_json,
}


@eras
@pytest.mark.parametrize("begins", ["stream", "nothing"])
async def test_a_long_silence_is_broken_for_the_client_with_comments(era: Era, begins: str) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream, settings=QUICK) as front:
        may_answer = asyncio.Event()

        @upstream.on("tools/call")
        async def answer_late(wire: Wire) -> None:
            if begins == "stream":
                await wire.sse()
            await may_answer.wait()
            if begins == "stream":
                await wire.end(result=upstream._in_era(TEXT))
            else:
                await wire.result(upstream._in_era(TEXT))

        async with connect(front.url) as connection:
            await connection.send("POST", "/mcp", *good_request("tools/call", CALL))
            head = await connection.read_head()
            assert (head.status, head.headers["content-type"]) == (200, "text/event-stream")
            assert head.headers["x-accel-buffering"] == "no"
            for _ in range(3):
                assert await connection.read_chunk() == b": keep-alive\n\n"
            may_answer.set()
            while (chunk := await connection.read_chunk()).startswith(b":"):
                pass
            assert json.loads(chunk.removeprefix(b"data: "))["result"]["content"] == TEXT["content"]


@eras
@pytest.mark.parametrize("silent", SILENT.values(), ids=SILENT)
async def test_a_server_that_says_nothing_is_given_up_and_served_again(era: Era, silent: Handler) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream, timeout="150ms") as front:
        await front.call("warm")
        upstream.on("tools/call", silent, times=1)
        answer = await front.call("hi")
        assert answer.failure == (504, "timeout", False)
        assert answer.error["code"] == -32603
        if era == "legacy":
            call = upstream.received("tools/call")[1]
            assert (await upstream.seen(CANCELLED)).params["requestId"] == call.id
        assert (await front.call("next")).text == "next"


@eras
async def test_a_timeout_after_the_stream_began_comes_as_an_event(era: Era) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream, settings=QUICK, timeout="150ms") as front:
        upstream.on("tools/call", hang, times=1)
        answer = await front.call("hi")
        assert (answer.status, answer.is_stream, answer.error["data"]["reason"]) == (200, True, "timeout")


@eras
async def test_progress_keeps_a_call_alive_and_there_is_an_end_all_the_same(era: Era) -> None:
    async with (
        ScriptedUpstream(era) as upstream,
        gateway_for(upstream, timeout="400ms", max_duration="800ms") as front,
    ):

        @upstream.on("tools/call")
        async def go_on(wire: Wire) -> None:
            await wire.sse()
            progress = 0
            while not wire.gone.is_set():
                progress += 1
                params = {"progressToken": wire.request.progress_token, "progress": progress}
                await wire.notify("notifications/progress", params)
                await asyncio.sleep(0.02)

        answer = await front.call("hi", meta={"progressToken": "t"})
        assert answer.error["data"]["reason"] == "timeout"
        assert "0.8 s" in answer.error["message"]
        assert len(answer.notifications) > 1


@pytest.mark.parametrize("step", ["server/discover", "initialize"])
async def test_a_slow_handshake_has_its_own_limit_and_keeps_nobody_else_waiting(step: str) -> None:
    async with ScriptedUpstream() as slow, ScriptedUpstream() as quick:
        slow.on(step, hang)
        upstreams: dict[str, Any] = {"slow": slow, "quick": quick}
        async with gateway_for(upstreams=upstreams, connect_timeout="200ms", timeout="5s") as front:
            waiting = asyncio.create_task(front.call("hi", path="/mcp/slow"))
            await slow.seen(step)
            assert (await front.call("hi", path="/mcp/quick")).text == "hi"
            answer = await waiting
            if step == "initialize":
                assert answer.failure == (504, "timeout", True)
            else:
                assert answer.text == "hi"  # who does not answer the question for the era may be old


# --- hosts and hops ---

HOPS = {
    "Host": "gw.public.test",
    "Origin": "https://app.test",
    "Cookie": "a=b",
    "Connection": "keep-alive, X-Hop",
    "X-Hop": "1",
    "X-Forwarded-For": "10.0.0.1",
    "X-Forwarded-Host": "evil.test",
    "Forwarded": "for=10.0.0.1",
    "Via": "1.1 proxy",
    "Referer": "https://app.test/",
    "TE": "trailers",
    "X-Own": "2",
}
ALLOWED = {
    *("host", "user-agent", "accept", "accept-encoding", "content-type", "content-length"),
    *("mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name", "x-team"),
}


@eras
async def test_a_server_sees_its_own_host_and_nothing_of_the_way_to_the_gateway(era: Era) -> None:
    door = {"server": {"allowed_hosts": ["gw.public.test"], "allowed_origins": ["https://app.test"]}}
    async with (
        ScriptedUpstream(era) as upstream,
        gateway_for(upstream, settings=door, headers={"X-Team": "blue"}) as front,
        connect(front.url) as connection,
    ):
        upstream.offer_get()
        headers: dict[str, HeaderChange] = {**HOPS}
        await connection.send("POST", "/mcp", *good_request("tools/call", CALL, headers=headers))
        assert (await connection.read()).status == 200
        await front.call(capabilities=ASKS)
        for request in upstream.log:
            assert request.headers["host"] == f"127.0.0.1:{upstream.port}"
            assert set(request.headers) <= ALLOWED, request
            assert request.headers["x-team"] == "blue"
            assert request.headers["user-agent"].startswith("era-gateway/")


# --- how servers acknowledge ---

REFUSED = ("404", "400", "500")
ACKNOWLEDGEMENTS: dict[str, Handler] = {
    "202 with nothing": lambda wire: wire.reply(202),
    "202 with text": lambda wire: wire.reply(202, b"Accepted", "text/plain"),
    "200 with nothing": lambda wire: wire.reply(200),
    "200 with null": lambda wire: wire.reply(200, b"null", JSON),
    "200 with an object": lambda wire: wire.reply(200, b"{}", JSON),
    "204": lambda wire: wire.raw(b"HTTP/1.1 204 X\r\n\r\n"),
    "200 with an empty stream": lambda wire: wire.reply(200, b"", "text/event-stream"),
    "200 with an error": lambda wire: wire.error(-32600, id=None),
    "404": lambda wire: wire.error(-32601, status=404, id=None),
    "400": lambda wire: wire.reply(400),
    "500": lambda wire: wire.reply(500, b"oops", "text/plain"),
    "200 in no chunks": lambda wire: wire.raw(b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "200 in a page": lambda wire: wire.reply(200, b"<html>", "text/html"),
}


@pytest.mark.parametrize("said", ACKNOWLEDGEMENTS)
async def test_a_call_is_made_whatever_the_server_says_to_initialized(said: str) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.on("notifications/initialized", ACKNOWLEDGEMENTS[said])
        for text in ("hi", "again"):
            assert (await front.call(text)).text == text
        assert len(upstream.received("initialize")) == 1
        assert len(upstream.received("notifications/initialized")) == 1
        faults = [line["fault"] for line in front.log if line["event"] == "initialized was not acknowledged"]
        assert faults == ([f"HTTP {said}"] if said in REFUSED else [])


@pytest.mark.parametrize("said", ACKNOWLEDGEMENTS)
async def test_an_answer_to_a_question_arrives_unless_the_server_refuses_it(said: str) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call", times=1)
        async def ask(wire: Wire) -> None:
            await wire.sse()
            form = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
            asked = asyncio.create_task(upstream.ask(wire, "elicitation/create", form, id=0))
            gone = asyncio.create_task(wire.gone.wait())
            await asyncio.wait([asked, gone], return_when=asyncio.FIRST_COMPLETED)
            gone.cancel()
            if asked.done():
                await wire.end(result={"content": [{"type": "text", "text": asked.result()["result"]["action"]}]})
            asked.cancel()

        @upstream.on("response")
        async def take(wire: Wire) -> None:
            if said not in REFUSED:
                upstream._take_answer(wire.request)
            await ACKNOWLEDGEMENTS[said](wire)

        first = (await front.call(capabilities=ASKS)).result
        [key] = first["inputRequests"]
        retry = {**CALL, "inputResponses": {key: {"action": "decline"}}, "requestState": first["requestState"]}
        answer = await front.ask("tools/call", retry, capabilities=ASKS)
        if said in REFUSED:
            assert (answer.status, answer.error["data"]["retryable"]) == (502, False)
        else:
            assert answer.text == "decline"
        assert (await front.call("next", capabilities=ASKS)).text == "next"


MEDIA_TYPES = [
    "application/json; charset=utf-8",
    "Application/JSON",
    "application/json;charset=UTF-8",
    "text/plain",
    "application/octet-stream",
    None,
]


@eras
@pytest.mark.parametrize("media_type", MEDIA_TYPES)
async def test_an_answer_is_read_whatever_it_is_called(era: Era, media_type: str | None) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:

        async def answer(wire: Wire) -> None:
            message = {"jsonrpc": "2.0", "id": wire.request.id, "result": upstream._in_era(TEXT)}
            await wire.reply(200, json.dumps(message).encode(), media_type)

        upstream.on("tools/call", answer)
        answer_ = await front.call()
        assert (answer_.text, answer_.headers["content-type"]) == ("done", JSON)


@eras
async def test_a_page_is_no_answer_and_nothing_of_it_is_passed_on(era: Era) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:
        upstream.on("tools/call", lambda wire: wire.reply(200, b"<html>login please</html>", "text/html"), times=1)
        answer = await front.call()
        assert answer.failure == (502, "nonsense", False)
        assert b"login" not in answer.body
        assert (await front.call("next")).text == "next"


@eras
async def test_every_request_says_exactly_what_it_is_and_what_it_takes(era: Era) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:

        async def be_strict(wire: Wire) -> None:
            if wire.request.verb == "POST" and wire.request.headers.get("content-type") != JSON:
                await wire.reply(415)
            elif wire.request.headers.get("accept") not in (f"{JSON}, text/event-stream", "text/event-stream"):
                await wire.reply(406)

        upstream.gate = be_strict
        headers = {"Content-Type": "application/json; charset=utf-8", "Accept": "*/*"}
        assert (await front.call("hi", headers=headers)).text == "hi"
        assert not {415, 406} & {line.get("status") for line in front.log}


# --- header values ---


@eras
async def test_no_byte_in_a_credential_or_a_parameter_is_more_than_a_refusal(era: Era) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream, **PASSTHROUGH) as front:
        await front.call("warm")
        for byte in (*range(33), 34, 44, 58, 61, 92, 127, 128, 160, 255):
            value = b"a" + bytes([byte]) + b"b"
            for name in ("Authorization", "Mcp-Param-X", "Mcp-Param-" + chr(byte)):
                headers, body = good_request("tools/call", CALL, headers={name: value})
                async with connect(front.url) as connection:
                    await connection.send("POST", "/mcp", headers, body)
                    answer = await connection.read()
                assert answer.status in (200, 400), (byte, name, answer)


async def test_a_credential_that_comes_twice_is_nobodys() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, **PASSTHROUGH) as front:
        headers: dict[str, HeaderChange] = {"Authorization": ["Bearer t1", "Bearer t2"]}
        async with connect(front.url) as connection:
            await connection.send("POST", "/mcp", *good_request("tools/call", CALL, headers=headers))
            assert (await connection.read()).status == 200
        assert {request.headers.get("authorization") for request in upstream.log} == {None}
