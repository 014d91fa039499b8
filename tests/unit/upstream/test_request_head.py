"""gateway.upstream.request_head: which fields a request carries."""

import pytest
from yarl import URL

from gateway.upstream.request_head import RequestHead


def written(url: str = "http://u.test/mcp", **configured: str) -> RequestHead:
    return RequestHead(URL(url), configured)


def lines(head: bytes) -> list[str]:
    text = head.decode()
    assert text.endswith("\r\n\r\n")
    return text.removesuffix("\r\n\r\n").split("\r\n")


def test_a_head_has_what_is_fixed_what_is_configured_and_what_the_caller_names() -> None:
    head = written(**{"X-Team": "blue"}).write("POST", {"Mcp-Session-Id": "s1"}, 12)
    assert lines(head) == [
        "POST /mcp HTTP/1.1",
        "Host: u.test",
        "User-Agent: era-gateway/0.1.0",
        "X-Team: blue",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "Accept-Encoding: gzip, deflate, br",
        "Mcp-Session-Id: s1",
        "Content-Length: 12",
    ]


@pytest.mark.parametrize(
    ("url", "target", "host"),
    [
        ("https://u.test", "/", "u.test"),
        ("https://u.test:443/a?b=c%20d", "/a?b=c%20d", "u.test"),
        ("http://u.test:443/", "/", "u.test:443"),
        ("http://[::1]:80/x", "/x", "[::1]"),
        ("http://[::1]:81/x", "/x", "[::1]:81"),
        ("http://bücher.test./ä", "/%C3%A4", "xn--bcher-kva.test"),
    ],
)
def test_the_url_says_what_is_asked_of_whom(url: str, target: str, host: str) -> None:
    assert lines(written(url).write("GET", {}, None))[:2] == [f"GET {target} HTTP/1.1", f"Host: {host}"]


def test_the_caller_wins_whatever_the_case() -> None:
    head = written(authorization="Bearer configured", accept="x/y", **{"user-agent": "mine"})
    told = [line for line in lines(head.write("GET", {"Authorization": "Bearer own"}, None)) if ": " in line]
    names = [line.partition(":")[0].lower() for line in told]
    assert len(names) == len(set(names))
    assert {"Authorization: Bearer own", "Accept: text/event-stream", "user-agent: mine"} < set(told)
    assert "authorization: Bearer configured" in lines(head.write("GET", {}, None))


def test_what_describes_a_connection_is_not_configured() -> None:
    head = written(Host="evil", Connection="upgrade", Upgrade="h2c", TE="x", **{"accept-encoding": "zstd"})
    told = lines(head.write("DELETE", {}, None))
    assert not [line for line in told if line.startswith(("Host: evil", "Connection", "Upgrade", "TE", "accept-enc"))]


@pytest.mark.parametrize("value", ["a\r\nb", "a\nb", "a\0b", "a\x7fb"])
def test_a_value_that_would_end_the_line_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="no head can carry"):
        written().write("POST", {"Mcp-Session-Id": value}, 0)


def test_bytes_that_are_no_text_come_back_as_they_came() -> None:
    value = b"\xc3\xa9\xff\xa0".decode("utf-8", "surrogateescape")
    assert b"Mcp-Session-Id: \xc3\xa9\xff\xa0\r\n" in written().write("GET", {"Mcp-Session-Id": value}, None)
