"""Every malformed request gets the reply of the first rung that it fails."""

import pytest

from gateway.core.inbound import (
    FrontDoor,
    Headers,
    InboundError,
    InboundRequest,
    check_head,
    check_param_headers,
    check_params,
    validate,
)
from gateway.errors import ProtocolError
from gateway.translate.param_marks import marks_of
from tests.support.malformed import MALFORMED, MARKED_TOOL, Malformed
from tests.support.messages import VERSION, HeaderChange, good_meta, good_request, to_asgi

DOOR = FrontDoor(frozenset(), frozenset(), 4 * 1024 * 1024)
MARKS = marks_of(MARKED_TOOL)


def climb(case: Malformed) -> None:
    raw = to_asgi(case.headers)
    if b"host" not in dict(raw):
        raw.append((b"host", b"127.0.0.1:8080"))
    headers = Headers(raw)
    check_head(case.http_method, headers, DOOR)
    request = validate(headers, case.body)
    assert isinstance(request, InboundRequest)
    if request.target == MARKED_TOOL["name"]:
        check_param_headers(request, MARKS)
    check_params(request)


@pytest.mark.parametrize("case", MALFORMED, ids=lambda case: case.name)
def test_a_malformed_request_is_refused_as_the_ladder_says(case: Malformed) -> None:
    with pytest.raises(ProtocolError) as refused:
        climb(case)
    error = refused.value
    request_id = error.request_id if isinstance(error, InboundError) else None
    assert (error.status, error.code) == (case.status, case.code)
    assert (type(request_id), request_id) == (type(case.request_id), case.request_id)
    assert case.data.items() <= (error.data or {}).items()


def test_the_table_is_large_and_its_names_are_unique() -> None:
    assert len(MALFORMED) >= 100
    assert len({case.name for case in MALFORMED}) == len(MALFORMED)


def test_a_refused_method_says_what_to_send_instead() -> None:
    refused = next(case for case in MALFORMED if case.name == "DELETE")
    with pytest.raises(ProtocolError) as error:
        climb(refused)
    assert error.value.headers == (("allow", "POST"),)


def test_a_legacy_client_is_told_in_words_what_to_upgrade_to() -> None:
    first = next(case for case in MALFORMED if case.name == "a legacy client's first contact")
    with pytest.raises(InboundError, match=rf"MCP {VERSION} only.*upgrade the client"):
        climb(first)


def test_a_modern_initialize_is_told_the_version_that_is_spoken() -> None:
    last = next(case for case in MALFORMED if case.name == "method initialize")
    with pytest.raises(InboundError, match=VERSION):
        climb(last)


SECRET = "hunter2-secret"


@pytest.mark.parametrize(
    ("method", "params", "changes"),
    [
        ("tools/call", {"name": "x", "arguments": [SECRET]}, {}),
        ("prompts/get", {"name": "x", "arguments": {"a": [SECRET]}}, {}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"value": [SECRET]}}, {}),
        ("tools/call", {"name": "x", "inputResponses": {"q": SECRET}}, {}),
        ("tools/call", {"name": "route", "arguments": {"region": SECRET}}, {"Mcp-Param-Region": "eu"}),
        ("tools/call", {"name": "route", "arguments": {"region": "eu"}}, {"Mcp-Param-Region": SECRET}),
    ],
)
def test_a_refusal_never_shows_an_argument(
    method: str, params: dict[str, object], changes: dict[str, HeaderChange]
) -> None:
    headers, body = good_request(method, params, headers=changes)
    with pytest.raises(InboundError) as error:
        request = validate(Headers(to_asgi(headers)), body)
        assert isinstance(request, InboundRequest)
        check_param_headers(request, MARKS)
        check_params(request)
    assert SECRET not in f"{error.value.message} {error.value.data}"


def test_shown_values_are_cut_to_a_bearable_length() -> None:
    headers, body = good_request("tools/call", {"name": "n" * 9999}, headers={"Mcp-Name": "h" * 9999})
    with pytest.raises(InboundError) as error:
        validate(Headers(to_asgi(headers)), body)
    assert {len(value) for value in error.value.data.values()} == {256}


def test_the_first_rung_that_fails_wins() -> None:
    spoilt = {"Mcp-Method": None, "Mcp-Name": None}
    meta = good_meta() | {"io.modelcontextprotocol/logLevel": "loud"}
    headers, body = good_request("tools/call", {"name": 7}, meta=meta, headers=spoilt)
    with pytest.raises(InboundError, match="logLevel"):
        validate(Headers(to_asgi(headers)), body)
