"""Event streams as deployed servers write them: their framing, how they end or do not, and how large they get."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.upstream import connections
from gateway.upstream.resumption import MAX_ATTEMPTS
from tests.support.gateway_app import conversation, gateway_for
from tests.support.messages import PREFIX, good_request
from tests.support.scripted import ECHO, Handler, ScriptedUpstream, Wire

TEXT = "żółw → «𝄞»"
ASKS: dict[str, Any] = {"elicitation": {}}
PROGRESS: dict[str, Any] = {"progressToken": "p-1"}
UNKNOWN = (502, "outcome_unknown", False)


def message_for(wire: Wire) -> dict[str, Any]:
    result = {"content": [{"type": "text", "text": TEXT}]} | (
        {"resultType": "complete"} if wire.request.headers.get("mcp-method") else {}
    )
    return {"jsonrpc": "2.0", "id": wire.request.id, "result": result}


def written(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode()


# --- framing ---


def in_lines(message: dict[str, Any]) -> bytes:
    pretty = json.dumps(message, ensure_ascii=False, indent=2).encode()
    return b"".join(b"data: " + line + b"\n" for line in pretty.split(b"\n")) + b"\n"


def in_two_lines(message: dict[str, Any], end: bytes) -> bytes:
    whole = written(message)
    cut = whole.index(b",") + 1
    return b"data: " + whole[:cut] + end + b"data: " + whole[cut:] + end + end


Framing = Callable[[dict[str, Any]], bytes]

FRAMINGS: dict[str, Framing] = {
    "lf": lambda m: b"event: message\ndata: " + written(m) + b"\n\n",
    "crlf": lambda m: b"event: message\r\ndata: " + written(m) + b"\r\n\r\n",
    "cr": lambda m: b"event: message\rdata: " + written(m) + b"\r\r",
    "crlf and lf mixed": lambda m: b"event: message\r\ndata: " + written(m) + b"\n\r\n",
    "two data lines": lambda m: in_two_lines(m, b"\n"),
    "two data lines with crlf": lambda m: in_two_lines(m, b"\r\n"),
    "two data lines with cr": lambda m: in_two_lines(m, b"\r"),
    "one data line for each line of json": in_lines,
    "no blank after the colon": lambda m: b"event:message\ndata:" + written(m) + b"\n\n",
    "a byte order mark": lambda m: b"\xef\xbb\xbfdata: " + written(m) + b"\n\n",
    "comments all over": lambda m: b": ping\n\n:\n: a\ndata: " + written(m) + b"\n: b\n\n: ping\n\n",
    "a priming event": lambda m: b"id: e0\nretry: 1500\ndata:\n\nid: e1\ndata: " + written(m) + b"\n\n",
    "a priming event without data": lambda m: b"id: e0\n\ndata: " + written(m) + b"\n\n",
    "id after data and a field of its own": lambda m: b"data: " + written(m) + b"\nid: e1\nfoo: bar\nbare\n\n",
    "an event of another kind": lambda m: b"event: ping\ndata: 2026-11-30 12:00:00\n\ndata: " + written(m) + b"\n\n",
    "an empty event": lambda m: b"data\n\nevent: message\n\ndata: " + written(m) + b"\n\n",
    "an end without a newline": lambda m: b"data: " + written(m) + b"\n\n: bye",
    "an event without a blank line at the end": lambda m: b"data: " + written(m) + b"\n",
    "an event without a newline at the end": lambda m: b"data: " + written(m),
    "more events after the result": lambda m: b"data: " + written(m) + b'\n\ndata: {"jsonrpc":"2.0","method":"x"}\n\n',
    "a bare message": written,
}


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("framing", FRAMINGS.values(), ids=FRAMINGS)
async def test_a_result_is_read_however_it_is_framed_and_cut(framing: Framing, era: Any) -> None:
    async with ScriptedUpstream(era=era) as upstream, gateway_for(upstream) as front:
        for bytewise in (False, True):

            async def stream(wire: Wire, bytewise: bool = bytewise) -> None:
                await wire.sse(chunked=not bytewise)
                wire.bytewise = bytewise
                await wire.text(framing(message_for(wire)))
                await wire.end()

            upstream.on("tools/call", stream)
            answer = await front.call()
            assert (answer.status, answer.text) == (200, TEXT)
            assert not answer.notifications
        assert len(upstream.received("tools/call")) == 2


@pytest.mark.parametrize("media_type", ["text/event-stream;charset=UTF-8", "Text/Event-Stream", "application/json"])
async def test_a_stream_is_known_by_whatever_name(media_type: str) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call")
        async def stream(wire: Wire) -> None:
            await wire.sse(media_type=media_type)
            await wire.event(message_for(wire), name="message", id="e1")
            await wire.end()

        assert (await front.call()).text == TEXT


@pytest.mark.parametrize("encoding", ["gzip", "br"])
async def test_a_compressed_stream_is_read_as_it_is_flushed(encoding: str) -> None:
    relayed = asyncio.Event()
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call")
        async def stream(wire: Wire) -> None:
            await wire.sse(encoding=encoding)
            params = {"progressToken": wire.request.progress_token, "progress": 1, "message": TEXT}
            await wire.notify("notifications/progress", params)
            await relayed.wait()
            await wire.event(message_for(wire))
            await wire.end()

        headers, body = good_request("tools/call", {"name": "echo"}, meta=PROGRESS)
        async with front.http.stream("POST", front.url + "/mcp", headers=headers, content=body) as stream_:
            lines = stream_.aiter_lines()
            first = json.loads((await anext(lines)).removeprefix("data: "))
            assert first["params"] == {"progressToken": "p-1", "progress": 1, "message": TEXT}
            relayed.set()
            rest = [line async for line in lines if line]
        assert json.loads(rest[0].removeprefix("data: "))["result"]["content"][0]["text"] == TEXT


async def test_an_event_that_is_cut_off_is_no_result() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call")
        async def stream(wire: Wire) -> None:
            await wire.sse()
            await wire.text(b"data: " + written(message_for(wire))[:-5])
            await wire.end()

        assert (await front.call()).failure == UNKNOWN
        assert len(upstream.received("tools/call")) == 1


async def test_what_a_server_says_before_its_result_reaches_the_client_and_nothing_of_its_framing() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call")
        async def stream(wire: Wire) -> None:
            await wire.sse()
            for progress in (1, 2, 2, 1, 3):
                params = {"progressToken": wire.request.progress_token, "progress": progress}
                await wire.text(b": note\r\nretry: 10\r\n")
                await wire.notify("notifications/progress", params, id=f"e{progress}", name="message")
            await wire.notify("notifications/progress", {"progressToken": "other", "progress": 9})
            await wire.notify("notifications/message", {"level": "info", "data": "unasked for"})
            await wire.end(message_for(wire))

        answer = await front.call(meta=PROGRESS)
        assert answer.text == TEXT
        assert [message["params"] for message in answer.notifications] == [
            {"progressToken": "p-1", "progress": progress} for progress in (1, 2, 3)
        ]


# --- streams that end too early, or never ---


async def end_after_progress(wire: Wire) -> None:
    await wire.sse()
    await wire.notify("notifications/progress", {"progressToken": wire.request.progress_token, "progress": 1})
    await wire.end()


async def end_at_once(wire: Wire) -> None:
    await wire.sse()
    await wire.end()


async def end_with_a_comment(wire: Wire) -> None:
    await wire.sse(chunked=False)
    await wire.text(b": nothing to say\n\n")
    wire.close()


async def cut_a_chunk_short(wire: Wire) -> None:
    await wire.sse()
    await wire.raw(b"ff\r\ndata: ")
    wire.close()


@pytest.mark.parametrize("capabilities", [{}, ASKS], ids=["shared", "exclusive"])
@pytest.mark.parametrize("ends", [end_after_progress, end_at_once, end_with_a_comment, cut_a_chunk_short])
async def test_a_stream_that_ends_without_a_response_fails_its_call_at_once(
    ends: Handler, capabilities: dict[str, Any]
) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.on("tools/call", ends, times=1)
        failed = await front.call(meta=PROGRESS, capabilities=capabilities)
        expected = {"upstream": "docs", "reason": "outcome_unknown", "retryable": False}
        assert failed.error["data"] == expected
        assert failed.status == (200 if failed.is_stream else 502)
        assert len(upstream.received("tools/call")) == 1
        assert (await front.call("hi", capabilities=capabilities)).text == "hi"


class Polled:
    """A server that ends the stream of a call on purpose, to be asked for the rest with GET."""

    def __init__(self, upstream: ScriptedUpstream, rest: Callable[[Wire], Awaitable[None]]) -> None:
        self.closed_at_s = 0.0
        self.pause_s: list[float] = []
        self.call: Wire | None = None
        self._rest = rest
        upstream.on("tools/call", self._begin)
        upstream.on("GET", self._go_on)

    async def _begin(self, wire: Wire) -> None:
        self.call = wire
        await wire.sse()
        await wire.text(b"id: s1-1\nretry: 60\ndata:\n\n")
        await wire.end()
        self.closed_at_s = asyncio.get_running_loop().time()

    async def _go_on(self, wire: Wire) -> None:
        if "last-event-id" not in wire.request.headers:
            await wire.reply(405)
            return
        self.pause_s.append(asyncio.get_running_loop().time() - self.closed_at_s)
        await self._rest(wire)
        self.closed_at_s = asyncio.get_running_loop().time()


def resumed(upstream: ScriptedUpstream) -> list[str]:
    """The ids from which a stream was asked for again."""
    gets = upstream.received("GET")
    return [get.headers["last-event-id"] for get in gets if "last-event-id" in get.headers]


@pytest.mark.parametrize("capabilities", [{}, ASKS], ids=["shared", "exclusive"])
async def test_a_stream_that_wants_to_be_polled_is_polled_when_it_wants_to_be(capabilities: dict[str, Any]) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        parts = iter([b"id: s1-2\ndata:\n\n", b"", None])

        async def rest(wire: Wire) -> None:
            await wire.sse()
            part = next(parts)
            if part is None:
                assert polled.call is not None
                await wire.end(message_for(polled.call))
            else:
                await wire.text(part or b": \n")
                await wire.end()

        polled = Polled(upstream, rest)
        assert (await front.call(capabilities=capabilities)).text == TEXT
        assert resumed(upstream) == ["s1-1", "s1-2", "s1-2"]
        assert all(pause_s >= 0.059 for pause_s in polled.pause_s)
        for get in upstream.received("GET"):
            assert (get.session, get.headers["mcp-protocol-version"]) == ("sess-1", "2025-11-25")
        assert len(upstream.received("tools/call")) == 1


async def refuse_the_rest(wire: Wire) -> None:
    await wire.reply(405)


async def forget_the_session(wire: Wire) -> None:
    await wire.reply(404)


async def say_nothing_more(wire: Wire) -> None:
    await wire.sse()
    await wire.end()


async def hang_up(wire: Wire) -> None:
    wire.reset()


async def fail_for_now(wire: Wire) -> None:
    await wire.reply(502)


@pytest.mark.parametrize("capabilities", [{}, ASKS], ids=["shared", "exclusive"])
@pytest.mark.parametrize(
    ("rest", "attempts"),
    [
        (refuse_the_rest, 1),
        (forget_the_session, 1),
        (say_nothing_more, MAX_ATTEMPTS),
        (hang_up, MAX_ATTEMPTS),
        (fail_for_now, MAX_ATTEMPTS),
    ],
)
async def test_a_stream_that_cannot_be_picked_up_is_given_up_and_its_call_not_repeated(
    rest: Handler, attempts: int, capabilities: dict[str, Any]
) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        async def go_on(wire: Wire) -> None:
            outcome = rest(wire)
            if outcome is not None:
                await outcome

        Polled(upstream, go_on)
        assert (await front.call(capabilities=capabilities)).failure == UNKNOWN
        assert 1 <= len(resumed(upstream)) <= 2 * attempts
        assert len(upstream.received("tools/call")) == 1


async def test_a_stream_that_breaks_after_an_event_id_is_picked_up_there() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        calls: list[Wire] = []

        @upstream.on("tools/call")
        async def break_off(wire: Wire) -> None:
            calls.append(wire)
            await wire.sse()
            params = {"progressToken": wire.request.progress_token, "progress": 1}
            await wire.notify("notifications/progress", params, id="e7")
            await asyncio.sleep(0)
            wire.close()

        @upstream.on("GET")
        async def go_on(wire: Wire) -> None:
            if "last-event-id" in wire.request.headers:
                await wire.sse()
                params = {"progressToken": calls[0].request.progress_token, "progress": 2}
                await wire.notify("notifications/progress", params, id="e8")
                await wire.end(message_for(calls[0]))
            else:
                await wire.reply(405)

        answer = await front.call(meta=PROGRESS)
        assert answer.text == TEXT
        assert [message["params"]["progress"] for message in answer.notifications] == [1, 2]
        assert resumed(upstream) == ["e7"]
        assert len(calls) == 1


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_stream_that_stays_open_after_the_result_holds_nobody_up(
    era: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "END_GRACE_S", 0.1)
    async with ScriptedUpstream(era=era) as upstream, gateway_for(upstream) as front:
        left = asyncio.Event()

        @upstream.on("tools/call")
        async def stay(wire: Wire) -> None:
            await wire.sse()
            await wire.event(message_for(wire))
            await wire.hang()
            left.set()

        assert [(await front.call()).text for _ in range(2)] == [TEXT, TEXT]
        assert not left.is_set()
        await asyncio.wait_for(left.wait(), 5)  # and the connection is dropped in the end


# --- large messages ---


def tools(count: int, size: int) -> list[dict[str, Any]]:
    return [{**ECHO, "name": f"tool_{number}", "description": "x" * size} for number in range(count)]


async def test_a_list_of_megabytes_in_one_event_arrives_whole() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        many = tools(1000, 2000)

        @upstream.on("tools/list")
        async def stream(wire: Wire) -> None:
            await wire.sse()
            await wire.end(result={"tools": many})

        answer = await front.ask("tools/list")
        assert len(answer.body) > 2_000_000
        assert answer.result["tools"] == many


@pytest.mark.parametrize("as_stream", [False, True])
async def test_a_result_of_megabytes_arrives_whole_and_as_json(as_stream: bool) -> None:
    large = "żx" * 4_000_000
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call")
        async def give(wire: Wire) -> None:
            result = {"content": [{"type": "text", "text": large}]}
            if as_stream:
                await wire.sse()
                await wire.end(result=result)
            else:
                await wire.result(result)

        answer = await front.call()
        assert not answer.is_stream  # readers of events have limits of their own
        assert len(answer.body) > 12_000_000
        assert answer.text == large


async def test_many_large_notifications_arrive_whole_and_in_order() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call")
        async def stream(wire: Wire) -> None:
            await wire.sse()
            for number in range(200):
                params = {"progressToken": wire.request.progress_token, "progress": number, "message": "y" * 20_000}
                await wire.notify("notifications/progress", params)
            await wire.end(message_for(wire))

        answer = await front.call(meta=PROGRESS)
        assert answer.text == TEXT
        assert [message["params"]["progress"] for message in answer.notifications] == list(range(200))
        assert {len(message["params"]["message"]) for message in answer.notifications} == {20_000}


async def large_json(wire: Wire) -> None:
    await wire.result({"tools": tools(1, 200_000), "content": []})


async def large_event(wire: Wire) -> None:
    await wire.sse()
    await wire.end(result={"tools": tools(1, 200_000), "content": []})


async def large_once_decompressed(wire: Wire) -> None:
    await wire.result({"tools": tools(1, 200_000), "content": []}, encoding="gzip")


async def endless_event(wire: Wire) -> None:
    await wire.sse()
    while not wire.gone.is_set():
        await wire.text(b"data: " + b"z" * 10_000 + b"\n")


async def endless_body(wire: Wire) -> None:
    await wire.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{")
    while not wire.gone.is_set():
        await wire.raw(b" " * 10_000)
    wire.close()


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
@pytest.mark.parametrize("large", [large_json, large_event, large_once_decompressed, endless_event, endless_body])
async def test_what_is_over_the_limit_is_an_error_that_names_the_limit_and_nothing_less(
    large: Handler, method: str, era: Any
) -> None:
    async with ScriptedUpstream(era=era) as upstream, gateway_for(upstream, max_message_bytes="100kB") as front:
        upstream.on(method, large, times=1)
        await front.ask("server/discover")
        params = {"name": "echo", "arguments": {"text": "x"}} if method == "tools/call" else {}
        if method == "tools/call":
            await front.ask("tools/list")
        failed = await front.ask(method, params)
        assert failed.failure == (502, "too_large", False)
        assert "'docs'" in failed.error["message"]
        assert "100000 bytes" in failed.error["message"]
        assert (await front.call("hi")).text == "hi"
        assert len(upstream.received("initialize")) <= 1


async def test_tools_that_cannot_be_listed_can_be_called() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream, max_message_bytes="100kB") as front:
        upstream.on("tools/list", large_json)
        assert (await front.call("hi")).text == "hi"


async def test_a_request_over_the_limit_never_reaches_a_server() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        headers, body = good_request("tools/call", {"name": "echo", "arguments": {"text": "x" * 5_000_000}})
        refused = await front.http.post(front.url + "/mcp", headers=headers, content=body)
        assert refused.status_code == 413
        assert upstream.log == []


async def test_a_request_of_megabytes_within_the_limit_arrives_whole() -> None:
    large = "ż" * 2_500_000
    async with (
        ScriptedUpstream() as upstream,
        gateway_for(upstream, settings={"server": {"max_body_bytes": "40MiB"}}) as front,
    ):
        assert (await front.call(large)).text == large
        assert conversation(upstream).count("tools/call") == 1


async def test_a_client_without_a_progress_token_or_a_level_gets_plain_json() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.capabilities = {"tools": {}, "logging": {}}

        @upstream.on("tools/call")
        async def stream(wire: Wire) -> None:
            await wire.sse()
            await wire.notify("notifications/message", {"level": "error", "data": "boo"})
            await wire.end(message_for(wire))

        upstream.on("logging/setLevel", lambda wire: wire.result({}))
        assert not (await front.call()).is_stream
        told = await front.call(meta={f"{PREFIX}logLevel": "info"})
        assert [message["params"] for message in told.notifications] == [{"level": "error", "data": "boo"}]
