import pytest
from pydantic_core import PydanticCustomError

from gateway.config.addresses import (
    is_every_address,
    is_loopback,
    parse_allowed_host,
    parse_bind_host,
    parse_origin,
    parse_path,
    parse_url,
)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/mcp",
        "https://docs.example.com",
        "https://docs.example.com/mcp?team=blue",
        "http://[::1]:8000/mcp",
        "HTTPS://Docs.Example.com/@scope/mcp",
    ],
)
def test_url_is_kept_as_it_is(url: str) -> None:
    assert parse_url(url) == url


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("", "not a URL"),
        ("docs.example.com/mcp", "not a URL"),
        ("ftp://docs.example.com", "not a URL"),
        ("https:///mcp", "not a URL"),
        ("https://:80/mcp", "not a URL"),
        ("https://a b/mcp", "not a URL"),
        ("https://a/mcp\n", "not a URL"),
        ("https://a:99999/", "not a URL"),
        ("https://a:0/", "not a URL"),
        ("https://a:x/", "not a URL"),
        ("http://[::1/", "not a URL"),
        (None, "not a URL"),
        ("https://user@a/", "user name or password"),
        ("https://user:pw@a/", "user name or password"),
        ("https://a/mcp#top", "fragment"),
        ("https://a/mcp#", "fragment"),
    ],
)
def test_url_that_cannot_be_meant_is_refused(url: object, what: str) -> None:
    with pytest.raises(PydanticCustomError, match=what):
        parse_url(url)


@pytest.mark.parametrize(
    "url", ["ftp://u:topsecret@a/", "x://a/?key=topsecret", "https://u:topsecret@a/", "a?topsecret#topsecret"]
)
def test_error_of_a_url_keeps_its_credentials(url: str) -> None:
    with pytest.raises(PydanticCustomError) as caught:
        parse_url(url)
    assert "topsecret" not in f"{caught.value.message()} {caught.value.context}"


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("https://app.example.com", "https://app.example.com"),
        ("HTTPS://App.Example.com:443", "https://app.example.com"),
        ("http://app.example.com:80", "http://app.example.com"),
        ("http://app.example.com:3000", "http://app.example.com:3000"),
        ("http://[2001:DB8::1]:3000", "http://[2001:db8::1]:3000"),
        ("vscode-webview://abc", "vscode-webview://abc"),
        ("null", "null"),
    ],
)
def test_origin_is_brought_into_the_form_that_browsers_send(written: str, canonical: str) -> None:
    assert parse_origin(written) == canonical


@pytest.mark.parametrize(
    "written", ["*", "app.example.com", "https://*.example.com", "https://u@a", "https://", "", None]
)
def test_what_is_no_origin_is_refused(written: object) -> None:
    with pytest.raises(PydanticCustomError, match="not an origin"):
        parse_origin(written)


@pytest.mark.parametrize("written", ["https://a.test/", "https://a.test/app", "https://a.test?x", "https://a.test#x"])
def test_origin_with_a_path_is_refused_with_the_right_one(written: str) -> None:
    with pytest.raises(PydanticCustomError, match="an origin has no path") as caught:
        parse_origin(written)
    assert caught.value.context is not None
    assert caught.value.context["remedy"] == "write https://a.test"


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("mcp.example.com", "mcp.example.com"),
        ("MCP.example.com:8080", "mcp.example.com:8080"),
        ("10.0.0.1", "10.0.0.1"),
        ("[::1]:80", "[::1]:80"),
    ],
)
def test_allowed_host_may_have_a_port(written: str, canonical: str) -> None:
    assert parse_allowed_host(written) == canonical


@pytest.mark.parametrize(
    "written", ["*", "*.a.test", "https://a.test", "a.test/", "a b", "u@a", "a:x", "::1", "", None]
)
def test_what_is_no_allowed_host_is_refused(written: object) -> None:
    with pytest.raises(PydanticCustomError, match="not a host"):
        parse_allowed_host(written)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::", "::1", "localhost", "gateway_1.internal"])
def test_bind_host_is_an_address_or_a_name(host: str) -> None:
    assert parse_bind_host(host) == host


@pytest.mark.parametrize("host", ["", "*", "http://x", "a:80", "[::1]", "a..b", "-", "a b", None])
def test_what_is_no_bind_host_is_refused(host: object) -> None:
    with pytest.raises(PydanticCustomError, match="not a host"):
        parse_bind_host(host)


@pytest.mark.parametrize("path", ["/mcp", "/v1/mcp", "/a-b_c.d~e"])
def test_endpoint_path_is_kept(path: str) -> None:
    assert parse_path(path) == path


@pytest.mark.parametrize(
    "path", ["", "mcp", "/", "/mcp/", "//mcp", "/mcp?x", "/m p", "/healthz", "/readyz", "/{x}", None]
)
def test_path_that_cannot_be_served_is_refused(path: object) -> None:
    with pytest.raises(PydanticCustomError, match="not a path"):
        parse_path(path)


def test_path_that_only_begins_like_a_health_path_is_kept() -> None:
    assert parse_path("/metrics-mcp") == "/metrics-mcp"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]"])
def test_loopback_is_known_in_every_form(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "10.0.0.1", "localhost.example.com", "example.com"])
def test_other_hosts_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_every_address_is_told_from_one() -> None:
    assert [host for host in ("0.0.0.0", "::", "10.0.0.1", "localhost") if is_every_address(host)] == ["0.0.0.0", "::"]
