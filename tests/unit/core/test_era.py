"""gateway.core.era: what the answer to a probe proves."""

from typing import Any

import pytest

from gateway.core.era import Legacy, Modern, NoVerdict, is_foreign_refusal, probe_request, verdict
from gateway.wire.jsonrpc import encode

MODERN = "2026-07-28"


def result(**members: Any) -> bytes:
    return encode({"jsonrpc": "2.0", "id": "era-probe", "result": members})


def error(code: Any, *, request_id: Any = "era-probe", **members: Any) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": "no", **members}})


def test_the_probe_is_a_complete_modern_request() -> None:
    headers, message = probe_request({"name": "g", "version": "1"})
    assert headers == {"MCP-Protocol-Version": MODERN, "Mcp-Method": "server/discover"}
    assert message["method"] == "server/discover"
    assert message["params"]["_meta"] == {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "g", "version": "1"},
    }


def test_a_discover_result_that_lists_the_revision_is_modern_and_kept() -> None:
    body = result(supportedVersions=["2025-11-25", MODERN], capabilities={"tools": {}})
    found = verdict(200, {}, body)
    assert isinstance(found, Modern)
    assert found.discover_result is not None
    assert found.discover_result["capabilities"] == {"tools": {}}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error(-32020)),
        (400, error(-32021)),
        (200, error(-32021, request_id=None)),
        (400, error(-32022, data={"supported": [MODERN, "2027-01-01"], "requested": MODERN})),
        (None, error(-32022, data={"supported": [MODERN]})),
    ],
    ids=["-32020", "-32021", "-32021 in a 200, without an id", "-32022 that offers it", "on stdio"],
)
def test_errors_that_only_a_modern_server_sends_are_modern(status: int | None, body: bytes) -> None:
    assert verdict(status, {}, body) == Modern()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error(-32000, request_id=None)),
        (400, error(-32600)),
        (400, b"Missing session ID"),
        (404, b""),
        (405, b""),
        (200, error(-32601)),
        (200, error(-32602)),
        (200, result(supportedVersions=["2025-06-18"])),
        (200, result(ok=True)),
        (400, error(-32022, data={"supported": ["2025-11-25"]})),
        (400, error(-32022)),
        (400, error("-32020")),
        (400, error([])),
        (200, b"<html>hello</html>"),
        (200, b"[]"),
        (200, b"null"),
        (200, b""),
        (202, b""),
        (406, b""),
        (410, b""),
        (None, error(0)),
        (None, b""),
    ],
)
def test_whatever_else_a_server_says_makes_it_legacy(status: int | None, body: bytes) -> None:
    assert isinstance(verdict(status, {}, body), Legacy)


@pytest.mark.parametrize(
    ("status", "reason"),
    [(407, "unauthorized"), (429, "full"), (502, "nonsense"), (503, "full"), (599, "nonsense")],
)
def test_an_outage_is_no_verdict_and_no_reason_to_try_initialize(status: int, reason: str) -> None:
    # Even if the body claims to know better: it may be a cached page of a proxy.
    found = verdict(status, {}, result(supportedVersions=[MODERN]))
    assert found == NoVerdict(reason, status)


@pytest.mark.parametrize("status", [403, 408, 504])
def test_a_refusal_or_a_timeout_is_no_verdict_and_initialize_may_settle_it(status: int) -> None:
    found = verdict(status, {}, b"")
    assert isinstance(found, NoVerdict)
    assert found.try_initialize


def test_a_500_is_worth_an_initialize_only_if_it_carries_a_json_rpc_error() -> None:
    refusing, failing = verdict(500, {}, error(-32603)), verdict(500, {}, b"oops")
    assert isinstance(refusing, NoVerdict)
    assert isinstance(failing, NoVerdict)
    assert refusing.try_initialize
    assert not failing.try_initialize


def test_a_401_to_a_credential_is_worth_an_initialize_with_the_same() -> None:
    challenge = {"WWW-Authenticate": 'Bearer resource_metadata="https://u.test/x"'}
    found = verdict(401, challenge, b"", has_credential=True)
    assert found == NoVerdict("unauthorized", 401, try_initialize=True, challenge=challenge["WWW-Authenticate"])


def test_a_401_that_asks_for_a_credential_is_not_when_none_was_sent() -> None:
    found = verdict(401, {"WWW-Authenticate": "Bearer"}, b"", has_credential=False)
    assert found == NoVerdict("unauthorized", 401, challenge="Bearer")


@pytest.mark.parametrize(("value", "seconds"), [("7", 7), ("soon", None), ("²", None), ("", None)])
def test_an_overloaded_server_may_say_when_to_ask_again(value: str, seconds: int | None) -> None:
    assert verdict(503, {"Retry-After": value}, b"") == NoVerdict("full", 503, retry_after_s=seconds)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, None),
        (404, None),
        (405, None),
        (400, {"id": None, "error": {"code": -32000}}),
        (400, {"id": "r1", "error": {"code": -32000}}),
        (400, {"id": "r1", "error": {"code": -32600}}),
        (400, {"id": "server-error", "error": {"code": -32602}}),
        (400, {"id": "r1", "error": {"code": -32022, "data": {"supported": ["2025-11-25"]}}}),
        (200, {"id": "r1", "error": {"code": -32022}}),
    ],
)
def test_an_answer_can_show_that_a_server_is_not_modern_any_more(status: int, message: Any) -> None:
    assert is_foreign_refusal(status, message, "r1")


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (200, {"id": "r1", "result": {}}),
        (200, {"id": None, "error": {"code": -32603}}),
        (400, {"id": "r1", "error": {"code": -32602}}),
        (400, {"id": "r1", "error": {"code": -32020}}),
        (400, {"id": None, "error": {"code": -32021}}),
        (404, {"id": "r1", "error": {"code": -32601}}),
        (400, {"id": "r1", "error": {"code": -32022, "data": {"supported": [MODERN]}}}),
        (500, None),
        (503, {"id": None, "error": {"code": -32000}}),
    ],
)
def test_a_modern_server_that_fails_is_still_modern(status: int, message: Any) -> None:
    assert not is_foreign_refusal(status, message, "r1")
