import pytest
from pydantic import TypeAdapter
from pydantic_core import PydanticCustomError

from gateway.config.secret import (
    Headers,
    Secret,
    parse_digest,
    parse_header_name,
    parse_header_value,
    parse_state_keys,
)

KEY = "A" * 43 + "="
OTHER = "B" * 42 + "A="


def test_secret_prints_as_stars_and_tells_itself_when_asked() -> None:
    secret = Secret("topsecret")
    assert (str(secret), repr(secret), f"{secret}") == ("***", "Secret('***')", "***")
    assert secret.get_secret_value() == "topsecret"


def test_headers_are_written_as_stars() -> None:
    adapter: TypeAdapter[Headers] = TypeAdapter(Headers)
    headers = adapter.validate_python({"X-Team": "blue"})
    assert adapter.dump_python(headers, mode="json") == {"X-Team": "***"}


@pytest.mark.parametrize("name", ["Authorization", "X-Team", "x_team", "Cookie", "User-Agent", "Mcp-Custom"])
def test_header_name_is_kept(name: str) -> None:
    assert parse_header_name(name) == name


@pytest.mark.parametrize("name", ["", "X Team", "X:Team", "Überschrift", "X\nY", None])
def test_what_is_no_header_name_is_refused(name: object) -> None:
    with pytest.raises(PydanticCustomError, match="not a header name"):
        parse_header_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "content-length",
        "Content-Type",
        "ACCEPT",
        "Accept-Encoding",
        "Connection",
        "Transfer-Encoding",
        "Mcp-Session-Id",
        "MCP-Protocol-Version",
        "Mcp-Method",
        "Mcp-Name",
        "Mcp-Param-Region",
        "Last-Event-ID",
        "Proxy-Authorization",
        "TE",
    ],
)
def test_header_that_protocol_or_connection_owns_is_refused(name: str) -> None:
    with pytest.raises(PydanticCustomError, match="the gateway sets itself"):
        parse_header_name(name)


def test_header_value_loses_the_space_around_it() -> None:
    assert parse_header_value(" Bearer abc\n") == "Bearer abc"


@pytest.mark.parametrize(
    "value", ["top\nsecret", "top\x00secret", "töpsecret", "top\x7fsecret", 5, None, ["topsecret"]]
)
def test_bad_header_value_is_refused_without_showing_it(value: object) -> None:
    with pytest.raises(PydanticCustomError) as caught:
        parse_header_value(value)
    context = caught.value.context
    assert context is not None
    assert context["found"] in ("", "***")


def test_digest_is_compared_in_lower_case() -> None:
    assert parse_digest("AB" * 32) == "ab" * 32


@pytest.mark.parametrize("value", ["", "ab" * 31, "zz" * 32, 5, None])
def test_what_is_no_digest_is_refused(value: object) -> None:
    with pytest.raises(PydanticCustomError, match="not a SHA-256 digest"):
        parse_digest(value)


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        (None, []),
        ("", []),
        (KEY, [KEY]),
        (KEY.rstrip("="), [KEY]),
        (f"{KEY},{OTHER}", [KEY, OTHER]),
        (f" {KEY} \n {OTHER}\n", [KEY, OTHER]),
        ([KEY, OTHER], [KEY, OTHER]),
        ([f"{KEY}\n", ""], [KEY]),
    ],
)
def test_state_keys_are_read_newest_first(written: object, keys: list[str]) -> None:
    assert parse_state_keys(written) == keys


@pytest.mark.parametrize("bad", ["short", "A" * 44, "A" * 42 + "+=", "A" * 42 + "!=", f"{KEY}=", "A" * 42 + "=="])
def test_bad_state_key_is_named_by_its_place(bad: str) -> None:
    with pytest.raises(PydanticCustomError, match="not a state key") as caught:
        parse_state_keys([KEY, bad])
    context = caught.value.context
    assert context is not None
    assert context["found"] == "*** (key 2 of 2)"


@pytest.mark.parametrize("written", [5, {"a": KEY}, [["a"]]])
def test_what_are_no_keys_is_refused(written: object) -> None:
    with pytest.raises(PydanticCustomError, match="not keys"):
        parse_state_keys(written)
