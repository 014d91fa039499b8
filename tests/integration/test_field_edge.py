"""The front door as clients in the field knock: encoded names, odd but good requests, browsers."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Literal

import httpx
import pytest

from tests.support.api_keys import keys
from tests.support.gateway_app import Front, gateway_for
from tests.support.messages import PREFIX, VERSION, HeaderChange, good_headers, good_meta, good_request
from tests.support.raw_http import RawAnswer, connect, head
from tests.support.scripted import ScriptedUpstream, Wire

Era = Literal["legacy", "modern"]
eras = pytest.mark.parametrize("era", ["legacy", "modern"])
OFFERED: dict[str, Any] = {"tools": {}, "prompts": {}, "resources": {}, "completions": {}}
FIRST_CALL = ["initialize", "notifications/initialized", "tools/call"]


async def send(front: Front, headers: Any, body: bytes, path: str = "/mcp", verb: str = "POST") -> RawAnswer:
    """Send a request as it is, on a connection of its own."""
    async with connect(front.url) as connection:
        await connection.send(verb, path, headers, body)
        return await connection.read()


async def call_with(front: Front, headers: Mapping[str, HeaderChange], **more: Any) -> RawAnswer:
    """A good call, with these headers changed."""
    return await send(
        front, *good_request("tools/call", {"name": "echo", "arguments": {"text": "hi"}}, headers=headers, **more)
    )


def encoded(text: str) -> str:
    return f"=?base64?{b64encode(text.encode()).decode()}?="


# --- names in headers ---

NAMES: dict[str, tuple[str, str]] = {
    "chinese": ("天气", "=?base64?5aSp5rCU?="),
    "a space inside": ("note add", "note add"),
    "a slash": ("a/b", "a/b"),
    "a space in front": (" lead", "=?base64?IGxlYWQ=?="),
    "what looks encoded": ("=?base64?aGk=?=", "=?base64?PT9iYXNlNjQ/YUdrPT89?="),
    "encoded without need": ("get", "=?base64?Z2V0?="),
    "half a marker": ("=?base64?aGk=", "=?base64?aGk="),
    "a tab and a newline": ("a\tb\n", encoded("a\tb\n")),
    "commas": ("a,b, c", "a,b, c"),
    "an emoji": ("🌦", encoded("🌦")),
    "long": ("n" * 4000, "n" * 4000),
}


@eras
@pytest.mark.parametrize(("name", "header"), NAMES.values(), ids=NAMES)
@pytest.mark.parametrize("spelling", ["Mcp-Name", "mcp-name", "MCP-NAME"])
async def test_a_name_reaches_the_server_as_it_is_however_its_header_writes_it(
    era: Era, name: str, header: str, spelling: str
) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:
        upstream.on("tools/call", lambda wire: wire.result(upstream._in_era({"content": []})))
        headers, body = good_request("tools/call", {"name": name}, headers={"Mcp-Name": None, spelling: header})
        answer = await send(front, headers, body)
        assert answer.status == 200, answer.message
        [received] = upstream.received("tools/call")
        assert received.params["name"] == name
        if era == "modern":
            assert received.headers["mcp-name"] in (header, encoded(name), name)


@pytest.mark.parametrize(
    ("method", "member", "value"),
    [
        ("resources/read", "uri", "file:///dát/ž.txt"),
        ("resources/read", "uri", "note://=?base64?aGk=?="),
        ("prompts/get", "name", "grüße"),
    ],
)
async def test_targets_of_other_methods_are_encoded_likewise(method: str, member: str, value: str) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.capabilities = OFFERED
        upstream.on(method, lambda wire: wire.result({"contents": [], "messages": []}))
        answer = await send(front, *good_request(method, {member: value}, headers={"Mcp-Name": encoded(value)}))
        assert answer.status == 200, answer.message
        assert upstream.received(method)[0].params[member] == value


async def test_no_byte_in_a_header_is_more_than_a_mismatch() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        before = len(upstream.log)
        for byte in range(256):
            value = b"ec" + bytes([byte]) + b"ho"
            for header in (value, b"=?base64?" + value + b"?="):
                headers, body = good_request("tools/call", {"name": "echo"}, headers={"Mcp-Name": header})
                async with connect(front.url) as connection:
                    await connection.send("POST", "/mcp", headers, body)
                    answer = await connection.read()
                assert answer.status == 400, (byte, answer)
        assert len(upstream.log) == before


# --- odd requests that are good ---

GOOD_HEADERS: dict[str, dict[str, HeaderChange]] = {
    "a charset": {"Content-Type": "application/json; charset=utf-8"},
    "a media type in capitals": {"Content-Type": "Application/JSON"},
    "any answer": {"Accept": "*/*"},
    "weights": {"Accept": "text/event-stream;q=0.5, application/json;q=0.9, */*;q=0"},
    "several accepts": {"Accept": ["application/json", "text/event-stream"]},
    "a stray session": {"Mcp-Session-Id": "junk"},
    "a stray event id": {"Last-Event-ID": "7"},
    "spaces around": {"Mcp-Method": "  tools/call\t", "MCP-Protocol-Version": f" {VERSION} "},
    "no client's user agent": {"User-Agent": None},
    "encodings": {"Accept-Encoding": "br, zstd, gzip"},
    "unknown parameters": {"Mcp-Param-Nobody-Asked": "x", "Mcp-Param-": "y"},
    "cookies": {"Cookie": "a=b; Mcp-Session-Id=c"},
}


@pytest.mark.parametrize("changes", GOOD_HEADERS.values(), ids=GOOD_HEADERS)
async def test_odd_headers_are_no_fault_and_nothing_of_them_comes_back(changes: dict[str, HeaderChange]) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        answer = await call_with(front, changes)
        assert (answer.status, answer.message["result"]["content"][0]["text"]) == (200, "hi")
        assert set(answer.headers) == {"content-type", "content-length"}
        assert "junk" not in {request.session for request in upstream.log}


@pytest.mark.parametrize("method", ["tools/list", "server/discover", "completion/complete"])
async def test_a_name_header_that_nothing_asks_for_is_nobodys_business(method: str) -> None:
    params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.capabilities = OFFERED
        upstream.on("completion/complete", lambda wire: wire.result({"completion": {"values": []}}))
        headers, body = good_request(method, params if method == "completion/complete" else {})
        assert (await send(front, [*headers, (b"Mcp-Name", b"stray")], body)).status == 200


async def test_a_client_need_not_say_who_it_is() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        headers, body = good_request("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
        info = b'"io.modelcontextprotocol/clientInfo": {"name": "test-client", "version": "1.0"}'
        assert info in body
        answer = await send(front, headers, body.replace(b", " + info, b""))
        assert answer.status == 200


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/docs", "/mcp/docs/", "/mcp?x=1"])
async def test_an_endpoint_is_found_with_and_without_a_slash(path: str) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        assert (await send(front, *good_request("tools/list"), path=path)).status == 200


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_body_may_come_in_chunks_and_with_a_byte_order_mark(size: int) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        headers, body = good_request("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
        body = b"\xef\xbb\xbf" + body
        async with connect(front.url) as connection:
            await connection.send("POST", "/mcp", [*headers, (b"Transfer-Encoding", b"chunked")])
            for start in range(0, len(body), size):
                piece = body[start : start + size]
                await connection.send_bytes(b"%x\r\n%b\r\n" % (len(piece), piece))
            await connection.send_bytes(b"0\r\n\r\n")
            assert (await connection.read()).message["result"]["content"][0]["text"] == "hi"


async def test_who_wants_leave_to_send_a_body_gets_it() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front, connect(front.url) as connection:
        headers, body = good_request("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
        length = (b"Content-Length", str(len(body)).encode())
        await connection.send("POST", "/mcp", [*headers, (b"Expect", b"100-continue"), length])
        assert (await connection.read()).status == 100
        await connection.send_bytes(body)
        assert (await connection.read()).message["result"]["content"][0]["text"] == "hi"


async def test_requests_that_follow_at_once_are_answered_in_order() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front, connect(front.url) as connection:
        for number in range(5):
            headers, body = good_request("tools/call", {"name": "echo", "arguments": {"text": "x"}}, request_id=number)
            await connection.send("POST", "/mcp", headers, body)
        assert [(await connection.read()).message["id"] for _ in range(5)] == list(range(5))


async def test_one_bad_probe_does_not_block_a_client() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front, connect(front.url) as connection:
        for change in ({"Mcp-Method": "Tools/Call"}, {"MCP-Protocol-Version": "1999-01-01"}, {"Accept": "text/html"}):
            headers, body = good_request("tools/call", {"name": "echo", "arguments": {"text": "hi"}}, headers=change)
            await connection.send("POST", "/mcp", headers, body)
            assert (await connection.read()).status in (400, 406)
        headers, body = good_request("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
        await connection.send("POST", "/mcp", headers, body)
        assert (await connection.read()).status == 200
        assert [method for method in upstream.methods() if method in FIRST_CALL] == FIRST_CALL


@eras
async def test_an_old_client_is_told_what_is_spoken_here_and_nothing_goes_further(era: Era) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
        body = (
            b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":%b}'
            % httpx.Request("POST", "http://x", json=params).content
        )
        headers = good_headers("initialize", {}, {"MCP-Protocol-Version": None, "Mcp-Method": None})
        answer = await send(front, headers, body)
        assert (answer.status, answer.message["id"], answer.message["error"]["code"]) == (400, 0, -32022)
        data = answer.message["error"]["data"]
        assert data == {"supported": [VERSION], "requested": "2025-11-25"}
        assert VERSION in answer.message["error"]["message"]
        assert upstream.log == []


# --- browsers ---

APP = "https://app.test"
ASKED = "authorization,content-type,mcp-protocol-version,mcp-method,mcp-name,mcp-param-region,traceparent"
PREFLIGHT = {
    "Origin": APP,
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": ASKED,
}
WITH_KEYS = {"server": {"allowed_origins": [APP]}, **keys(alice="key-a")}
KEY = {"Authorization": "Bearer key-a"}


def raw(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


def assert_readable(answer: RawAnswer, origin: str = APP) -> None:
    """Whether a page of an origin gets to see an answer."""
    assert answer.headers["access-control-allow-origin"] == origin
    exposed = answer.headers["access-control-expose-headers"].lower()
    assert "www-authenticate" in exposed
    assert "retry-after" in exposed
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers


async def test_a_page_may_ask_before_it_calls_without_a_key() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, settings=WITH_KEYS) as front:
        answer = await send(front, raw(PREFLIGHT), b"", verb="OPTIONS")
        assert (answer.status, answer.body) == (204, b"")
        assert answer.headers["access-control-allow-methods"] == "POST"
        allowed = answer.headers["access-control-allow-headers"].lower().split(", ")
        assert set(allowed) >= set(ASKED.split(","))
        assert_readable(answer)
        assert upstream.log == []


SPOILED: dict[str, tuple[int, dict[str, HeaderChange]]] = {
    "good": (200, {}),
    "no key": (401, {"Authorization": None}),
    "another key": (401, {"Authorization": "Bearer key-b"}),
    "another method": (400, {"Mcp-Method": "tools/list"}),
    "no json": (415, {"Content-Type": "text/plain"}),
    "no stream accepted": (406, {"Accept": "application/json"}),
    "too much": (413, {"Content-Length": "99999999"}),
}


@pytest.mark.parametrize(("status", "changes"), SPOILED.values(), ids=SPOILED)
async def test_a_page_can_read_every_answer_refusals_included(status: int, changes: dict[str, HeaderChange]) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, settings=WITH_KEYS) as front:
        answer = await call_with(front, {"Origin": APP, **KEY, **changes})
        assert answer.status == status
        assert_readable(answer)


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_a_page_can_read_that_a_verb_is_not_served(verb: str) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, settings=WITH_KEYS) as front:
        answer = await send(front, raw({"Origin": APP}), b"", verb=verb)
        assert (answer.status, answer.headers["allow"]) == (405, "POST")
        assert_readable(answer)


async def test_a_page_can_read_a_notifications_answer_a_failure_and_a_stream() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, settings=WITH_KEYS) as front:

        @upstream.on("tools/call", times=1)
        async def stream(wire: Wire) -> None:
            params = {"progressToken": wire.request.progress_token, "progress": 1}
            await wire.sse()
            await wire.notify("notifications/progress", params)
            await wire.end(result={"content": []})

        streamed = await call_with(front, {"Origin": APP, **KEY}, meta={"progressToken": 1})
        assert streamed.headers["content-type"] == "text/event-stream"
        assert streamed.headers["x-accel-buffering"] == "no"
        upstream.on("tools/call", lambda wire: wire.reply(500))
        headers = good_headers("notifications/x", {}, {"Origin": APP, **KEY})
        noted = await send(front, headers, b'{"jsonrpc":"2.0","method":"notifications/x"}')
        failed = await call_with(front, {"Origin": APP, **KEY})
        for answer in (streamed, noted, failed):
            assert_readable(answer)
        assert (noted.status, failed.status) == (202, 502)


@pytest.mark.parametrize("origin", ["https://evil.test", "null", "https://app.test.evil.test", "http://app.test"])
@pytest.mark.parametrize("verb", ["POST", "OPTIONS", "GET"])
async def test_a_page_of_another_origin_gets_nothing(origin: str, verb: str) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, settings=WITH_KEYS) as front:
        headers, body = good_request(headers={**PREFLIGHT, **KEY, "Origin": origin})
        answer = await send(front, headers, body if verb == "POST" else b"", verb=verb)
        assert answer.status == (405 if verb == "GET" else 403)
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert upstream.log == []


@pytest.mark.parametrize(
    ("allowed", "origin"),
    [
        ("null", "null"),
        ("https://app.test", "HTTPS://APP.TEST"),
        ("https://app.test:8443", "https://app.test:8443"),
        ("https://other.test", "http://localhost:3000"),
        ("https://other.test", "http://127.0.0.1"),
        ("https://other.test", "http://[::1]:5173"),
    ],
)
async def test_a_page_of_an_allowed_or_local_origin_is_served(allowed: str, origin: str) -> None:
    settings = {"server": {"allowed_origins": [allowed]}}
    async with ScriptedUpstream() as upstream, gateway_for(upstream, settings=settings) as front:
        answer = await call_with(front, {"Origin": origin})
        assert answer.status == 200
        assert_readable(answer, origin)


async def test_without_an_origin_there_is_nothing_about_origins() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, settings=WITH_KEYS) as front:
        answer = await call_with(front, KEY)
        assert answer.status == 200
        assert set(answer.headers) == {"content-type", "content-length"}


# --- what is in a request ---


async def test_a_text_that_is_no_unicode_is_refused_where_it_stands_for_something() -> None:
    """A lone surrogate is JSON and no text: nothing on the way may break on it, the log included."""
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        meta = httpx.Request("POST", "http://x", json=good_meta()).content.decode()
        for body in (
            rf'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"a\ud800","_meta":{meta}}}}}',
            rf'{{"jsonrpc":"2.0","id":1,"method":"tools/\udfff","params":{{"_meta":{meta}}}}}',
            rf'{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"_meta":{{"a\ud800":1,{meta[1:]}}}}}',
        ):
            headers = good_headers("tools/call", {"name": "a"})
            answer = await send(front, headers, body.encode())
            assert answer.status == 400, body
            assert answer.message["id"] == 1
        assert upstream.log == []


async def test_an_id_that_is_no_unicode_comes_back_as_it_came() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        headers, body = good_request("tools/list", request_id="@")
        answer = await send(front, headers, body.replace(b'"@"', rb'"\ud83d"'))
        assert answer.status == 200
        assert rb'"id":"\ud83d"' in answer.body


async def test_vendor_keys_and_trace_keys_of_the_metadata_reach_the_server_and_the_protocols_own_do_not() -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    sent = {"com.ex/k": [1], "traceparent": trace, "tracestate": "a=1", "baggage": "k=v", f"{PREFIX}logLevel": "error"}
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        await front.call(meta=sent)
        kept = upstream.received("tools/call")[0].params["_meta"]
        own = {key: value for key, value in kept.items() if key != "progressToken"}
        assert own == {"com.ex/k": [1], "traceparent": trace, "tracestate": "a=1", "baggage": "k=v"}


# --- connections ---

UPGRADES: dict[str, dict[str, HeaderChange]] = {
    "to http/2, as Java's client always offers": {
        "Connection": "Upgrade, HTTP2-Settings",
        "Upgrade": "h2c",
        "HTTP2-Settings": "AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
    },
    "to a websocket": {"Connection": "upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x"},
    "to tls": {"Connection": "Upgrade", "Upgrade": "TLS/1.2, HTTP/1.1"},
}


@pytest.mark.parametrize("upgrade", UPGRADES.values(), ids=UPGRADES)
@pytest.mark.parametrize("pause", ["none", "before the body", "in the body", "in the offer", "after every byte"])
async def test_an_offer_to_speak_another_protocol_is_passed_over(upgrade: dict[str, HeaderChange], pause: str) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front, connect(front.url) as connection:
        for text in ("first", "second"):
            headers, body = good_request("tools/call", {"name": "echo", "arguments": {"text": text}}, headers=upgrade)
            sent = head("POST", "/mcp", headers, host=front.url.removeprefix("http://"), length=len(body)) + body
            for piece in cut(sent, len(body), pause):
                await connection.send_bytes(piece)
                await front.http.get(f"{front.url}/healthz")  # what was sent has arrived by now
            answer = await connection.read()
            assert answer.message["result"]["content"][0]["text"] == text
        assert not [line for line in front.log if line["log_level"] == "warning"]


def cut(sent: bytes, body_size: int, pause: str) -> list[bytes]:
    """The pieces that a request is sent in."""
    if pause == "after every byte":
        start = sent.index(b"Upgrade:") - 5
        return [sent[:start], *(sent[at : at + 1] for at in range(start, start + 20)), sent[start + 20 :]]
    at = {
        "none": len(sent),
        "before the body": len(sent) - body_size,
        "in the body": len(sent) - 9,
        "in the offer": sent.index(b"Upgrade:") + 3,
    }[pause]
    return [piece for piece in (sent[:at], sent[at:]) if piece]


async def test_a_head_may_come_byte_by_byte() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front, connect(front.url) as connection:
        headers, body = good_request("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
        for byte in head("POST", "/mcp", headers, host=front.url.removeprefix("http://"), length=len(body)) + body:
            await connection.send_bytes(bytes([byte]))
        assert (await connection.read()).message["result"]["content"][0]["text"] == "hi"


@pytest.mark.parametrize("part", [b"X-Pad: %b\r\n", b"X-Pad-%b: 1\r\n", b"%b"])
async def test_a_head_without_end_is_cut_off(part: bytes) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front, connect(front.url) as connection:
        await connection.send_bytes(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n")
        try:
            for number in range(4000):
                await connection.send_bytes(part % (b"x" * 100 + str(number).encode()))
            answer = await connection.read()
        except ConnectionError:
            return
        assert answer.status == 431
        assert await connection.is_closed()


async def test_a_long_head_is_served() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        assert (await call_with(front, {"Cookie": "x" * 100_000})).status == 200


@pytest.mark.parametrize("verb", ["CONNECT", "TRACE", "HEAD", "PRI", "FOO"])
async def test_an_odd_verb_is_refused_as_such(verb: str) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front, connect(front.url) as connection:
        await connection.send(verb, "/mcp", [])
        assert (await connection.read_head()).status in (400, 405)
        assert upstream.log == []
