"""gateway.upstream.probe: what `era-gateway probe` says of a server."""

import asyncio
import json
from typing import Any

import pytest

from gateway.upstream.probe import Description, ProbeFailed, describe
from tests.support.scripted import ScriptedUpstream, Wire

CAPABILITIES = {"tools": {"listChanged": True}}


async def test_a_modern_server_is_described_by_its_discover_result() -> None:
    async with ScriptedUpstream(era="modern") as server:
        server.capabilities = CAPABILITIES
        server.instructions = "be nice"
        assert await describe(server.url, {"X-Team": "blue"}) == Description(
            "modern",
            "2026-07-28",
            "streamable-http",
            capabilities=CAPABILITIES,
            server_info={"name": "u", "version": "1"},
            instructions="be nice",
        )
        [asked] = server.log
        assert asked.headers["x-team"] == "blue"


async def test_the_other_versions_of_a_modern_server_are_noted() -> None:
    async with ScriptedUpstream(era="modern") as server:
        result = server.discover_result() | {"supportedVersions": ["2026-07-28", "2025-11-25"]}
        server.on("server/discover", lambda wire: wire.result(result))
        assert (await describe(server.url, {})).notes == ("also speaks 2025-11-25",)


async def test_a_modern_server_may_show_its_era_by_an_error() -> None:
    async with ScriptedUpstream(era="modern") as server:
        server.on("server/discover", lambda wire: wire.error(-32021, status=400))
        found = await describe(server.url, {})
        assert (found.era, found.capabilities) == ("modern", None)
        assert "error of 2026-07-28" in found.notes[0]


async def test_a_legacy_server_is_described_by_initialize_and_its_session_is_ended() -> None:
    async with ScriptedUpstream() as server:
        server.version = "2025-06-18"
        server.instructions = "be nice"
        assert await describe(server.url, {}) == Description(
            "legacy",
            "2025-06-18",
            "streamable-http",
            has_sessions=True,
            capabilities={"tools": {}},
            server_info={"name": "u", "version": "1"},
            instructions="be nice",
            notes=("keeps sessions",),
        )
        assert server.methods() == ["server/discover", "initialize", "notifications/initialized", "DELETE"]
        assert server.sessions == set()
        _, initialize, initialized, delete = server.log
        assert "mcp-protocol-version" not in initialize.headers
        assert initialize.params["protocolVersion"] == "2025-11-25"
        assert initialized.headers["mcp-protocol-version"] == delete.headers["mcp-protocol-version"] == "2025-06-18"


async def test_a_session_that_the_question_opened_is_left_alone() -> None:
    async with ScriptedUpstream() as server:
        headers = {"Mcp-Session-Id": "not ours"}
        server.on("server/discover", lambda wire: wire.error(-32600, status=400, headers=headers))
        await describe(server.url, {})
        assert {request.session for request in server.log} == {None, "sess-1"}


async def test_a_server_without_sessions_is_noted_and_nothing_deleted() -> None:
    async with ScriptedUpstream() as server:
        server.with_sessions = False
        found = await describe(server.url, {})
        assert not found.has_sessions
        assert found.notes == ("keeps no sessions: it cannot ask questions during a call",)
        assert "DELETE" not in server.methods()


async def test_a_legacy_server_may_answer_on_a_stream() -> None:
    async with ScriptedUpstream() as server:

        @server.on("initialize")
        async def answer(wire: Wire) -> None:
            await wire.sse()
            await wire.text(b"id: e0\nretry: 100\ndata:\n\n")
            await wire.event({"jsonrpc": "2.0", "id": "p0", "method": "ping"})
            await wire.event({"jsonrpc": "2.0", "id": wire.request.id, "result": {"protocolVersion": "2025-11-25"}})
            await wire.hang()

        found = await describe(server.url, {})
        assert (found.version, found.server_info) == ("2025-11-25", None)


@pytest.mark.parametrize("status", [403, 500])
async def test_a_server_that_refuses_only_the_question_is_described_all_the_same(status: int) -> None:
    async with ScriptedUpstream() as server:
        server.on("server/discover", lambda wire: wire.error(-32603, status=status))
        found = await describe(server.url, {})
        assert found.era == "legacy"
        assert found.notes[0] == f"refuses server/discover with HTTP {status}"


async def test_a_redirect_within_the_origin_is_followed_and_noted() -> None:
    async with ScriptedUpstream() as server:

        async def move(wire: Wire) -> None:
            if wire.request.path == "/mcp":
                await wire.reply(307, headers={"Location": "/mcp/"})

        server.gate = move
        found = await describe(server.url, {})
        assert found.notes == (f"redirects to {server.url}/", "keeps sessions")


# --- the transport of 2024-11-05 ---


class SseServer(ScriptedUpstream):
    """A server of 2024-11-05: an open GET says where to POST, and has the answers."""

    def __init__(self, endpoint: str) -> None:
        super().__init__(path="/sse")
        self.gate = self._serve_sse
        self.endpoint = endpoint
        self.stream: asyncio.Future[Wire] = asyncio.get_running_loop().create_future()

    async def _serve_sse(self, wire: Wire) -> None:
        if wire.request.verb == "GET":
            await wire.sse()
            await wire.text(f"event: endpoint\ndata: {self.endpoint}\n\n".encode())
            self.stream.set_result(wire)
            await wire.hang()
        elif wire.request.path == "/sse":
            await wire.reply(405)
        else:
            await wire.reply(202, b"Accepted")
            if wire.request.method == "initialize":
                result = {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": self.server_info}
                await (await self.stream).event({"jsonrpc": "2.0", "id": wire.request.id, "result": result})


async def test_a_server_of_the_oldest_transport_is_found_by_its_endpoint_event() -> None:
    async with SseServer("/messages?sessionId=1") as server:
        found = await describe(server.url, {})
        assert (found.era, found.version, found.transport) == ("legacy", "2024-11-05", "sse")
        assert found.server_info == {"name": "u", "version": "1"}
        assert [(seen.path, seen.method) for seen in server.log][-2:] == [
            ("/messages?sessionId=1", "initialize"),
            ("/messages?sessionId=1", "notifications/initialized"),
        ]


async def test_messages_are_not_sent_to_another_origin() -> None:
    async with SseServer("http://other.test/messages") as server:
        with pytest.raises(ProbeFailed, match="another origin"):
            await describe(server.url, {})


# --- no server to speak with ---

FAILURES: dict[str, tuple[Any, str]] = {
    "401": (
        lambda wire: wire.reply(401, headers={"WWW-Authenticate": 'Bearer realm="u"'}),
        r'HTTP 401\). It asks for: Bearer realm="u". Give credentials with --header',
    ),
    "404": (lambda wire: wire.reply(404), "HTTP 404: there is nothing at this path"),
    "a page": (
        lambda wire: wire.reply(200, b"<html>", "text/html"),
        "HTTP 200 and a web page: this is no MCP endpoint",
    ),
    "text": (lambda wire: wire.reply(200, b"hello", "text/plain"), "HTTP 200 and no JSON-RPC response"),
    "503": (lambda wire: wire.reply(503), r"overloaded or not ready \(HTTP 503\)"),
    "500": (lambda wire: wire.reply(500), "HTTP 500 and no JSON-RPC response"),
    "a redirect elsewhere": (
        lambda wire: wire.reply(308, headers={"Location": "https://other.test/mcp"}),
        "redirects with HTTP 308 to https://other.test/mcp, which the gateway does not follow",
    ),
    "a redirect that changes the request": (
        lambda wire: wire.reply(302, headers={"Location": "/login"}),
        "redirects with HTTP 302",
    ),
    "circles": (lambda wire: wire.reply(307, headers={"Location": "/mcp"}), "redirects in circles"),
}


@pytest.mark.parametrize("case", FAILURES)
async def test_a_server_that_is_none_is_said_to_be_so_and_what_to_do(case: str) -> None:
    answer, said = FAILURES[case]
    async with ScriptedUpstream() as server:
        server.gate = answer
        with pytest.raises(ProbeFailed, match=said):
            await describe(server.url, {})


async def test_a_refused_handshake_is_told_in_the_servers_words() -> None:
    async with ScriptedUpstream() as server:
        server.on("initialize", lambda wire: wire.error(-32600, "one client only"))
        with pytest.raises(ProbeFailed, match=r"refuses initialize: one client only \(code -32600\)"):
            await describe(server.url, {})


async def test_a_revision_that_nobody_knows_is_told() -> None:
    async with ScriptedUpstream() as server:
        server.version = "1999-01-01"
        with pytest.raises(ProbeFailed, match="a revision that the gateway does not speak"):
            await describe(server.url, {})


async def test_a_server_that_is_not_there_is_said_not_to_be() -> None:
    async with ScriptedUpstream() as server:
        url = server.url
    with pytest.raises(ProbeFailed, match="No connection"):
        await describe(url, {})


async def test_a_connection_that_breaks_is_said_to_have() -> None:
    async def hang_up(wire: Wire) -> None:
        wire.reset()

    async with ScriptedUpstream() as server:
        server.on("server/discover", hang_up)
        assert (await describe(server.url, {})).notes[0] == "hangs up on server/discover"
        server.gate = hang_up
        with pytest.raises(ProbeFailed, match="broke the connection"):
            await describe(server.url, {})


async def test_an_answer_without_end_is_not_read_to_it() -> None:
    async with ScriptedUpstream() as server:
        body = json.dumps("x" * 5_000_000).encode()
        server.on("server/discover", lambda wire: wire.reply(200, body, "application/json"))
        with pytest.raises(ProbeFailed, match="more than 4194304 bytes"):
            await describe(server.url, {})


async def test_silence_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.upstream.probe._DISCOVER_TIMEOUT_S", 0.05)
    async with ScriptedUpstream() as server:
        server.on("server/discover", lambda wire: wire.hang())
        found = await describe(server.url, {})
        assert found.notes == ("leaves server/discover unanswered", "keeps sessions")
    monkeypatch.setattr("gateway.upstream.probe._TIMEOUT_S", 0.2)
    async with ScriptedUpstream() as server:
        server.gate = lambda wire: wire.hang()
        with pytest.raises(ProbeFailed, match=r"No answer within 0\.2 s"):
            await describe(server.url, {})
