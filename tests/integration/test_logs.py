"""What a running gateway logs: one line of JSON for each request, and never what nobody should read there."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.gateway_app import gateway_for
from tests.support.messages import good_headers, good_request
from tests.support.processes import Process, running
from tests.support.raw_http import connect
from tests.support.scripted import ScriptedUpstream, Wire

WAIT_S = 15.0
SECRETS = {
    "the key of a user": "key-of-alice-s3cr3t",
    "a wrong key": "key-of-nobody-s3cr3t",
    "the token of a caller": "token-of-the-caller-s3cr3t",
    "the gateway's own token": "token-of-the-gateway-s3cr3t",
    "the query of an URL": "query-s3cr3t",
    "an argument": "argument-s3cr3t",
    "the argument of a prompt": "prompt-argument-s3cr3t",
    "a URI": "uri-s3cr3t",
    "an answer": "answer-s3cr3t",
    "a header that mirrors an argument": "mirrored-s3cr3t",
    "what a server says": "servers-words-s3cr3t",
}
ASKS: dict[str, Any] = {"elicitation": {"form": {}}}
FORM = {"type": "object", "properties": {"name": {"type": "integer"}}, "required": ["name"]}


def secret(what: str) -> str:
    return SECRETS[what]


@dataclass
class Client:
    """Sends requests to a gateway, and counts them.

    Attributes:
        statuses: how often each status came; 499 for those whose answer nobody waited for.
        states: the tokens of rounds.
    """

    base: str
    http: httpx.AsyncClient
    statuses: Counter[int] = field(default_factory=Counter)
    states: list[str] = field(default_factory=list)

    async def ask(
        self,
        upstream: str,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        return await self.send(upstream, *good_request(method, params, headers={**KEYS, **(headers or {})}, **more))

    async def send(self, upstream: str, headers: Any, body: bytes) -> dict[str, Any]:
        reply = await self.http.post(f"{self.base}/mcp/{upstream}", content=body, headers=headers)
        self.statuses[reply.status_code] += 1
        message: dict[str, Any] = json.loads(reply.content) if reply.content else {}
        if state := message.get("result", {}).get("requestState"):
            self.states.append(state)
        return message


KEYS = {"X-API-Key": secret("the key of a user"), "Authorization": f"Bearer {secret('the token of a caller')}"}


@asynccontextmanager
async def serving(upstream: ScriptedUpstream, folder: Path) -> AsyncIterator[tuple[Client, Process]]:
    """The gateway as a process of its own."""
    query = secret("the query of an URL")
    own = {"Authorization": "Bearer " + secret("the gateway's own token")}
    digest = sha256(secret("the key of a user").encode()).hexdigest()
    config = {
        "server": {"port": 0, "admin": False, "drain": "1s", "max_body_bytes": 100_000},
        "auth": {"type": "api_key", "keys": [{"name": "alice", "sha256": digest}]},
        "upstreams": {
            "docs": {"url": f"{upstream.url}?key={query}", "headers": own, "era": "legacy"},
            "caller": {"url": f"{upstream.url}?key={query}", "auth": {"type": "passthrough"}, "era": "legacy"},
            "down": {"url": f"http://127.0.0.1:1/mcp?key={query}", "headers": own},
            "nowhere": {"url": f"http://no-such-host.invalid/mcp?key={query}", "headers": own},
        },
    }
    path = folder / "gateway.yaml"
    path.write_text(json.dumps(config))

    def ready(line: str) -> str | None:
        told = json.loads(line) if line.startswith("{") else {}
        return f"http://127.0.0.1:{told['port']}" if told.get("event") == "serving" else None

    context = running("era-gateway", [sys.executable, "-m", "gateway", "serve", "-c", path], ready)
    process = await asyncio.to_thread(context.__enter__)
    try:
        async with httpx.AsyncClient(timeout=WAIT_S, trust_env=False) as http:
            yield Client(process.url, http), process
    finally:
        await asyncio.to_thread(context.__exit__, None, None, None)


def call(text: str = "argument-s3cr3t", tool: str = "echo") -> dict[str, Any]:
    return {"name": tool, "arguments": {"text": text}}


def quote_everything(upstream: ScriptedUpstream) -> None:
    """A server that repeats in its failures whatever it was sent."""
    upstream.capabilities = {"tools": {}, "prompts": {}, "resources": {}}
    region = {"type": "string", "x-mcp-header": "Region"}
    upstream.tools += [
        {"name": "route", "inputSchema": {"type": "object", "properties": {"region": region}}},
        {"name": 7, "description": secret("what a server says")},
    ]

    async def quote(wire: Wire) -> None:
        sent = wire.request.body.decode() + str(wire.request.headers) + secret("what a server says")
        match wire.request.params.get("name"):
            case "echo":
                await upstream.answer(wire)
            case "unauthorized":
                await wire.reply(401, sent.encode(), "text/plain", {"WWW-Authenticate": f'Bearer x="{len(sent)}"'})
            case "forbidden":
                await wire.error(4003, sent, status=403)
            case "nonsense":
                await wire.reply(200, b"<html>" + sent.encode(), "text/html")
            case "broken":
                await wire.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + sent.encode())
                wire.close()
            case "ask":
                await wire.sse()
                await wire.notify("notifications/message", {"level": "error", "data": sent})
                question = {"message": sent, "requestedSchema": FORM}
                await upstream.ask(wire, "elicitation/create", question, id="e-1")
                await wire.end(result={"content": [{"type": "text", "text": sent}]})
            case "slow":
                await wire.hang()
            case _:
                await wire.error(-32603, sent, sent)

    for method in ("tools/call", "prompts/get", "resources/read"):
        upstream.on(method, quote)


async def do_all(client: Client, upstream: ScriptedUpstream) -> None:
    """Make requests of every kind that can come to anything."""
    for name in ("docs", "caller"):
        for tool in ("echo", "unauthorized", "forbidden", "nonsense", "broken", "failing"):
            await client.ask(name, "tools/call", call(tool=tool))
        await client.ask(name, "prompts/get", {"name": "p", "arguments": {"a": secret("the argument of a prompt")}})
        await client.ask(name, "resources/read", {"uri": f"note://{secret('a URI')}", "name": "stray"})
        await client.ask(name, "tools/list")
        await client.ask(name, "server/discover")
    for name in ("down", "nowhere"):
        await client.ask(name, "tools/call", call())
    await go_through_a_round(client)
    await be_refused(client)
    await leave(client, upstream)


async def go_through_a_round(client: Client) -> None:
    about: dict[str, Any] = {**call(tool="ask"), "inputResponses": {}}
    first = await client.ask("docs", "tools/call", call(tool="ask"), capabilities=ASKS)
    [key] = first["result"]["inputRequests"]
    state = first["result"]["requestState"]
    answers: list[Any] = [
        {"action": "accept", "content": {"name": secret("an answer")}},
        {"action": secret("an answer")},
        {"action": "accept", "content": {secret("an answer"): 1}},
    ]
    for answer in answers:
        retry = {**about, "inputResponses": {key: answer}, "requestState": state}
        assert "error" in await client.ask("docs", "tools/call", retry, capabilities=ASKS)
    for damaged in (state[:-9], "x" + state, secret("an answer"), ""):
        retry = {**about, "requestState": damaged}
        assert "error" in await client.ask("docs", "tools/call", retry, capabilities=ASKS)
    good = {**about, "inputResponses": {key: {"action": "cancel"}}, "requestState": state}
    assert "result" in await client.ask("docs", "tools/call", good, capabilities=ASKS)
    assert "error" in await client.ask("docs", "tools/call", good, capabilities=ASKS)
    assert (await client.ask("docs", "tools/call", call(tool="ask")))["error"]["code"] == -32021


async def be_refused(client: Client) -> None:
    wrong = {"Authorization": None, "X-API-Key": secret("a wrong key")}
    nobody = {"Authorization": None, "X-API-Key": None}
    for headers in (wrong, nobody, {"Authorization": "Basic " + secret("a wrong key"), "X-API-Key": None}):
        assert "error" in await client.ask("docs", "tools/call", call(), headers=headers)
    route = {"name": "route", "arguments": {"region": secret("an argument")}}
    mirrored = {"Mcp-Param-Region": secret("a header that mirrors an argument")}
    assert (await client.ask("docs", "tools/call", route, headers=mirrored))["error"]["code"] == -32020
    await client.ask("docs", "resources/read", {"uri": f"note://{secret('a URI')}"}, headers={"Mcp-Name": "other"})
    await client.ask("docs", "prompts/get", {"name": "p", "arguments": [secret("the argument of a prompt")]})
    good_head = good_headers("tools/call", call(), KEYS)
    for body in (
        b'{"jsonrpc":"2.0","id":1,' + secret("an argument").encode(),
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"' + secret("an argument").encode() + b'"}',
        b'["' + secret("an argument").encode() + b'"]',
        b'"' + secret("an argument").encode() * 10_000 + b'"',
    ):
        await client.send("docs", good_head, body)
    note = b'{"jsonrpc":"2.0","method":"notifications/x","params":{"a":"%b"}}' % secret("an argument").encode()
    await client.send("docs", good_head, note)


async def leave(client: Client, upstream: ScriptedUpstream) -> None:
    """One client leaves in mid-call, one in the middle of its request."""
    before = len(upstream.received("tools/call"))
    headers, body = good_request("tools/call", call(tool="slow"), headers=KEYS)
    async with connect(client.base) as connection:
        await connection.send("POST", "/mcp/docs", headers, body)
        await upstream.seen("tools/call", before + 1)
    await upstream.seen("notifications/cancelled")
    async with connect(client.base) as connection:
        await connection.send("POST", "/mcp/docs", [*headers, (b"Content-Length", b"9999")], body)
        await client.http.get(f"{client.base}/healthz")
    client.statuses[499] += 2


async def test_each_request_is_one_line_of_json_without_any_secret(tmp_path: Path) -> None:
    async with ScriptedUpstream() as upstream:
        quote_everything(upstream)
        async with serving(upstream, tmp_path) as (client, process):
            await do_all(client, upstream)
        written = [
            line for line in process.lines if not line.startswith("warning: ")
        ]  # of the configuration, in plain text
        lines = [json.loads(line) for line in written]
        logged = Counter(line["status"] for line in lines if line["event"] == "request")
        assert logged == client.statuses
        assert set(logged) >= {200, 202, 400, 401, 403, 413, 499, 502}
        for line in lines:
            assert line["level"] in ("info", "warning"), line
        everything = "\n".join(written)
        for what, text in SECRETS.items():
            assert text not in everything, what
        assert client.states
        for state in client.states:
            assert state[:40] not in everything
        # The process knew the secrets: the server was sent them.
        sent = "".join(request.body.decode() + str(request.raw_headers) + request.path for request in upstream.log)
        for what in ("an argument", "the gateway's own token", "the token of a caller", "the query of an URL"):
            assert secret(what) in sent


async def test_a_request_is_told_by_what_an_operator_asks_for() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        await front.call("hi")
        await front.call("hi", tool="none")
        await upstream.stop()
        await front.call("hi")
        lines = [{k: v for k, v in line.items() if v is not None} for line in front.log if line["event"] == "request"]
        common = {"event": "request", "log_level": "info", "upstream": "docs", "rpc_method": "tools/call"}
        rest = {"principal": "anonymous", "stream": False}
        for line in lines:
            assert line.pop("ms") > 0
        assert lines == [
            {**common, **rest, "target": "echo", "status": 200, "result": "complete"},
            {**common, **rest, "target": "none", "status": 200, "code": -32602},
            {**common, **rest, "target": "echo", "status": 502, "code": -32603, "reason": "unreachable"},
        ]


async def test_both_values_of_a_mismatch_are_there_for_debugging_alone() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        await front.ask("resources/read", {"uri": "note://1"}, headers={"Mcp-Name": "note://2"})
        [line] = [line for line in front.log if line["event"] == "header mismatch"]
        assert (line["log_level"], line["header"], line["body"]) == ("debug", "note://2", "note://1")
        [line] = [line for line in front.log if line["event"] == "request"]
        assert (line["status"], line["code"]) == (400, -32020)
        assert "note://" not in repr(line)


async def test_what_nobody_foresaw_is_an_error_with_a_number_that_is_also_in_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        async def break_down(*_arguments: object) -> None:
            raise ZeroDivisionError(secret("an argument"))

        with monkeypatch.context() as patched:
            patched.setattr(type(front.gateway.upstreams["docs"]), "serve", break_down)
            answer = await front.call()
        assert (answer.status, answer.error["code"], answer.error["message"]) == (500, -32603, "Internal error")
        assert secret("an argument").encode() not in answer.body
        failures = [line for line in front.log if line["event"] == "unforeseen failure"]
        assert [line["error_id"] for line in failures] == [answer.error["data"]["errorId"]]
        assert [line["reason"] for line in front.log if line["event"] == "request"] == ["unforeseen"]
        for line in failures:  # this one was foreseen
            front.log.remove(line)  # type: ignore[attr-defined]
        assert (await front.call("next")).text == "next"
