"""Origin, Host, CORS and media types, before a body is read."""

import pytest

from gateway.core.front_door import FrontDoor, Headers, body_too_large, check_head, cors_headers, preflight
from gateway.errors import ProtocolError
from tests.support.messages import HeaderChange, good_headers, to_asgi

ORIGIN = "https://app.test"
DOOR = FrontDoor(frozenset({"HTTPS://App.test:443/"}), frozenset({"gw.example.com", "10.0.0.1:8443"}), 1000)
OPEN = FrontDoor(frozenset(), None, 1000)


def head(**changes: HeaderChange) -> Headers:
    named = {name.replace("_", "-"): value for name, value in changes.items()}
    return Headers(to_asgi(good_headers("tools/list", {}, {"Host": "localhost:8080"} | named)))


def status_of(headers: Headers, door: FrontDoor = DOOR, method: str = "POST") -> int:
    try:
        check_head(method, headers, door)
    except ProtocolError as error:
        return error.status
    return 200


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200),
        (ORIGIN, 200),
        ("https://APP.test", 200),
        ("http://app.test", 403),
        ("https://app.test:8443", 403),
        ("https://app.test.evil.example", 403),
        ("http://localhost", 200),
        ("http://localhost:5173", 200),
        ("https://127.0.0.1:1", 200),
        ("http://[::1]:3000", 200),
        ("http://[::1]", 200),
        ("http://localhost:", 403),
        ("http://localhost/", 403),
        ("http://user@localhost", 403),
        ("http://127.0.0.1.nip.io", 403),
        ("localhost", 403),
        ("null", 403),
    ],
)
def test_an_origin_is_allowed_if_it_is_loopback_or_configured(origin: str | None, status: int) -> None:
    assert status_of(head(Origin=origin)) == status


def test_the_null_origin_can_be_configured() -> None:
    assert status_of(head(Origin="null"), FrontDoor(frozenset({"null"}), None, 1000)) == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("127.0.0.1:8080", 200),
        ("[::1]:8080", 200),
        ("GW.example.com", 200),
        ("gw.example.com:8443", 200),
        ("10.0.0.1:8443", 200),
        ("10.0.0.1", 403),
        ("evil.example", 403),
        ("evil.example:8080", 403),
        ("localhost:8080:80", 403),
        ("", 403),
        (None, 403),
        (["localhost", "evil.example"], 403),
    ],
)
def test_a_host_is_allowed_if_it_is_loopback_or_configured(host: HeaderChange, status: int) -> None:
    assert status_of(head(Host=host)) == status


def test_a_host_is_not_checked_where_the_operator_does_not_ask() -> None:
    assert status_of(head(Host="anything.example"), OPEN) == 200


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("application/json, text/event-stream", 200),
        ("text/event-stream, application/json", 200),
        ("TEXT/event-stream;q=0.1 , Application/JSON; charset=utf-8", 200),
        ("*/*", 200),
        ("application/*, text/*", 200),
        ("application/json, */*;q=0.1", 200),
        (["application/json", "text/event-stream"], 200),
        ("text/event-stream;q=0, */*", 406),
        ("application/*", 406),
        ("application/jsonx, text/event-stream", 406),
        ("", 406),
    ],
)
def test_both_media_types_must_be_acceptable(accept: HeaderChange, status: int) -> None:
    assert status_of(head(Accept=accept)) == status


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("Application/JSON", 200),
        ("application/json; charset=utf-8", 200),
        ("application/json;charset=UTF-8", 200),
        ("application/json, text/plain", 415),
        (["application/json", "application/json"], 415),
        ("", 415),
    ],
)
def test_a_body_must_be_declared_as_json(content_type: HeaderChange, status: int) -> None:
    assert status_of(head(Content_Type=content_type)) == status


@pytest.mark.parametrize(("length", "status"), [("1000", 200), ("1001", 413), ("9" * 5000, 413), ("x", 200)])
def test_a_declared_length_over_the_limit_is_refused_unread(length: str, status: int) -> None:
    assert status_of(head(Content_Length=length)) == status


def test_a_body_over_the_limit_names_the_limit() -> None:
    error = body_too_large(DOOR)
    assert (error.status, "1000 bytes" in error.message) == (413, True)


def test_the_first_rung_that_fails_wins() -> None:
    assert status_of(head(Origin="https://evil.example", Content_Type=None), method="GET") == 405
    assert status_of(head(Origin="https://evil.example", Content_Type=None)) == 403
    assert status_of(head(Accept=None, Content_Type=None)) == 415


PREFLIGHT_NAMES = "authorization,content-type,mcp-protocol-version,mcp-method,mcp-name,mcp-param-region,traceparent"


def test_a_preflight_allows_every_header_that_the_page_asks_for() -> None:
    asked = Headers(
        [
            (b"host", b"localhost"),
            (b"origin", ORIGIN.encode()),
            (b"access-control-request-method", b"POST"),
            (b"access-control-request-headers", PREFLIGHT_NAMES.encode() + b", b\xe4d name,"),
        ]
    )
    reply = dict(preflight(asked, DOOR))
    assert reply["access-control-allow-origin"] == ORIGIN
    assert reply["access-control-allow-methods"] == "POST"
    assert reply["access-control-allow-headers"] == PREFLIGHT_NAMES.replace(",", ", ")
    assert reply["vary"] == "Origin"
    assert "access-control-allow-credentials" not in reply


@pytest.mark.parametrize(("origin", "status"), [("https://evil.example", 403), ("null", 403), (None, 405)])
def test_a_preflight_of_another_origin_is_refused(origin: str | None, status: int) -> None:
    with pytest.raises(ProtocolError) as error:
        preflight(head(Origin=origin), DOOR)
    assert error.value.status == status


def test_a_preflight_of_another_host_is_refused() -> None:
    with pytest.raises(ProtocolError) as error:
        preflight(head(Origin=ORIGIN, Host="evil.example"), DOOR)
    assert error.value.status == 403


def test_a_page_of_an_allowed_origin_may_read_replies_and_their_challenge() -> None:
    reply = dict(cors_headers(head(Origin=ORIGIN), DOOR))
    assert reply["access-control-allow-origin"] == ORIGIN
    assert "WWW-Authenticate" in reply["access-control-expose-headers"]


@pytest.mark.parametrize("origin", [None, "https://evil.example", [ORIGIN, ORIGIN]])
def test_nobody_else_gets_cors_headers(origin: HeaderChange) -> None:
    assert cors_headers(head(Origin=origin), DOOR) == ()


def test_headers_trim_values_and_join_what_is_repeated() -> None:
    headers = Headers([(b"a", b" 1\t"), (b"b", b"2"), (b"a", b"3 ")])
    assert (headers.get(b"a"), headers.get(b"b"), headers.get(b"c")) == (b"1, 3", b"2", None)
    assert (headers.is_repeated(b"a"), headers.is_repeated(b"b")) == (True, False)
