"""Lists, results and errors of servers as they are deployed: what passes, what is mended, what is refused."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Literal

import pytest

from tests.support.gateway_app import Front, gateway_for
from tests.support.messages import PREFIX, good_headers
from tests.support.scripted import ECHO, Handler, ScriptedUpstream, Wire

Era = Literal["legacy", "modern"]
eras = pytest.mark.parametrize("era", ["legacy", "modern"])

OFFERED: dict[str, Any] = {"tools": {}, "prompts": {}, "resources": {}, "completions": {}}
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
lists = pytest.mark.parametrize("method", LISTS)
JSON = "application/json"
REGION = {"type": "string", "x-mcp-header": "Region"}


def entry(method: str, name: str) -> dict[str, Any]:
    """An entry of a list that nobody has to mend."""
    if method == "tools/list":
        return {"name": name, "inputSchema": {"type": "object"}}
    key = {"resources/list": "uri", "resources/templates/list": "uriTemplate"}.get(method)
    return {"name": name} if key is None else {"name": name, key: f"note://{name}"}


# --- pages ---


def page_script(upstream: ScriptedUpstream, method: str, cursors: Mapping[str | None, Any]) -> None:
    """Serve pages: for each cursor the one that follows; `...` leaves the member out. Unknown cursors are refused."""

    async def page(wire: Wire) -> None:
        cursor = wire.request.params.get("cursor")
        if cursor not in cursors:
            await wire.error(-32602, "Invalid cursor")
            return
        following = {} if cursors[cursor] is ... else {"nextCursor": cursors[cursor]}
        await wire.result(upstream._in_era({LISTS[method]: [entry(method, f"after {cursor}")], **following}))

    upstream.capabilities = OFFERED
    upstream.on(method, page)


async def walk(front: Front, method: str, most: int = 10) -> list[dict[str, Any]]:
    """All pages, by sending back what was received."""
    pages = [(await front.ask(method)).result]
    while "nextCursor" in pages[-1] and len(pages) < most:
        pages.append((await front.ask(method, {"cursor": pages[-1]["nextCursor"]})).result)
    return pages


def sent_cursors(upstream: ScriptedUpstream, method: str) -> list[Any]:
    return [request.params.get("cursor", "none sent") for request in upstream.received(method)]


@lists
@pytest.mark.parametrize("end", [None, ...], ids=["null", "left out"])
async def test_cursors_pass_both_ways_as_they_are_and_null_is_the_end(method: str, end: Any) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        page_script(upstream, method, {None: "p2", "p2": "", "": end})
        pages = await walk(front, method)
        assert [page.get("nextCursor", "none") for page in pages] == ["p2", "", "none"]
        assert [page[LISTS[method]][0]["name"] for page in pages] == ["after None", "after p2", "after "]
        assert {(page["ttlMs"], page["cacheScope"]) for page in pages} == {(0, "private")}
        assert sent_cursors(upstream, method) == ["none sent", "p2", ""]


@lists
async def test_a_null_cursor_is_no_cursor(method: str) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        page_script(upstream, method, {None: ...})
        await front.ask(method, {"cursor": None})
        assert sent_cursors(upstream, method) == ["none sent"]


@lists
async def test_a_cursor_of_any_characters_passes_and_an_unknown_one_is_the_servers_to_refuse(method: str) -> None:
    odd = 'e\u0301 "\\/\n\x00 =?base64?aGk=?= ' + "x" * 5000
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        page_script(upstream, method, {None: odd, odd: ...})
        assert len(await walk(front, method)) == 2
        assert sent_cursors(upstream, method) == ["none sent", odd]
        answer = await front.ask(method, {"cursor": "unknown"})
        assert (answer.status, answer.error["code"]) == (200, -32602)


@lists
@pytest.mark.parametrize("cursor", [2, True, {}, ["p2"]])
async def test_a_cursor_that_is_no_text_is_an_error_and_no_early_end(method: str, cursor: Any) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        page_script(upstream, method, {None: cursor})
        answer = await front.ask(method)
        assert answer.failure == (502, "nonsense", False)
        assert "nextCursor" in answer.error["message"]


async def test_a_cursor_that_comes_again_and_again_ends_the_gateways_own_walk() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        page_script(upstream, "tools/list", {None: "again", "again": "again"})
        assert (await front.call("hi")).text == "hi"
        assert sent_cursors(upstream, "tools/list") == ["none sent", "again"]


async def test_pages_without_end_end_the_gateways_own_walk_and_are_logged() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/list")
        async def endless(wire: Wire) -> None:
            number = int(wire.request.params.get("cursor", "0")) + 1
            await wire.result({"tools": [entry("tools/list", str(number))], "nextCursor": str(number)})

        assert (await front.call("hi")).text == "hi"
        assert len(upstream.received("tools/list")) == 100
        assert [line for line in front.log if line["event"] == "tools list cut" and line["upstream"] == "docs"]
        assert (await front.call("again")).text == "again"
        assert len(upstream.received("tools/list")) == 100


async def test_an_empty_cursor_does_not_keep_later_pages_from_being_known() -> None:
    marked = {"name": "route", "inputSchema": {"type": "object", "properties": {"region": REGION}}}
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/list")
        async def page(wire: Wire) -> None:
            is_first = "cursor" not in wire.request.params
            await wire.result({"tools": [ECHO], "nextCursor": ""} if is_first else {"tools": [marked]})

        await front.ask("tools/list")
        call = {"name": "route", "arguments": {"region": "eu"}}
        answer = await front.ask("tools/call", call, headers={"Mcp-Param-Region": "us"})
        assert (answer.status, answer.error["code"]) == (400, -32020)
        assert upstream.received("tools/call") == []


# --- entries ---

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
OBJECT = {"type": "object"}


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"next": schema}}
    return schema


MENDED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no schema": ({}, {"inputSchema": OBJECT}),
    "null schema": ({"inputSchema": None}, {"inputSchema": OBJECT}),
    "schema that is a list": ({"inputSchema": []}, {"inputSchema": OBJECT}),
    "only a dialect": ({"inputSchema": {"$schema": DRAFT_7}}, {"inputSchema": {"$schema": DRAFT_7, **OBJECT}}),
    "alternatives without a type": (
        {"inputSchema": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}},
        {"inputSchema": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], **OBJECT}},
    ),
    "reference without a type": (
        {"inputSchema": {"$ref": "#/components/schemas/X"}},
        {"inputSchema": {"$ref": "#/components/schemas/X", **OBJECT}},
    ),
    "object or null": (
        {"inputSchema": {"type": ["object", "null"], "properties": {"a": {}}}},
        {"inputSchema": {"type": "object", "properties": {"a": {}}}},
    ),
    "properties null": (
        {"inputSchema": {"type": "object", "properties": None}},
        {"inputSchema": {"type": "object", "properties": {}}},
    ),
    "bad output schema": (
        {"inputSchema": OBJECT, "outputSchema": {"type": 5}},
        {"inputSchema": OBJECT},
    ),
    "null description": ({"inputSchema": OBJECT, "description": None}, {"inputSchema": OBJECT}),
}
KEPT: dict[str, dict[str, Any]] = {
    "text or null": {"type": "object", "properties": {"x": {"type": ["string", "null"]}}},
    "a property that is called $ref": {"type": "object", "properties": {"$ref": {"type": "string"}}},
    "a property that is called type": {"type": "object", "properties": {"type": {"type": "string"}}},
    "unknown keywords": {"type": "object", "x-own": {"deep": [1, 2.5, None]}, "required": [], "nullable": True},
    "references outside of $defs": {"type": "object", "properties": {"a": {"$ref": "#/properties/b"}, "b": {}}},
    "all of 2020-12": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:x",
        "$defs": {"n": {"$anchor": "n", "type": "number"}},
        "type": "object",
        "if": {"required": ["a"]},
        "then": {"required": ["b"]},
        "else": False,
        "properties": {"a": {"$ref": "#n"}, "b": True},
    },
    "nested 200 deep": deep(200),
}
LEFT_OUT: dict[str, Any] = {
    "a schema of text": {"name": "bad", "inputSchema": {"type": "string"}},
    "a null entry": None,
    "a text entry": "bad",
    "no name": {"inputSchema": OBJECT},
    "an empty name": {"name": "", "inputSchema": OBJECT},
    "a name that is a number": {"name": 7, "inputSchema": OBJECT},
    "the name of an earlier tool": {**ECHO, "description": "another"},
    "a tool for tasks alone": {"name": "bad", "inputSchema": OBJECT, "execution": {"taskSupport": "required"}},
    "a header name with a space": {
        "name": "bad",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": "a b"}}},
    },
}


async def listed(front: Front) -> list[dict[str, Any]]:
    tools: list[dict[str, Any]] = (await front.ask("tools/list")).result["tools"]
    return tools


def mended_warnings(front: Front) -> list[str]:
    return [line["what"] for line in front.log if line["event"] == "list entry mended or left out"]


@pytest.mark.parametrize(("sent", "expected"), MENDED.values(), ids=MENDED)
async def test_a_tool_whose_fault_has_a_plain_meaning_is_mended_and_can_be_called(
    sent: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.tools = [{"name": "odd", **sent}, ECHO]
        upstream.on("tools/call", lambda wire: wire.result({"content": []}))
        for _ in range(2):
            assert await listed(front) == [{"name": "odd", **expected}, ECHO]
        [warning] = mended_warnings(front)
        assert warning.startswith("tool 'odd' is mended: ")
        await front.call(tool="odd")
        assert upstream.received("tools/call")[0].params["name"] == "odd"


@pytest.mark.parametrize("schema", KEPT.values(), ids=KEPT)
async def test_a_valid_schema_passes_with_its_order_and_whatever_is_in_it(schema: Mapping[str, Any]) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.tools = [ECHO, {"name": "odd", "inputSchema": schema, "outputSchema": schema}]
        answer = await front.ask("tools/list")
        assert json.dumps(schema, separators=(",", ":")).encode() in answer.body
        assert answer.result["tools"][0] == ECHO
        assert mended_warnings(front) == []


@pytest.mark.parametrize("bad", LEFT_OUT.values(), ids=LEFT_OUT)
async def test_a_tool_that_nobody_could_call_is_left_out_alone_and_named_once(bad: Any) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.tools = [ECHO, bad]
        for _ in range(2):
            assert await listed(front) == [ECHO]
        [warning] = mended_warnings(front)
        assert "is left out: " in warning
        assert (await front.call("hi")).text == "hi"


async def test_what_a_schema_refers_to_is_never_fetched() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        schema = {"$ref": upstream.url, "$schema": upstream.url, "type": "object"}
        upstream.tools = [ECHO, {"name": "odd", "inputSchema": schema, "outputSchema": {"$ref": upstream.url}}]
        assert (await listed(front))[1]["inputSchema"] == schema
        await front.call("hi")
        assert {request.verb for request in upstream.log if request.session is None} == {"POST"}
        assert set(upstream.methods()) <= {
            *("server/discover", "initialize", "notifications/initialized"),
            *("GET", "tools/list", "tools/call"),
        }


@eras
@pytest.mark.parametrize("result", [{}, {"tools": {}}, {"tools": "none"}], ids=["missing", "object", "text"])
async def test_a_list_without_its_entries_is_an_error_and_never_empty(era: Era, result: Mapping[str, Any]) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:
        upstream.on("tools/list", lambda wire: wire.result(upstream._in_era(dict(result))))
        assert (await front.ask("tools/list")).failure == (502, "nonsense", False)


@lists
async def test_a_null_list_is_an_empty_one(method: str) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.capabilities = OFFERED
        upstream.on(method, lambda wire: wire.result({LISTS[method]: None}))
        assert (await front.ask(method)).result[LISTS[method]] == []


@lists
async def test_one_bad_entry_does_not_hide_the_others_of_any_list(method: str) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.capabilities = OFFERED
        good = [entry(method, "a"), entry(method, "b")]
        upstream.on(method, lambda wire: wire.result({LISTS[method]: [good[0], None, {}, 7, good[1], good[0]]}))
        assert (await front.ask(method)).result[LISTS[method]] == good
        assert len(mended_warnings(front)) == 4


# --- results ---

CARD = {"type": "x-card", "body": {"n": 1}, "_meta": {"com.ex/k": 1}}
BLOCKS = [
    {"type": "text", "text": "t", "annotations": {"audience": ["user"], "priority": 0.5}, "_meta": {"com.ex/k": [1]}},
    {"type": "image", "data": "AAAA", "mimeType": "image/png"},
    {"type": "resource_link", "uri": "note://1", "name": "n", "mimeType": "text/x-own; a=b", "size": 3},
    {"type": "resource", "resource": {"uri": "note://1", "mimeType": "a/b", "text": "", "_meta": {"x": None}}},
    CARD,
]
RESULTS: dict[str, dict[str, Any]] = {
    "structured beside no content": {"content": [], "structuredContent": {"n": 1}},
    "structured against the schema": {"content": [{"type": "text", "text": "t"}], "structuredContent": {"m": "x"}},
    "failed, against the schema": {"content": [], "structuredContent": {"m": "x"}, "isError": True},
    "text alone, against the schema": {"content": [{"type": "text", "text": "t"}]},
    "failed with text": {"content": [{"type": "text", "text": "no"}], "isError": True},
    "blocks of all kinds": {"content": BLOCKS, "isError": False},
    "members of its own": {"content": [], "x-own": {"a": [None]}, "_meta": {"com.ex/k": [1], "traceparent": "x"}},
    "a list as structured": {"content": [], "structuredContent": [1, {"a": None}]},
    "a number as structured": {"content": [], "structuredContent": 0},
    "false as structured": {"content": [], "structuredContent": False},
    "null as structured": {"content": [], "structuredContent": None},
}


@eras
@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
async def test_a_tools_result_passes_as_it_is(era: Era, result: dict[str, Any]) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        upstream.tools = [{**ECHO, "outputSchema": schema}]
        upstream.on("tools/call", lambda wire: wire.result(upstream._in_era({}) | result))
        await listed(front)
        answer = await front.call()
        info = {f"{PREFIX}serverInfo": upstream.server_info} if era == "legacy" or "_meta" not in result else {}
        assert answer.result == {**result, "resultType": "complete", "_meta": {**result.get("_meta", {}), **info}}
        assert answer.status == 200


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ({}, []),
        ({"content": None}, []),
        ({"isError": True}, []),
        ({"structuredContent": {"n": 1}}, [{"type": "text", "text": '{"n":1}'}]),
        ({"structuredContent": [1.0, "é"]}, [{"type": "text", "text": '[1.0,"é"]'}]),
        ({"structuredContent": None}, []),
    ],
)
async def test_a_result_without_content_gets_what_the_schema_demands(result: dict[str, Any], content: Any) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.on("tools/call", lambda wire: wire.result(result))
        answer = await front.call()
        assert {**answer.result, "_meta": 0} == {**result, "content": content, "resultType": "complete", "_meta": 0}


async def test_tools_keep_what_they_say_of_themselves_and_lose_what_only_sessions_have() -> None:
    tool = {
        **ECHO,
        "title": "Echo",
        "description": "d" * 40_000,
        "annotations": {"readOnlyHint": True, "x": 1},
        "icons": [{"src": "data:,", "sizes": ["48x48"]}],
        "_meta": {"com.ex/ui": {"a": 1}},
        "x-own": 1,
    }
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.tools = [{**tool, "execution": {"taskSupport": "optional"}}]
        assert await listed(front) == [tool]


async def test_a_resource_passes_as_it_is_with_hints_of_its_own() -> None:
    contents = [
        {"uri": "note://1", "mimeType": "text/x-own; charset=koi8-r", "text": "", "_meta": {"a/b": 1}},
        {"uri": "note://1#b", "blob": "AAAA", "x-own": None},
    ]
    result = {"contents": contents, "ttlMs": 5, "cacheScope": "public", "_meta": {"a/b": 1}}
    async with ScriptedUpstream() as upstream, gateway_for(upstream, settings={"cache": {"ttl": "1m"}}) as front:
        upstream.capabilities = OFFERED
        upstream.on("resources/read", lambda wire: wire.result(result))
        answer = await front.ask("resources/read", {"uri": "note://1"})
        meta = {"a/b": 1, f"{PREFIX}serverInfo": upstream.server_info}
        assert answer.result == {**result, "resultType": "complete", "_meta": meta}


@pytest.mark.parametrize("hints", [{}, {"ttlMs": -1, "cacheScope": "shared"}, {"ttlMs": 1.5}, {"ttlMs": True}])
async def test_hints_that_are_missing_or_no_good_are_the_operators(hints: dict[str, Any]) -> None:
    settings = {"cache": {"ttl": "1m", "scope": "public"}}
    async with ScriptedUpstream() as upstream, gateway_for(upstream, settings=settings) as front:
        upstream.capabilities = OFFERED
        upstream.on("resources/read", lambda wire: wire.result({"contents": [], **hints}))
        result = (await front.ask("resources/read", {"uri": "note://1"})).result
        assert (result["ttlMs"], result["cacheScope"], result["contents"]) == (60_000, "public", [])


NUMBERS = [
    *("12345678901234567890", "-9223372036854775808", "18446744073709551616", "123456789012345678901234567890"),
    *("1.0", "0.1", "1e-7", "-0.0", "5e-324"),
]
STRINGS = ['"\\u0000"', '"\\ud83d"', '"a\\ud83d\\ud83db"', '"\\ud83d\\ude00"', '"é\\u2028"']


@eras
@pytest.mark.parametrize("raw", [*NUMBERS, *STRINGS, "1E2", "1.7976931348623157e308", "[12345678901234567890,1.0]"])
async def test_numbers_and_strings_mean_the_same_on_the_other_side(era: Era, raw: str) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call")
        async def answer(wire: Wire) -> None:
            result = json.dumps(upstream._in_era({"content": []}))[:-1]
            head = json.dumps({"jsonrpc": "2.0", "id": wire.request.id})[:-1]
            await wire.reply(200, f'{head},"result":{result},"structuredContent":{raw}}}}}'.encode(), JSON)

        meta = json.dumps({f"{PREFIX}protocolVersion": "2026-07-28", f"{PREFIX}clientCapabilities": {}})
        body = f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"n":{raw}}},'
        headers = good_headers("tools/call", {"name": "echo"})
        reply = await front.http.post(f"{front.url}/mcp", content=f'{body}"_meta":{meta}}}}}'.encode(), headers=headers)
        assert reply.status_code == 200
        received = upstream.received("tools/call")[0].body
        if raw in NUMBERS:  # digit for digit
            assert f'"n":{raw}'.encode() in received
            assert f'"structuredContent":{raw}'.encode() in reply.content
        expected = json.loads(raw)
        assert json.loads(received)["params"]["arguments"]["n"] == expected
        assert repr(json.loads(reply.content)["result"]["structuredContent"]) == repr(expected)


async def test_a_number_that_no_double_can_hold_is_an_error_and_no_infinity() -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:

        @upstream.on("tools/call")
        async def answer(wire: Wire) -> None:
            head = json.dumps({"jsonrpc": "2.0", "id": wire.request.id})[:-1]
            await wire.reply(200, f'{head},"result":{{"content":[],"n":1e999}}}}'.encode(), JSON)

        assert (await front.call()).status == 502
        assert (await front.ask("tools/list")).status == 200


@pytest.mark.parametrize("kind", ["complete", "weird", 7, None])
async def test_whatever_an_old_server_calls_its_result_it_is_complete(kind: Any) -> None:
    async with ScriptedUpstream() as upstream, gateway_for(upstream) as front:
        upstream.on("tools/call", lambda wire: wire.result({"content": [], "resultType": kind}))
        assert (await front.call()).result["resultType"] == "complete"


@pytest.mark.parametrize("kind", ["weird", 7, None])
async def test_a_modern_result_of_a_kind_that_nobody_declared_is_refused(kind: Any) -> None:
    async with ScriptedUpstream("modern") as upstream, gateway_for(upstream) as front:
        upstream.on("tools/call", lambda wire: wire.result({"content": [], "resultType": kind}))
        answer = await front.call()
        assert (answer.status, answer.error["code"]) == (502, -32603)


# --- errors ---

ASKING: dict[str, dict[str, Any]] = {
    "tools/call": {"name": "echo", "arguments": {}},
    "prompts/get": {"name": "p"},
    "resources/read": {"uri": "note://1"},
}
NOT_OURS = [-32020, -32021, -32022, -32042, -32062, -32099]
PASSED = [-32000, -32001, -32010, -32019, -32100, -32600, -32603, -32700, 4001, 1, -1, 2**40]


async def failed(front: Front, method: str) -> dict[str, Any]:
    answer = await front.ask(method, ASKING[method])
    assert answer.status == 200
    return answer.error


@pytest.fixture
def failing() -> ScriptedUpstream:
    upstream = ScriptedUpstream()
    upstream.capabilities = OFFERED
    return upstream


def fail_with(upstream: ScriptedUpstream, error: Any) -> None:
    """Answer whatever may fail with an error, as it stands here."""

    async def fail(wire: Wire) -> None:
        await wire.message({"jsonrpc": "2.0", "id": wire.request.id, "error": error})

    for method in ASKING:
        upstream.on(method, fail)


@pytest.mark.parametrize("method", ASKING)
@pytest.mark.parametrize("code", PASSED)
async def test_a_servers_own_codes_pass_with_message_and_data(
    failing: ScriptedUpstream, method: str, code: int
) -> None:
    error = {"code": code, "message": "odd", "data": {"k": [1]}}
    async with failing, gateway_for(failing) as front:
        fail_with(failing, error)
        assert await failed(front, method) == error


@pytest.mark.parametrize("method", ASKING)
@pytest.mark.parametrize("code", NOT_OURS)
async def test_codes_that_only_the_specification_gives_are_not_passed_on(
    failing: ScriptedUpstream, method: str, code: int
) -> None:
    async with failing, gateway_for(failing) as front:
        fail_with(failing, {"code": code, "message": "odd", "data": {"k": 1}})
        expected = {"code": -32603, "message": "odd", "data": {"k": 1, "originalCode": code}}
        assert await failed(front, method) == expected


@pytest.mark.parametrize(
    ("method", "code", "message", "expected"),
    [
        ("resources/read", -32002, "Resource not found", {"code": -32602, "data": {"k": 1, "uri": "note://1"}}),
        ("tools/call", -32002, "odd", {"code": -32602, "data": {"k": 1}}),
        ("resources/read", -32001, "odd", {"code": -32001, "data": {"k": 1}}),
        ("resources/read", 0, "Unknown resource: note://1", {"code": -32602, "data": {"k": 1, "uri": "note://1"}}),
        ("prompts/get", 0, "Unknown prompt: p", {"code": -32602, "data": {"k": 1, "name": "p"}}),
        ("tools/call", 0, "boom", {"code": -32603, "data": {"k": 1}}),
        ("tools/call", -32601, "Unknown tool", {"code": -32602, "data": {"k": 1, "name": "echo"}}),
        ("prompts/get", -32601, "Unknown prompt", {"code": -32602, "data": {"k": 1, "name": "p"}}),
    ],
)
async def test_codes_that_mean_something_else_now_are_translated(
    failing: ScriptedUpstream, method: str, code: int, message: str, expected: Mapping[str, Any]
) -> None:
    async with failing, gateway_for(failing) as front:
        fail_with(failing, {"code": code, "message": message, "data": {"k": 1}})
        assert await failed(front, method) == {**expected, "message": message}


NO_CODES: dict[str, Any] = {
    "text": "-32602",
    "float": -32602.0,
    "bool": True,
    "null": None,
    "beyond 64 bits": 2**70,
}


@pytest.mark.parametrize("code", NO_CODES.values(), ids=NO_CODES)
async def test_what_is_no_code_is_an_internal_error(failing: ScriptedUpstream, code: Any) -> None:
    async with failing, gateway_for(failing) as front:
        fail_with(failing, {"code": code, "message": "odd"})
        assert await failed(front, "tools/call") == {"code": -32603, "message": "odd"}


@pytest.mark.parametrize("error", [{"code": 4001}, {"code": 4001, "message": None}, {"code": 4001, "message": ""}])
async def test_an_error_always_has_a_message(failing: ScriptedUpstream, error: Any) -> None:
    async with failing, gateway_for(failing) as front:
        fail_with(failing, error)
        found = await failed(front, "tools/call")
        assert found["code"] == 4001
        assert found["message"]


@pytest.mark.parametrize("error", ["boom", 7, [], {}])
async def test_an_error_that_is_none_is_one_all_the_same(failing: ScriptedUpstream, error: Any) -> None:
    async with failing, gateway_for(failing) as front:
        fail_with(failing, error)
        assert (await failed(front, "tools/call"))["code"] == -32603


async def test_no_contents_are_contents(failing: ScriptedUpstream) -> None:
    async with failing, gateway_for(failing) as front:
        failing.on("resources/read", lambda wire: wire.result({"contents": []}))
        assert (await front.ask("resources/read", {"uri": "note://none"})).result["contents"] == []


# --- statuses ---

WITH_STATUS: dict[str, tuple[int, dict[str, Any]]] = {
    "400 with invalid params": (400, {"code": -32602, "message": "text is missing", "data": {"k": 1}}),
    "404 with invalid params": (404, {"code": -32602, "message": "no such thing", "data": {"k": 1}}),
    "422 with its own": (422, {"code": 4001, "message": "no"}),
    "500 with an internal error": (500, {"code": -32603, "message": "boom", "data": {"k": 1}}),
    "503 with its own": (503, {"code": 4001, "message": "no"}),
}


@eras
@pytest.mark.parametrize("method", ["tools/call", "prompts/get"])
@pytest.mark.parametrize(("status", "error"), WITH_STATUS.values(), ids=WITH_STATUS)
async def test_an_error_passes_whatever_status_it_came_with(
    era: Era, method: str, status: int, error: dict[str, Any]
) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:
        upstream.capabilities = OFFERED
        await front.call("warm")

        async def fail(wire: Wire) -> None:
            await wire.message({"jsonrpc": "2.0", "id": wire.request.id, "error": error}, status=status)

        upstream.on(method, fail, times=1)
        assert await failed(front, method) == error
        assert (await front.call("next")).text == "next"
        assert len(upstream.received("initialize")) == (era == "legacy")
        assert len(upstream.received(method)) == (3 if method == "tools/call" else 1)


@eras
async def test_a_forbidden_call_keeps_the_servers_words(era: Era) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream) as front:
        await front.call("warm")
        upstream.on("tools/call", lambda wire: wire.error(4003, "only for admins", {"k": 1}, status=403), times=1)
        answer = await front.call()
        assert (answer.status, answer.error) == (200, {"code": 4003, "message": "only for admins", "data": {"k": 1}})
        assert "www-authenticate" not in answer.headers
        assert (await front.call("next")).text == "next"


async def test_a_list_that_was_not_promised_is_not_served(failing: ScriptedUpstream) -> None:
    failing.capabilities = {"tools": {}}
    async with failing, gateway_for(failing) as front:
        answer = await front.ask("prompts/list")
        assert (answer.status, answer.error["code"]) == (404, -32601)
        assert (await front.call("next")).text == "next"


ABSENT: dict[str, Handler] = {
    "200 with an unknown method": lambda wire: wire.error(-32601),
    "404 with an unknown method": lambda wire: wire.error(-32601, status=404),
    "405 with an unknown method": lambda wire: wire.error(-32601, status=405),
    "501 with an unknown method": lambda wire: wire.error(-32601, status=501),
}


@pytest.mark.parametrize("answer", ABSENT.values(), ids=ABSENT)
async def test_a_promised_list_that_is_not_there_is_empty_and_promised_no_longer(
    failing: ScriptedUpstream, answer: Handler
) -> None:
    async with failing, gateway_for(failing) as front:
        failing.on("prompts/list", answer)
        assert "prompts" in (await front.ask("server/discover")).result["capabilities"]
        for _ in range(2):
            assert (await front.ask("prompts/list")).result["prompts"] == []
        assert "prompts" not in (await front.ask("server/discover")).result["capabilities"]
        assert (await front.call("next")).text == "next"
        assert len(failing.received("initialize")) == 1
        assert sum(line["event"] == "declared but not served" for line in front.log) == 1


@eras
async def test_a_server_that_is_down_is_named_and_not_shown(era: Era) -> None:
    async with ScriptedUpstream(era) as upstream, gateway_for(upstream, connect_timeout="2s") as front:
        await front.call("warm")
        await upstream.stop()
        answer = await front.call()
        assert answer.failure == (502, "unreachable", True)
        assert "'docs'" in answer.error["message"]
        assert str(upstream.port).encode() not in answer.body
        await upstream.start()
        assert (await front.call("next")).text == "next"


@pytest.mark.parametrize("url", ["http://no-such-host.invalid/mcp", "http://127.0.0.1:1/mcp"])
async def test_a_server_that_was_never_there_is_named_and_not_shown(url: str) -> None:
    async with gateway_for(url) as front:
        answer = await front.call()
        assert answer.failure == (502, "unreachable", True)
        assert "'docs'" in answer.error["message"]
        for secret in (b"invalid", b"127.0.0.1"):
            assert secret not in answer.body


async def test_a_server_without_tls_where_tls_was_promised_is_unreachable() -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 X\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server, gateway_for(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp") as front:
        answer = await front.call()
        assert (answer.status, answer.error["code"]) == (502, -32603)
        assert b"127.0.0.1" not in answer.body
