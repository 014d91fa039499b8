"""Headers that do not mirror the body: rungs 11 and 12."""

from typing import Final

from tests.support.malformed_case import MISMATCH, bad, bad_route

MARKED_TOOL: Final = {
    "name": "route",
    "inputSchema": {
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "shard": {"type": "integer", "x-mcp-header": "Shard"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
            "deep": {"type": "object", "properties": {"tenant": {"type": "string", "x-mcp-header": "Tenant"}}},
        },
    },
}

MIRRORS = (
    bad("no method header", MISMATCH, headers={"Mcp-Method": None}, data={"header": None, "body": "tools/call"}),
    bad("empty method header", MISMATCH, headers={"Mcp-Method": ""}),
    bad("repeated method header", MISMATCH, headers={"Mcp-Method": ["tools/call", "tools/call"]}),
    bad(
        "another method in the header",
        MISMATCH,
        headers={"Mcp-Method": "tools/list"},
        data={"header": "tools/list", "body": "tools/call"},
    ),
    bad("method header in capitals", MISMATCH, method="tools/list", headers={"Mcp-Method": "TOOLS/LIST"}),
    bad("method header with other bytes", MISMATCH, headers={"Mcp-Method": b"tools/call\xff"}),
    bad("no name header", MISMATCH, headers={"Mcp-Name": None}, data={"header": None, "body": "echo"}),
    bad("empty name header", MISMATCH, headers={"Mcp-Name": ""}),
    bad("repeated name header", MISMATCH, headers={"Mcp-Name": ["echo", "echo"]}),
    bad("another name in the header", MISMATCH, headers={"Mcp-Name": "rm"}, data={"header": "rm", "body": "echo"}),
    bad("name header in another case", MISMATCH, headers={"Mcp-Name": "Echo"}),
    bad("name header without a name in the body", MISMATCH, params={}, headers={"Mcp-Name": "echo"}),
    bad("name header of a number", MISMATCH, params={"name": 7}, headers={"Mcp-Name": "7"}),
    bad("name header of another name in Base64", MISMATCH, headers={"Mcp-Name": "=?base64?cm0=?="}),
    bad("name header with the marker in capitals", MISMATCH, headers={"Mcp-Name": "=?BASE64?ZWNobw==?="}),
    bad("name header without padding", MISMATCH, headers={"Mcp-Name": "=?base64?ZWNobw?="}),
    bad("name header with no Base64", MISMATCH, headers={"Mcp-Name": "=?base64?ZWN!obw==?="}),
    bad("name header with Base64 of no UTF-8", MISMATCH, headers={"Mcp-Name": "=?base64?/w==?="}),
    bad("name header with bytes after the padding", MISMATCH, headers={"Mcp-Name": "=?base64?ZWNobw==ZWNobw==?="}),
    bad("name header in raw UTF-8", MISMATCH, params={"name": "天气"}, headers={"Mcp-Name": "天气".encode()}),
    bad("name header in raw Latin-1", MISMATCH, params={"name": "é"}, headers={"Mcp-Name": b"\xe9"}),
    bad("name that looks like a sentinel, sent plain", MISMATCH, params={"name": "=?base64?aGk=?="}),
    bad("prompt name differs", MISMATCH, method="prompts/get", params={"name": "a"}, headers={"Mcp-Name": "b"}),
    bad(
        "resource URI differs",
        MISMATCH,
        method="resources/read",
        params={"uri": "file:///a"},
        headers={"Mcp-Name": "file:///b"},
        data={"header": "file:///b", "body": "file:///a"},
    ),
    bad("no URI header", MISMATCH, method="resources/read", params={"uri": "file:///a"}, headers={"Mcp-Name": None}),
    bad("no task header", MISMATCH, method="tasks/get", params={"taskId": "t"}),
)

MARKS = (
    bad_route("missing", {"region": "eu"}, {}),
    bad_route("different", {"region": "eu"}, {"Mcp-Param-Region": "us"}),
    bad_route("in another case", {"region": "eu"}, {"Mcp-Param-Region": "EU"}),
    bad_route("repeated", {"region": "eu"}, {"Mcp-Param-Region": ["eu", "eu"]}),
    bad_route("of an absent argument", {}, {"Mcp-Param-Region": "eu"}),
    bad_route("of a null argument", {"region": None}, {"Mcp-Param-Region": "null"}),
    bad_route("in raw UTF-8", {"region": "zürich"}, {"Mcp-Param-Region": "zürich".encode()}),
    bad_route("with no Base64", {"region": "Hello"}, {"Mcp-Param-Region": "=?base64?SGVs!!!bG8=?="}),
    bad_route("without padding", {"region": "Hello"}, {"Mcp-Param-Region": "=?base64?SGVsbG8?="}),
    bad_route("of another number", {"shard": 42}, {"Mcp-Param-Shard": "43"}),
    bad_route("of no number", {"shard": 42}, {"Mcp-Param-Shard": "0x2a"}),
    bad_route("of a number with an underscore", {"shard": 42}, {"Mcp-Param-Shard": "4_2"}),
    bad_route("of another boolean", {"dry": True}, {"Mcp-Param-Dry-Run": "false"}),
    bad_route("of a boolean in capitals", {"dry": True}, {"Mcp-Param-Dry-Run": "True"}),
    bad_route("missing for a nested argument", {"deep": {"tenant": "a"}}, {}),
    bad_route("different for a nested argument", {"deep": {"tenant": "a"}}, {"Mcp-Param-Tenant": "b"}),
)
