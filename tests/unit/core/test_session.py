import pytest

from gateway.core.session import SessionKey, initialize_params, is_expired, negotiate
from gateway.wire.jsonrpc import Json, JsonObject


def _error(message: str, request_id: Json = None, code: int = -32000) -> JsonObject:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}


def test_initialize_names_the_newest_legacy_revision_never_a_modern_one() -> None:
    params = initialize_params({"roots": {}}, {"name": "g", "version": "1"})
    assert params == {
        "protocolVersion": "2025-11-25",
        "capabilities": {"roots": {}},
        "clientInfo": {"name": "g", "version": "1"},
    }


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
def test_every_legacy_revision_is_accepted(version: str) -> None:
    negotiated = negotiate(
        {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "u", "version": "1"}}
    )
    assert negotiated.version == version
    assert negotiated.capabilities == {"tools": {}}
    assert negotiated.server_info == {"name": "u", "version": "1"}


@pytest.mark.parametrize("version", ["2026-07-28", "1999-01-01", "", None, 20251125, ["2025-11-25"]])
def test_any_other_revision_is_refused(version: Json) -> None:
    with pytest.raises(ValueError, match="revision"):
        negotiate({"protocolVersion": version})


@pytest.mark.parametrize("result", [None, [], "2025-11-25", 1])
def test_a_result_that_is_no_object_is_refused(result: Json) -> None:
    with pytest.raises(ValueError, match="not an object"):
        negotiate(result)


def test_what_a_server_left_out_or_mangled_is_empty() -> None:
    for rest in ({}, {"capabilities": None, "serverInfo": None}, {"capabilities": [], "serverInfo": "u"}):
        negotiated = negotiate({"protocolVersion": "2025-06-18", **rest})
        assert negotiated.capabilities == {}
        assert negotiated.server_info is None


def test_a_key_differs_in_each_of_its_parts() -> None:
    key = SessionKey("alice", "", "{}")
    others = {SessionKey("bob", "", "{}"), SessionKey("alice", "x", "{}"), SessionKey("alice", "", '{"roots":{}}')}
    assert key not in others | {SessionKey("alice", "", "{}", "client")}
    assert key == SessionKey("alice", "", "{}")


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (404, None),
        (410, None),
        (400, None),
        (404, _error("Session not found")),
        (404, _error("gone", "server-error")),
        (400, _error("Bad Request: No valid session ID provided")),
        (400, _error("Session not found", "call-1")),
        (200, _error("Session expired", "call-1")),
        (200, _error("unknown session")),
        (400, _error("Mcp-Session-Id header is required")),
    ],
)
def test_a_server_that_forgot_the_session_executed_nothing(status: int, message: Json) -> None:
    assert is_expired(status, message, "call-1")


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (200, {"jsonrpc": "2.0", "id": "call-1", "result": {}}),
        (200, _error("Invalid params", "call-1")),
        (400, _error("Invalid params", "call-1")),
        (404, _error("Method not found", "call-1")),
        (401, _error("Invalid session")),
        (500, None),
        (502, None),
        (200, None),
    ],
)
def test_any_other_failure_is_about_the_request(status: int, message: Json) -> None:
    assert not is_expired(status, message, "call-1")
