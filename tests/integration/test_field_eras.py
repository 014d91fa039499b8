"""First contact with servers as they are deployed: what they say to a probe, and what they insist on in a handshake."""

import asyncio
import json
from typing import Any

import pytest

from tests.support.gateway_app import conversation, gateway_for
from tests.support.messages import PREFIX
from tests.support.scripted import ECHO, MODERN, Handler, ScriptedUpstream, Wire, error_message

HANDSHAKE = ["initialize", "notifications/initialized"]
FIRST_CALL = ["server/discover", *HANDSHAKE, "tools/list", "tools/call"]
PASSTHROUGH = {"auth": {"type": "passthrough"}}
GOOD = {"Authorization": "Bearer good"}
CHALLENGE = 'Bearer resource_metadata="https://u.test/.well-known/oauth-protected-resource"'


# --- what an old server says to a question of a revision that it does not know ---

REFUSALS: dict[str, Handler] = {
    "400 with an error without an id": lambda wire: wire.error(-32000, status=400, id=None),
    "400 with an error under the id": lambda wire: wire.error(-32600, status=400),
    "400 with an error under a made-up id": lambda wire: wire.error(-32600, status=400, id="server-error"),
    "400 with text": lambda wire: wire.reply(400, b"Bad Request: no session", "text/plain"),
    "400 with an error that is called text": lambda wire: wire.reply(
        400, json.dumps(error_message(None, -32000)).encode(), "text/plain"
    ),
    "400 that offers old revisions": lambda wire: wire.error(
        -32022, data={"supported": ["2025-11-25"], "requested": MODERN}, status=400
    ),
    "404 with nothing": lambda wire: wire.reply(404),
    "404 with an unknown session": lambda wire: wire.error(-32001, "Session not found", status=404, id=None),
    "405 with nothing": lambda wire: wire.reply(405, headers={"Allow": "GET"}),
    "406 with text": lambda wire: wire.reply(406, b"Not Acceptable", "text/plain"),
    "500 with an error": lambda wire: wire.error(-32603, status=500, id=None),
    "200 with an unknown method": lambda wire: wire.error(-32601),
    "200 with invalid params": lambda wire: wire.error(-32602),
    "200 with error 0": lambda wire: wire.error(0),
    "200 with a page": lambda wire: wire.reply(200, b"<html>hello</html>", "text/html"),
    "202 with nothing": lambda wire: wire.reply(202),
    "400 with a fresh session": lambda wire: wire.reply(400, headers={"Mcp-Session-Id": "sess-probe"}),
    "a result that lists old revisions": lambda wire: wire.result(
        {"supportedVersions": ["2025-06-18"], "capabilities": {}}
    ),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
async def test_whatever_an_old_server_says_to_the_probe_it_gets_its_handshake_once(refusal: Handler) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.version = "2025-06-18"
        upstream.on("server/discover", refusal)
        assert (await front.call("hi")).text == "hi"
        assert conversation(upstream) == FIRST_CALL
        assert upstream.received("initialize")[0].session is None
        assert (await front.call("again")).text == "again"
        assert conversation(upstream) == [*FIRST_CALL, "tools/call"]


@pytest.mark.parametrize("code", [-32020, -32021])
async def test_a_refusal_that_only_a_modern_server_knows_is_never_followed_by_a_handshake(code: int) -> None:
    async with ScriptedUpstream(era="modern") as upstream, gateway_for(upstream) as front:
        upstream.gate = lambda wire: wire.error(code, status=400, data={"requiredCapabilities": {"sampling": {}}})
        assert "error" in (await front.call()).response
        assert set(upstream.methods()) == {"server/discover", "tools/call"}


async def test_a_refusal_that_offers_the_modern_revision_means_modern() -> None:
    async with ScriptedUpstream(era="modern") as upstream, gateway_for(upstream) as front:
        data = {"supported": [MODERN, "2025-11-25"], "requested": MODERN}
        upstream.on("server/discover", lambda wire: wire.error(-32022, data=data, status=400))
        assert (await front.call("hi")).text == "hi"
        assert upstream.methods() == ["server/discover", "tools/call"]


async def test_many_first_requests_at_once_ask_for_the_era_once() -> None:
    async with ScriptedUpstream(era="modern") as upstream, gateway_for(upstream) as front:
        texts = [str(number) for number in range(20)]
        assert [answer.text for answer in await front.calls(texts)] == texts
        assert len(upstream.received("server/discover")) == 1


# --- what proves nothing ---


async def wall(wire: Wire) -> None:
    """Let nobody in without the credential."""
    if wire.request.headers.get("authorization") != "Bearer good":
        await wire.reply(401, headers={"WWW-Authenticate": CHALLENGE})


async def test_a_wall_around_a_modern_server_is_shown_to_the_client_and_is_no_verdict() -> None:
    async with ScriptedUpstream(era="modern") as upstream, gateway_for(upstream, **PASSTHROUGH) as front:
        upstream.gate = wall
        refused = await front.call()
        assert refused.status == 401
        assert refused.headers["www-authenticate"].startswith("Bearer ")
        assert "resource_metadata=" in refused.headers["www-authenticate"]
        assert (await front.call("in", headers=GOOD)).text == "in"
        assert set(upstream.methods()) == {"server/discover", "tools/call"}


async def test_a_server_that_lets_nothing_unknown_in_is_tried_with_a_handshake() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, **PASSTHROUGH) as front:
        upstream.on("server/discover", lambda wire: wire.reply(401, headers={"WWW-Authenticate": CHALLENGE}))
        assert (await front.call("in", headers=GOOD)).text == "in"
        assert conversation(upstream) == FIRST_CALL
        assert {received.headers["authorization"] for received in upstream.log} == {"Bearer good"}


@pytest.mark.parametrize("status", [401, 403])
async def test_a_credential_that_opens_neither_era_is_refused_as_the_server_refused_it(status: int) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, **PASSTHROUGH) as front:
        upstream.gate = lambda wire: wire.reply(status, headers={"WWW-Authenticate": CHALLENGE})
        refused = await front.call(headers={"Authorization": "Bearer bad"})
        assert (refused.status, refused.headers["www-authenticate"]) == (status, CHALLENGE)
        assert upstream.methods() == ["server/discover", "initialize"]
        upstream.gate = None
        assert (await front.call("in", headers=GOOD)).text == "in"


async def test_a_credential_of_the_gateways_own_that_is_refused_is_no_affair_of_the_client() -> None:
    headers = {"Authorization": "Bearer stale"}
    async with ScriptedUpstream() as upstream, gateway_for(upstream, headers=headers) as front:
        upstream.gate = lambda wire: wire.reply(401, headers={"WWW-Authenticate": CHALLENGE})
        refused = await front.call()
        assert refused.failure == (502, "unauthorized", False)
        assert "'docs'" in refused.error["message"]
        assert "www-authenticate" not in refused.headers


OUTAGES: dict[str, tuple[Handler, int]] = {
    "429": (lambda wire: wire.reply(429, headers={"Retry-After": "7"}), 503),
    "500": (lambda wire: wire.reply(500, b"oops", "text/plain"), 502),
    "502": (lambda wire: wire.reply(502, b"<html>bad gateway</html>", "text/html"), 502),
    "503": (lambda wire: wire.reply(503, headers={"Retry-After": "7"}), 503),
    "503 with an error": (lambda wire: wire.error(-32000, "Service Unavailable", status=503, id=None), 503),
    "504": (lambda wire: wire.reply(504), 504),
}


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize(("outage", "status"), OUTAGES.values(), ids=OUTAGES)
async def test_an_outage_is_no_verdict(outage: Handler, status: int, era: Any) -> None:
    async with ScriptedUpstream(era=era) as upstream, gateway_for(upstream) as front:
        upstream.gate = outage
        failed = await front.call()
        assert failed.status == status
        assert failed.error["data"] | {"reason": ""} == {"upstream": "docs", "reason": "", "retryable": True}
        assert "tools/call" not in upstream.methods()
        upstream.gate = None
        upstream.log.clear()
        assert (await front.call("hi")).text == "hi"
        assert upstream.methods()[0] == "server/discover"
        assert ("initialize" in upstream.methods()) == (era == "legacy")


async def test_the_time_after_which_a_server_wants_to_be_asked_again_reaches_the_client() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.gate = lambda wire: wire.reply(503, headers={"Retry-After": "7"})
        assert (await front.call()).headers["retry-after"] == "7"


# --- versions and headers ---


async def strict(wire: Wire) -> None:
    """Refuse a version header at `initialize`, and any but the negotiated one later."""
    said = wire.request.headers.get("mcp-protocol-version")
    expected = None if wire.request.method == "initialize" else "2025-06-18"
    if wire.request.method != "server/discover" and said != expected:
        await wire.reply(400)


async def test_a_strict_server_sees_the_version_that_it_negotiated_and_nothing_of_the_clients() -> None:
    junk = {"Mcp-Session-Id": "junk", "Last-Event-ID": "7", "X-Tenant": "t1", "Cookie": "a=b"}
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with ScriptedUpstream() as upstream:
        upstream.version, upstream.gate = "2025-06-18", strict
        upstream.offer_get()
        async with gateway_for(upstream) as front:
            meta = {"traceparent": trace, "com.example/team": "blue", f"{PREFIX}logLevel": "info"}
            assert (await front.call("hi", headers=junk, meta=meta)).text == "hi"
            await upstream.seen("GET")
        for received in upstream.log:
            assert not {"last-event-id", "x-tenant", "cookie", "mcp-method", "mcp-name"} & (
                received.headers.keys() - ({"mcp-method"} if received.method == "server/discover" else set())
            )
            assert received.session in (None, "sess-1")
        later = [received for received in upstream.log if received.method not in ("server/discover", "initialize")]
        assert {received.verb for received in later} == {"POST", "GET", "DELETE"}
        assert {received.headers["mcp-protocol-version"] for received in later} == {"2025-06-18"}
        assert upstream.received("initialize")[0].params["protocolVersion"] == "2025-11-25"
        sent = upstream.received("tools/call")[0].params["_meta"]
        assert sent | {"progressToken": 0} == {"traceparent": trace, "com.example/team": "blue", "progressToken": 0}


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
async def test_any_old_revision_that_a_server_chooses_is_spoken(version: str) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.version = version
        assert (await front.call("hi")).text == "hi"
        assert upstream.received("tools/call")[0].headers["mcp-protocol-version"] == version


@pytest.mark.parametrize("version", ["2023-01-01", MODERN, None, 7])
async def test_a_revision_that_is_not_spoken_is_an_error_that_names_the_upstream(version: Any) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.version = version
        refused = await front.call()
        assert refused.failure == (502, "nonsense", True)
        assert "'docs'" in refused.error["message"]
        assert "tools/call" not in upstream.methods()
        await upstream.seen("DELETE")  # of the session that nobody will use
        assert not upstream.sessions


# --- the handshake that a stateless client never makes ---


@pytest.mark.parametrize(
    ("method", "params", "steps"),
    [
        ("server/discover", {}, HANDSHAKE),
        ("tools/list", {}, [*HANDSHAKE, "tools/list"]),
        ("tools/call", {"name": "echo", "arguments": {"text": "hi"}}, [*HANDSHAKE, "tools/list", "tools/call"]),
    ],
)
async def test_whatever_comes_first_the_handshake_comes_before_it(
    method: str, params: dict[str, Any], steps: list[str]
) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        await front.ask(method, params)
        assert conversation(upstream) == ["server/discover", *steps]
        sessions = {received.session for received in upstream.log if received.method in steps[1:]}
        assert sessions == {"sess-1"}


@pytest.mark.parametrize("written", [{}, {"instructions": None}, {"instructions": "Ask nicely."}])
async def test_discover_tells_what_the_handshake_told(written: dict[str, Any]) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        said = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": False}, "logging": {}, "tasks": {"list": {}}},
            "serverInfo": {"name": "u", "version": "1", "title": "U"},
        }
        upstream.on("initialize", lambda wire: wire.result(said | written))
        result = (await front.ask("server/discover")).result
        assert result["supportedVersions"] == [MODERN]
        assert set(result["capabilities"]) == {"tools", "logging"}
        assert result["_meta"][f"{PREFIX}serverInfo"] == said["serverInfo"]
        told = {"instructions": written["instructions"]} if written.get("instructions") else {}
        assert {key: value for key, value in result.items() if key == "instructions"} == told


async def test_no_request_is_sent_before_the_server_has_taken_note_of_the_handshake() -> None:
    late = {**ECHO, "name": "late_tool"}
    taken, may_take = asyncio.Event(), asyncio.Event()
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("notifications/initialized")
        async def take_note(wire: Wire) -> None:
            await may_take.wait()
            upstream.tools = [ECHO, late]
            taken.set()
            await wire.reply(202)

        @upstream.on("tools/list")
        async def list_tools(wire: Wire) -> None:
            await (upstream.answer(wire) if taken.is_set() else wire.error(-32600, "Expected initialized"))

        listing = asyncio.create_task(front.ask("tools/list"))
        initialized = await upstream.seen("notifications/initialized")
        assert (await front.http.get(front.url + "/healthz")).status_code == 200  # time for a hasty request to be sent
        may_take.set()
        assert [tool["name"] for tool in (await listing).result["tools"]] == ["echo", "late_tool"]
        assert "id" not in initialized.message
        assert initialized.session == "sess-1"
        assert initialized.headers["mcp-protocol-version"] == "2025-11-25"


@pytest.mark.parametrize("answer", [Wire.hang, lambda wire: wire.reply(400), lambda wire: wire.reset()])
async def test_a_server_that_does_not_acknowledge_the_handshake_is_used_all_the_same(answer: Any) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, connect_timeout="150ms") as front:

        async def acknowledge(wire: Wire) -> None:
            outcome = answer(wire)
            if outcome is not None:
                await outcome

        upstream.on("notifications/initialized", acknowledge)
        assert [tool["name"] for tool in (await front.ask("tools/list")).result["tools"]] == ["echo"]
        assert len(upstream.received("notifications/initialized")) == 1


async def test_many_first_requests_at_once_share_one_handshake() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        texts = [str(number) for number in range(20)]
        assert [answer.text for answer in await front.calls(texts)] == texts
        assert len(upstream.received("initialize")) == len(upstream.received("notifications/initialized")) == 1


@pytest.mark.parametrize("ends", [True, False])
async def test_a_handshake_may_come_as_a_stream_with_a_ping_in_it(ends: bool) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("initialize")
        async def stream(wire: Wire) -> None:
            upstream.sessions.add("sess-7")
            await wire.sse({"Mcp-Session-Id": "sess-7"})
            await wire.text(b"id: e0\ndata:\n\n")
            await upstream.ask(wire, "ping", None, id=0)
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": upstream.server_info,
            }
            if ends:
                await wire.end(result=result)
            else:
                await wire.event({"jsonrpc": "2.0", "id": wire.request.id, "result": result})
                await wire.hang()

        assert (await front.call("hi")).text == "hi"
        [pong] = upstream.received("response")
        assert (pong.message, pong.session) == ({"jsonrpc": "2.0", "id": 0, "result": {}}, "sess-7")
