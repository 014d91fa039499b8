"""gateway.upstream.http: one request to a server on a real socket, and its answer."""

import asyncio
import gzip
import json
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from gateway.errors import UpstreamError
from gateway.upstream import dialling
from gateway.upstream.http import Reply, UpstreamHttp
from tests.support.scripted import ScriptedUpstream, Wire

LIMIT = 100_000
JSON = b'{"jsonrpc":"2.0","id":1,"result":{}}'


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with ScriptedUpstream(era="modern") as scripted:
        yield scripted


@pytest.fixture
async def http(upstream: ScriptedUpstream) -> AsyncIterator[UpstreamHttp]:
    client = client_of(upstream.url)
    yield client
    await client.close()


def client_of(url: str, **headers: str) -> UpstreamHttp:
    return UpstreamHttp("docs", url, headers=headers, connect_timeout_s=5, max_message_bytes=LIMIT)


def body(method: str = "x", params: Any = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}).encode()


async def read(reply: Reply) -> bytes:
    data = await reply.read_message_bytes()
    reply.close()
    return data


async def all_events(reply: Reply) -> list[bytes]:
    data = [event.data async for event in reply.events()]
    reply.close()
    return data


# --- headers ---


async def test_only_allowed_headers_are_sent(upstream: ScriptedUpstream) -> None:
    http = client_of(
        upstream.url, **{"X-Team": "blue", "accept": "x/y", "Connection": "upgrade", "Expect": "100-continue"}
    )
    (await http.post(body(), {"Mcp-Session-Id": "s1", "Authorization": "Bearer t"})).close()
    await http.close()
    sent = {name: value for name, value in upstream.log[0].headers.items() if name != "content-length"}
    assert sent == {
        "host": f"127.0.0.1:{upstream.port}",
        "user-agent": "era-gateway/0.1.0",
        "accept-encoding": "gzip, deflate, br",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "x-team": "blue",
        "mcp-session-id": "s1",
        "authorization": "Bearer t",
    }


async def test_a_credential_of_the_call_wins_over_a_configured_one(upstream: ScriptedUpstream) -> None:
    http = client_of(upstream.url, authorization="Bearer configured")
    (await http.post(body(), {"Authorization": "Bearer own"})).close()
    await http.close()
    assert [value for name, value in upstream.log[0].raw_headers if name.lower() == "authorization"] == ["Bearer own"]


async def test_a_credential_of_nine_kilobytes_arrives_whole(upstream: ScriptedUpstream, http: UpstreamHttp) -> None:
    token = "Bearer " + "x" * 9216
    (await http.post(body(), {"Authorization": token})).close()
    assert upstream.log[0].headers["authorization"] == token


async def test_cookies_are_not_kept(upstream: ScriptedUpstream, http: UpstreamHttp) -> None:
    upstream.on("x", lambda wire: wire.result({}, headers={"Set-Cookie": "a=b; Path=/"}))
    await read(await http.post(body(), {}))
    await read(await http.post(body(), {}))
    assert "cookie" not in upstream.log[1].headers


async def test_a_body_of_megabytes_arrives_whole(upstream: ScriptedUpstream, http: UpstreamHttp) -> None:
    sent = body(params={"text": "x" * 3_000_000})
    await read(await http.post(sent, {}))
    assert upstream.log[0].body == sent


async def test_a_get_has_no_content_type_and_a_delete_no_body(upstream: ScriptedUpstream, http: UpstreamHttp) -> None:
    (await http.get({"Last-Event-ID": "7"})).close()
    (await http.delete({})).close()
    get, delete = upstream.log
    assert (get.verb, get.headers["accept"], get.headers["last-event-id"]) == ("GET", "text/event-stream", "7")
    assert "content-type" not in get.headers
    assert (delete.verb, delete.body) == ("DELETE", b"")


# --- what the answer is ---

ODD_ANSWERS = {
    "json": ("application/json", JSON, "json"),
    "json with a charset": ("application/json;charset=UTF-8", JSON, "json"),
    "json in capitals": ("Application/JSON", JSON, "json"),
    "json without a media type": (None, JSON, "json"),
    "json as text": ("text/plain", JSON, "json"),
    "json after a byte order mark": ("application/json", b"\xef\xbb\xbf" + JSON, "json"),
    "json null": ("application/json", b"null", "json"),
    "a page": ("text/html", b"<html>", "other"),
    "a page that looks like json": ("text/html; charset=utf-8", JSON, "other"),
    "text": ("text/plain", b"Accepted", "other"),
    "nothing": ("application/json", b"", "empty"),
    "blanks": ("application/json", b"\r\n ", "empty"),
    "a stream": ("text/event-stream", b"data: " + JSON + b"\n\n", "sse"),
    "a stream with a charset": ("text/event-stream;charset=UTF-8", b"data: " + JSON + b"\n\n", "sse"),
    "a stream that calls itself json": ("application/json", b"event: message\ndata: " + JSON + b"\n\n", "sse"),
    "a stream that calls itself json and begins with a comment": ("application/json", b": hi\n\n", "sse"),
}


@pytest.mark.parametrize("case", ODD_ANSWERS)
async def test_what_a_body_is_decides_and_not_what_it_is_called(
    upstream: ScriptedUpstream, http: UpstreamHttp, case: str
) -> None:
    media_type, content, kind = ODD_ANSWERS[case]
    upstream.on("x", lambda wire: wire.reply(200, content, media_type))
    reply = await http.post(body(), {})
    assert reply.kind == kind
    reply.close()


async def test_an_acceptance_is_not_waited_for_to_its_end(upstream: ScriptedUpstream, http: UpstreamHttp) -> None:
    @upstream.on("x")
    async def accept(wire: Wire) -> None:
        await wire.raw(b"HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n")
        await wire.hang()

    reply = await http.post(body(), {})
    assert (reply.status, reply.kind) == (202, "empty")
    reply.close()


@pytest.mark.parametrize("content", [JSON, b"\n" + JSON + b"\n", b"\xef\xbb\xbf" + JSON])
async def test_bare_json_that_calls_itself_a_stream_is_one_event(
    upstream: ScriptedUpstream, http: UpstreamHttp, content: bytes
) -> None:
    @upstream.on("x")
    async def bare(wire: Wire) -> None:
        wire.bytewise = True
        await wire.reply(200, content, "text/event-stream")

    events = await all_events(await http.post(body(), {}))
    assert [event.removeprefix(b"\xef\xbb\xbf") for event in events] == [JSON]


async def test_a_json_answer_can_be_read_as_events(upstream: ScriptedUpstream, http: UpstreamHttp) -> None:
    upstream.on("x", lambda wire: wire.reply(200, JSON, "application/json"))
    assert await all_events(await http.post(body(), {})) == [JSON]


async def test_events_arrive_as_they_are_sent(upstream: ScriptedUpstream, http: UpstreamHttp) -> None:
    go_on = asyncio.Event()

    @upstream.on("x")
    async def stream(wire: Wire) -> None:
        await wire.sse()
        await wire.text(b"retry: 700\nid: e1\ndata: 1\n\n")
        await go_on.wait()
        await wire.text(b"id: e2\ndata: 2\n\n")
        await wire.end()

    reply = await http.post(body(), {})
    assert (await anext(reply.events())).data == b"1"
    assert (reply.last_event_id, reply.retry_ms) == ("e1", 700)
    go_on.set()
    assert [event.data async for event in reply.events()] == [b"2"]
    assert reply.last_event_id == "e2"


# --- compression ---


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "identity"])
async def test_what_was_offered_is_decoded(upstream: ScriptedUpstream, http: UpstreamHttp, encoding: str) -> None:
    upstream.on("x", lambda wire: wire.reply(200, JSON, "application/json", encoding=encoding))
    assert await read(await http.post(body(), {})) == JSON


@pytest.mark.parametrize("encoding", ["gzip", "br"])
async def test_compressed_events_arrive_as_they_are_flushed(
    upstream: ScriptedUpstream, http: UpstreamHttp, encoding: str
) -> None:
    go_on = asyncio.Event()

    @upstream.on("x")
    async def stream(wire: Wire) -> None:
        await wire.sse(encoding=encoding)
        await wire.text(b"data: 1\n\n")
        await go_on.wait()
        await wire.text(b"data: 2\n\n")
        await wire.end()

    reply = await http.post(body(), {})
    assert (await anext(reply.events())).data == b"1"
    go_on.set()
    assert (await anext(reply.events())).data == b"2"
    reply.close()


@pytest.mark.parametrize("encoding", ["zstd", "gzip, br", "x-own"])
async def test_an_encoding_that_was_not_offered_is_said_to_be_so(
    upstream: ScriptedUpstream, http: UpstreamHttp, encoding: str
) -> None:
    headers = {"Content-Encoding": encoding}
    upstream.on("x", lambda wire: wire.reply(200, JSON, "application/json", headers))
    with pytest.raises(UpstreamError, match=r"Content-Encoding that was not offered|cannot be read as HTTP") as caught:
        await http.post(body(), {})
    assert caught.value.reason == "nonsense"


# --- size ---


async def test_a_body_at_the_limit_is_read_and_one_over_it_is_not(
    upstream: ScriptedUpstream, http: UpstreamHttp
) -> None:
    upstream.on("x", lambda wire: wire.reply(200, b'"' + b"a" * (LIMIT - 2) + b'"', "application/json"), times=1)
    assert len(await read(await http.post(body(), {}))) == LIMIT
    upstream.on("x", lambda wire: wire.reply(200, b'"' + b"a" * (LIMIT - 1) + b'"', "application/json"))
    with pytest.raises(UpstreamError, match=f"over the limit of {LIMIT} bytes") as caught:
        await read(await http.post(body(), {}))
    assert caught.value.reason == "too_large"


async def test_the_limit_is_for_what_is_decompressed(upstream: ScriptedUpstream, http: UpstreamHttp) -> None:
    bomb = gzip.compress(b"0" * 50_000_000)
    assert len(bomb) < LIMIT
    headers = {"Content-Encoding": "gzip"}
    upstream.on("x", lambda wire: wire.reply(200, bomb, "application/json", headers))
    with pytest.raises(UpstreamError, match="over the limit"):
        await read(await http.post(body(), {}))


async def test_an_event_over_the_limit_is_told_after_those_before_it(
    upstream: ScriptedUpstream, http: UpstreamHttp
) -> None:
    @upstream.on("x")
    async def stream(wire: Wire) -> None:
        await wire.sse()
        await wire.text(b"data: 1\n\ndata: " + b"a" * (LIMIT + 1) + b"\n\n")
        await wire.hang()

    reply = await http.post(body(), {})
    assert (await anext(reply.events())).data == b"1"
    with pytest.raises(UpstreamError, match=f"over the limit of {LIMIT} bytes"):
        await anext(reply.events())


async def test_many_events_may_be_over_the_limit_together(upstream: ScriptedUpstream, http: UpstreamHttp) -> None:
    event = b"data: " + b"a" * 20_000 + b"\n\n"
    upstream.on("x", lambda wire: wire.reply(200, event * 200, "text/event-stream"))
    assert len(await all_events(await http.post(body(), {}))) == 200


# --- redirects ---


async def test_a_redirect_within_the_origin_is_followed_with_everything_and_remembered(
    upstream: ScriptedUpstream, http: UpstreamHttp
) -> None:
    async def move(wire: Wire) -> None:
        if wire.request.path == "/mcp":
            await wire.reply(307, headers={"Location": "/mcp/"})

    upstream.gate = move
    upstream.on("x", lambda wire: wire.result({}))
    for _ in range(2):
        await read(await http.post(body(), {"Authorization": "Bearer t"}))
    assert [request.path for request in upstream.log] == ["/mcp", "/mcp/", "/mcp/"]
    assert {request.headers["authorization"] for request in upstream.log} == {"Bearer t"}
    assert {request.body for request in upstream.log} == {body()}


async def test_a_redirect_that_was_taken_back_is_forgotten(upstream: ScriptedUpstream, http: UpstreamHttp) -> None:
    moves = iter([{"Location": "/new"}])

    async def move(wire: Wire) -> None:
        if wire.request.path == "/new" and wire.request.connection:
            await wire.reply(404)
        elif headers := next(moves, None):
            await wire.reply(308, headers=headers)

    upstream.gate = move
    upstream.on("x", lambda wire: wire.result({}))
    assert (await http.post(body(), {})).status == 404
    reply = await http.post(body(), {})
    assert (reply.status, upstream.log[-1].path) == (200, "/mcp")
    reply.close()


@pytest.mark.parametrize("location", ["http://other.test/mcp", "//other.test/mcp", "http://127.0.0.1:1/mcp", "ftp:/x"])
async def test_a_redirect_to_another_origin_is_not_followed(
    upstream: ScriptedUpstream, http: UpstreamHttp, location: str
) -> None:
    upstream.on("x", lambda wire: wire.reply(307, headers={"Location": location}))
    with pytest.raises(UpstreamError, match=r"another origin|no usable Location") as caught:
        await http.post(body(), {})
    assert caught.value.reason == "nonsense"
    assert "other.test" not in str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_changes_the_request_is_not_followed(
    upstream: ScriptedUpstream, http: UpstreamHttp, status: int
) -> None:
    upstream.on("x", lambda wire: wire.reply(status, headers={"Location": "/mcp/"}))
    with pytest.raises(UpstreamError, match=f"redirects with {status}"):
        await http.post(body(), {})


async def test_redirects_in_circles_end(upstream: ScriptedUpstream, http: UpstreamHttp) -> None:
    upstream.on("x", lambda wire: wire.reply(307, headers={"Location": "/mcp"}))
    with pytest.raises(UpstreamError, match="more than 5 times"):
        await http.post(body(), {})
    assert len(upstream.log) == 6


async def test_a_redirect_without_a_location_is_said_to_be_so(upstream: ScriptedUpstream, http: UpstreamHttp) -> None:
    upstream.on("x", lambda wire: wire.reply(308))
    with pytest.raises(UpstreamError, match="no usable Location"):
        await http.post(body(), {})


# --- what goes wrong ---


async def test_a_refused_connection_may_be_tried_again(upstream: ScriptedUpstream, http: UpstreamHttp) -> None:
    await upstream.stop()
    with pytest.raises(UpstreamError, match="'docs' cannot be reached: connection refused") as caught:
        await http.post(body(), {})
    assert (caught.value.reason, caught.value.retryable) == ("unreachable", True)


async def test_a_name_that_does_not_resolve_is_not_told_to_the_client() -> None:
    http = client_of("http://no-such-host.invalid/mcp")
    with pytest.raises(UpstreamError, match="'docs' cannot be reached: its host name does not resolve") as caught:
        await http.post(body(), {})
    await http.close()
    assert (caught.value.reason, caught.value.retryable) == ("unreachable", True)


async def test_connecting_has_a_deadline_that_covers_tls(upstream: ScriptedUpstream) -> None:
    url = upstream.url.replace("http:", "https:")  # it reads the handshake, and waits for the end of a request's head
    http = UpstreamHttp("docs", url, headers={}, connect_timeout_s=0.05, max_message_bytes=LIMIT)
    with pytest.raises(UpstreamError, match="connecting took too long") as caught:
        await http.post(body(), {})
    await http.close()
    assert (caught.value.reason, caught.value.retryable) == ("unreachable", True)


async def test_a_certificate_of_nobody_is_not_trusted(tmp_path: Any) -> None:
    certificate = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    http = client_of(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp")
    with pytest.raises(UpstreamError, match="no TLS connection that can be trusted"):
        await http.post(body(), {})
    await http.close()
    server.close()


async def test_a_server_that_the_system_trusts_is_spoken_to_in_private(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    dialling._tls.cache_clear()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(["h2", "http/1.1"])
    spoken = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        spoken.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        while await reader.read(100_000):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(JSON))
            writer.write(JSON)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as server:
        http = client_of(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp")
        assert [await read(await http.post(body(), {})) for _ in range(3)] == [JSON, JSON, JSON]
        await http.close()
    assert spoken == ["http/1.1"]
    dialling._tls.cache_clear()


def make_certificate(folder: Any) -> str:
    """A self-signed certificate and its key in one file."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "u.test")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = (
        builder.add_extension(names, critical=False)
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
    )
    pem = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    pem += key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "certificate.pem"
    path.write_bytes(pem)
    return str(path)


async def cut_before_answering(wire: Wire) -> None:
    wire.reset()


async def close_before_answering(wire: Wire) -> None:
    wire.close()


@pytest.mark.parametrize("cut", [cut_before_answering, close_before_answering])
async def test_a_connection_that_breaks_after_the_request_leaves_the_outcome_unknown(
    upstream: ScriptedUpstream, http: UpstreamHttp, cut: Any
) -> None:
    upstream.on("x", cut)
    with pytest.raises(UpstreamError, match="outcome is unknown") as caught:
        await http.post(body(), {})
    assert (caught.value.reason, caught.value.retryable) == ("outcome_unknown", False)
    assert len(upstream.log) == 1


@pytest.mark.parametrize("cut", [cut_before_answering, close_before_answering])
async def test_a_post_is_never_repeated_when_a_kept_connection_breaks(
    upstream: ScriptedUpstream, http: UpstreamHttp, cut: Any
) -> None:
    upstream.on("x", lambda wire: wire.result({}), times=1)
    upstream.on("x", cut)
    await read(await http.post(body(), {}))
    with pytest.raises(UpstreamError) as caught:
        await http.post(body(), {})
    assert caught.value.reason == "outcome_unknown"
    assert [request.connection for request in upstream.log] == [1, 1]


async def test_a_kept_connection_that_the_server_closed_is_not_used(
    upstream: ScriptedUpstream, http: UpstreamHttp
) -> None:
    @upstream.on("x")
    async def answer_and_close(wire: Wire) -> None:
        await wire.result({})
        wire.keeps_alive = False

    await read(await http.post(body(), {}))
    await until(lambda: len(http.connections) == 0)
    await read(await http.post(body(), {}))
    assert [request.connection for request in upstream.log] == [1, 2]


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until something that gives no sign has happened."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_a_stream_that_breaks_off_gives_what_came_and_then_says_so(
    upstream: ScriptedUpstream, http: UpstreamHttp
) -> None:
    @upstream.on("x")
    async def stream(wire: Wire) -> None:
        await wire.sse()
        await wire.text(b"id: e1\ndata: 1\n\n")
        await upstream.seen("notifications/go-on")
        wire.close()

    reply = await http.post(body(), {})
    assert (await anext(reply.events())).data == b"1"
    (await http.post(body("notifications/go-on"), {})).close()
    with pytest.raises(UpstreamError) as caught:
        await anext(reply.events())
    assert caught.value.reason == "outcome_unknown"
    assert reply.last_event_id == "e1"


async def test_a_body_that_is_cut_short_is_no_message(upstream: ScriptedUpstream, http: UpstreamHttp) -> None:
    @upstream.on("x")
    async def cut(wire: Wire) -> None:
        await wire.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{}")
        wire.close()

    with pytest.raises(UpstreamError) as caught:
        await read(await http.post(body(), {}))
    assert caught.value.reason == "outcome_unknown"


async def test_what_is_no_http_is_nonsense(upstream: ScriptedUpstream, http: UpstreamHttp) -> None:
    @upstream.on("x")
    async def speak_otherwise(wire: Wire) -> None:
        await wire.raw(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")
        wire.close()

    with pytest.raises(UpstreamError, match="cannot be read as HTTP") as caught:
        await http.post(body(), {})
    assert caught.value.reason == "nonsense"


# --- connections ---


@pytest.mark.parametrize("answer", ["json", "sse"])
async def test_a_connection_is_used_again_after_a_complete_answer(
    upstream: ScriptedUpstream, http: UpstreamHttp, answer: str
) -> None:
    @upstream.on("x")
    async def respond(wire: Wire) -> None:
        if answer == "json":
            await wire.result({})
        else:
            await wire.sse()
            await wire.end(result={})

    for _ in range(3):
        reply = await http.post(body(), {})
        [_event] = [event async for event in reply.events()]
        reply.close()
    assert {request.connection for request in upstream.log} == {1}


async def test_a_stream_whose_end_comes_late_gives_its_connection_back(
    upstream: ScriptedUpstream, http: UpstreamHttp
) -> None:
    @upstream.on("x", times=1)
    async def end_late(wire: Wire) -> None:
        await wire.sse()
        await wire.event({"jsonrpc": "2.0", "id": 1, "result": {}})
        await upstream.seen("notifications/finished")
        await wire.end()

    upstream.on("x", lambda wire: wire.result({}))
    reply = await http.post(body(), {})
    await anext(reply.events())
    reply.finish()
    await read(await http.post(body("notifications/finished"), {}))
    await until(lambda: len(http.connections) == 2)
    await asyncio.gather(*[read_later(http) for _ in range(2)])
    assert {request.connection for request in upstream.log} == {1, 2}


async def read_later(http: UpstreamHttp) -> None:
    await read(await http.post(body(), {}))


async def test_giving_up_a_stream_closes_its_connection_at_once(upstream: ScriptedUpstream, http: UpstreamHttp) -> None:
    gone: list[asyncio.Event] = []

    @upstream.on("x")
    async def stream(wire: Wire) -> None:
        gone.append(wire.gone)
        await wire.sse()
        await wire.hang()

    (await http.post(body(), {})).close()
    await asyncio.wait_for(gone[0].wait(), 5)


async def test_cancelling_a_request_that_has_no_answer_yet_closes_its_connection(
    upstream: ScriptedUpstream, http: UpstreamHttp
) -> None:
    gone: list[asyncio.Event] = []

    @upstream.on("x")
    async def hang(wire: Wire) -> None:
        gone.append(wire.gone)
        await wire.hang()

    task = asyncio.create_task(http.post(body(), {}))
    await upstream.seen("x")
    task.cancel()
    await asyncio.wait([task])
    await asyncio.wait_for(gone[0].wait(), 5)


async def test_the_client_works_again_after_it_was_closed(upstream: ScriptedUpstream, http: UpstreamHttp) -> None:
    await read(await http.post(body(), {}))
    await http.close()
    assert (await http.post(body(), {})).status == 404
    await http.close()
