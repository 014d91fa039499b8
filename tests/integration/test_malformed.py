"""Malformed requests over a real socket: each gets the reply that it is owed, and nothing else happens."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from tests.support.gateway_app import Front, gateway_for
from tests.support.malformed import MALFORMED, MARKED_TOOL, Malformed
from tests.support.malformed_headers import MARKS
from tests.support.messages import good_request
from tests.support.raw_http import RawAnswer, RawConnection, connect
from tests.support.scripted import ECHO, ScriptedUpstream

OFFERED: dict[str, Any] = {"tools": {}, "prompts": {}, "resources": {}, "completions": {}}
DECLARED = 4_194_305
"""The length that "declared length over the limit" does not send before it has its answer."""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Scene:
    """A gateway that has served this client before, and the server behind it."""

    front: Front
    upstream: ScriptedUpstream


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene() -> AsyncIterator[Scene]:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.capabilities = OFFERED
        upstream.tools = [ECHO, MARKED_TOOL]
        await front.call("hello")
        yield Scene(front, upstream)


async def call_on(connection: RawConnection) -> RawAnswer:
    """Make a good call, and take its answer."""
    headers, body = good_request("tools/call", {"name": "echo", "arguments": {"text": "next"}}, request_id="next")
    await connection.send("POST", "/mcp", headers, body)
    return await connection.read()


def assert_called(answer: RawAnswer) -> None:
    assert answer.status == 200, answer
    assert answer.message["id"] == "next"
    assert answer.message["result"]["content"][0]["text"] == "next"


def assert_owed(answer: RawAnswer, case: Malformed) -> None:
    assert answer.status == case.status, answer
    assert "mcp-session-id" not in answer.headers
    if case.status == 405:
        assert answer.headers["allow"] == "POST"
    assert answer.headers["content-type"] == "application/json"
    message = answer.message
    assert set(message) == {"jsonrpc", "id", "error"}
    assert (type(message["id"]), message["id"]) == (type(case.request_id), case.request_id)
    assert message["error"]["code"] == case.code
    assert message["error"]["message"]
    assert message["error"].get("data", {}) | case.data == message["error"].get("data", {})


@pytest.mark.parametrize("case", MALFORMED, ids=lambda case: case.name)
async def test_a_malformed_request_gets_its_own_error_and_the_next_good_one_is_served(
    scene: Scene, case: Malformed
) -> None:
    before = len(scene.upstream.log)
    async with connect(scene.front.url) as connection:
        await connection.send(case.http_method, "/mcp", case.headers, case.body)
        assert_owed(await connection.read(), case)
        # Before a call is refused for its `Mcp-Param-*`, the tool may be looked at once more.
        allowed = {"tools/list"} if case in MARKS else set()
        assert set(scene.upstream.methods()[before:]) <= allowed
        if case.name == "declared length over the limit":
            await connection.send_bytes(b" " * (DECLARED - len(case.body)))
        assert_called(await call_on(connection))


@pytest.mark.parametrize("size", [4_194_305, 6_000_000])
async def test_a_body_over_the_limit_without_a_declared_length_is_refused_while_it_comes(
    scene: Scene, size: int
) -> None:
    before = len(scene.upstream.log)
    headers, body = good_request("tools/call", {"name": "echo", "arguments": {"text": "x" * size}})
    async with connect(scene.front.url) as connection:
        await connection.send("POST", "/mcp", [*headers, (b"Transfer-Encoding", b"chunked")])
        await connection.send_bytes(b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body))
        answer = await connection.read()
    assert (answer.status, answer.message["error"]["code"], answer.message["id"]) == (413, -32600, None)
    assert scene.upstream.methods()[before:] == []


async def test_a_body_at_the_limit_is_served(scene: Scene) -> None:
    _headers, empty = good_request("tools/call", {"name": "echo", "arguments": {"text": ""}}, request_id="at the limit")
    text = "x" * (4_194_304 - len(empty))
    answer = await scene.front.call(text, request_id="at the limit")
    assert answer.text == text


@pytest.mark.parametrize("path", ["/", "/mcp/none", "/mcp/docs/more", "/mc", "/healthz/mcp"])
async def test_a_path_that_is_none_says_which_there_are(scene: Scene, path: str) -> None:
    headers, body = good_request()
    async with connect(scene.front.url) as connection:
        await connection.send("POST", path, headers, body)
        answer = await connection.read()
        assert answer.status == 404
        assert answer.message["id"] is None
        assert "/mcp" in answer.message["error"]["message"]
        assert_called(await call_on(connection))


NO_HTTP = {
    "a greeting in TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "a request line without a version": b"POST /mcp\r\n\r\n",
    "no request line": b"\r\n\r\nhello\r\n\r\n",
    "a header without a colon": b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n\r\n",
    "two lengths": b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n12",
    "a length and chunks": (
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "a length that is no number": b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
    "a chunk that is too short": (
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n"
    ),
}


@pytest.mark.parametrize("sent", NO_HTTP.values(), ids=NO_HTTP)
async def test_what_is_no_http_is_refused_as_such_and_its_connection_closed(scene: Scene, sent: bytes) -> None:
    before = len(scene.upstream.log)
    async with connect(scene.front.url) as connection:
        await connection.send_bytes(sent)
        answer = await connection.read()
        assert 400 <= answer.status < 500
        assert await connection.is_closed()
    assert scene.upstream.methods()[before:] == []
    async with connect(scene.front.url) as connection:
        assert_called(await call_on(connection))
