"""Header values: the Base64 sentinel, media types and Accept."""

import pytest

from gateway.wire import headers


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("us-west1", "us-west1"),
        ("note add", "note add"),
        ("", ""),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("tab\tinside", "=?base64?dGFiCWluc2lkZQ==?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64?half", "=?base64?half"),
        ("=?BASE64?other?=", "=?BASE64?other?="),
        ("\x7f", "=?base64?fw==?="),
    ],
)
def test_a_value_is_encoded_only_where_a_header_cannot_carry_it(text: str, value: str) -> None:
    assert headers.encode_header_value(text) == value
    assert headers.decode_sentinel(value.encode()) == text


@pytest.mark.parametrize(("value", "text"), [(b"=?base64?Z2V0?=", "get"), (b"=?base64??=", ""), (b"a\tb", "a\tb")])
def test_a_needless_sentinel_and_a_tab_are_decoded(value: bytes, text: str) -> None:
    assert headers.decode_sentinel(value) == text


@pytest.mark.parametrize(
    "value",
    [
        b"=?base64?SGVsbG8?=",
        b"=?base64?SGVs!!!bG8=?=",
        b"=?base64?SGVs bG8=?=",
        b"=?base64?SGVsbG8=SGVsbG8=?=",
        b"=?base64?_-==?=",
        b"=?base64?/w==?=",
        "żółw".encode(),
        b"\xe9",
        b"a\x00b",
        b"a\x7f",
        b"a\r\nb",
    ],
)
def test_what_no_client_may_send_is_refused(value: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        headers.decode_sentinel(value)


def test_a_lone_surrogate_cannot_be_encoded() -> None:
    with pytest.raises(ValueError, match="surrogate"):
        headers.encode_header_value("\ud800")


@pytest.mark.parametrize("value", [b"application/json", "Application/JSON", b"application/json;charset=UTF-8"])
def test_json_is_recognized_in_any_spelling(value: bytes | str) -> None:
    assert headers.is_json(value)
    assert not headers.is_event_stream(value)


@pytest.mark.parametrize("value", ["text/event-stream", b"Text/Event-Stream ; charset=utf-8"])
def test_an_event_stream_is_recognized_in_any_spelling(value: bytes | str) -> None:
    assert headers.is_event_stream(value)
    assert not headers.is_json(value)


@pytest.mark.parametrize("value", [b"", "text/html", b"application/jsonl", b"x;application/json", b"\xff"])
def test_other_types_are_neither(value: bytes | str) -> None:
    assert not headers.is_json(value)
    assert not headers.is_event_stream(value)


@pytest.mark.parametrize(
    ("accept", "accepted"),
    [
        (b"application/json", True),
        (b"*/*", True),
        (b"application/*", True),
        (b"text/*", False),
        (b"application/json;q=0", False),
        (b"application/json; Q=0.000, */*", False),
        (b"application/json;q=0.001", True),
        (b"*/*;q=0, application/json", True),
        (b"*/*, application/*;q=0", False),
        (b"", False),
        (b",;,=", False),
    ],
)
def test_the_most_specific_range_decides(accept: bytes, accepted: bool) -> None:
    assert headers.accepts(accept, headers.JSON) is accepted
