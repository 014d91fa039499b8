"""The HTTP rules of the demo server: sessions, statuses, streams."""

import httpx
import pytest

from tests.support.legacy_client import ACCEPT, events

ASKABLE = {"elicitation": {}}


async def test_initialize_opens_a_session_and_answers_with_the_version_asked_for(connect):
    client = await connect(version="2025-06-18")
    assert client.initialized["protocolVersion"] == "2025-06-18"
    assert set(client.initialized["capabilities"]) == {"tools", "prompts", "resources", "completions", "logging"}


@pytest.mark.parametrize("version", ["2026-07-28", "2024-11-05", "nonsense"])
async def test_a_version_that_it_does_not_speak_is_answered_with_its_newest(connect, version):
    assert (await connect(version=version)).initialized["protocolVersion"] == "2025-11-25"


async def test_every_session_has_its_own_id(connect):
    first, second = await connect(), await connect()
    assert first.headers["Mcp-Session-Id"] != second.headers["Mcp-Session-Id"]


async def test_a_request_without_a_session_is_refused(http, url):
    discover = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {}}
    reply = await http.post(url, json=discover, headers={"Accept": ACCEPT})
    assert reply.status_code == 400
    assert reply.json()["error"]["message"] == "Missing session ID: send initialize first"


async def test_an_unknown_session_is_404(connect):
    client = await connect()
    client.headers["Mcp-Session-Id"] = "unknown"
    assert (await client.post(client.request("ping"))).status_code == 404


async def test_a_deleted_session_is_gone(connect, http, url):
    client = await connect()
    assert (await http.delete(url, headers=client.headers)).status_code == 204
    assert (await client.post(client.request("ping"))).status_code == 404


async def test_deleting_a_session_ends_its_calls(connect, http, url):
    client = await connect(ASKABLE)
    async with client.stream(client.call("ask_name")) as reply:
        messages = events(reply)
        await anext(messages)
        await http.delete(url, headers=client.headers)
        assert [event async for event in messages] == []


async def test_a_plain_answer_is_json(connect):
    client = await connect()
    reply = await client.post(client.request("ping"))
    assert reply.headers["Content-Type"] == "application/json"
    assert reply.json() == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def test_notifications_and_responses_are_accepted_without_a_body(connect):
    client = await connect()
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}},
        {"jsonrpc": "2.0", "id": 99, "result": {}},
    ):
        reply = await client.post(message)
        assert (reply.status_code, reply.content) == (202, b"")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Accept": "application/json"}, 406),
        ({"Content-Type": "text/plain"}, 415),
        ({"MCP-Protocol-Version": "2026-07-28"}, 400),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
    ],
)
async def test_headers_are_checked(connect, headers, status):
    client = await connect()
    assert (await client.post(client.request("ping"), **headers)).status_code == status


@pytest.mark.parametrize(
    "message",
    [
        [{"jsonrpc": "2.0", "id": 1, "method": "ping"}],
        {"id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []},
        {"jsonrpc": "2.0", "id": 1},
    ],
)
async def test_what_is_not_a_message_is_refused(connect, message):
    reply = await (await connect()).post(message)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32600)


async def test_broken_json_is_a_parse_error(connect, http, url):
    reply = await http.post(url, content=b"{", headers=(await connect()).headers)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32700)


async def test_initialize_must_be_complete(http, url):
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    reply = await http.post(url, json=message, headers={"Accept": ACCEPT})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, -32602)


async def test_an_unknown_method_is_not_found(connect):
    client = await connect()
    assert (await client.post(client.request("tasks/list"))).json()["error"]["code"] == -32601


async def test_an_id_in_use_is_refused(connect):
    client = await connect(ASKABLE)
    message = client.call("ask_name")
    async with client.stream(message) as reply:
        await anext(events(reply))
        assert (await client.post(message)).json()["error"]["code"] == -32600


async def test_a_session_has_one_get_stream_and_may_reopen_it(connect):
    client = await connect()
    async with client.listen() as stream:
        assert stream.status_code == 200
        assert await anext(stream.aiter_bytes()) == b"id: get-0\ndata: \n\n"
        async with client.listen() as second:
            assert second.status_code == 409
    for _ in range(100):  # each try is a round trip, in which the server sees the first one close
        async with client.listen() as again:
            if again.status_code == 200:
                return
    raise AssertionError("the GET stream stayed taken")


async def test_a_broken_stream_is_resumed_after_the_last_event_seen(connect):
    client = await connect(ASKABLE)
    async with client.stream(client.call("ask_name")) as reply:
        question = await anext(events(reply))
    assert question.id == "call1-1"
    await client.answer({"id": 0}, {"action": "accept", "content": {"name": "Ada"}})
    async with client.listen(**{"Last-Event-ID": question.id}) as resumed:
        rest = [event async for event in events(resumed)]
    assert [event.id for event in rest] == ["call1-2"]
    assert b"Nice to meet you, Ada." in rest[0].data


@pytest.mark.parametrize("event_id", ["nonsense", "call99-1", "call1-x"])
async def test_an_unknown_event_id_is_refused(connect, event_id):
    async with (await connect()).listen(**{"Last-Event-ID": event_id}) as reply:
        assert reply.status_code == 400


async def test_older_clients_get_no_empty_event(connect):
    client = await connect(ASKABLE, "2025-06-18")
    async with client.stream(client.call("ask_name")) as reply:
        assert (await anext(reply.aiter_bytes())).startswith(b"id: call1-1\ndata: {")


async def test_a_get_without_a_session_is_refused(http: httpx.AsyncClient, url):
    assert (await http.get(url, headers={"Accept": "text/event-stream"})).status_code == 400


async def test_health_is_answered(http, url):
    assert (await http.get(url.replace("/mcp", "/healthz"))).text == "ok"
