"""Event streams as real servers frame them."""

import pytest

from gateway.wire.sse import COMMENT, SseEvent, SseOverflow, SseParser, encode_event

LIMIT = 1 << 20
RESULT = '{"jsonrpc":"2.0","id":1,"result":{"text":"żółw →"}}'.encode()


def parse(stream: bytes, *, chunk_bytes: int | None = None, limit: int = LIMIT) -> list[SseEvent]:
    parser = SseParser(limit)
    step = chunk_bytes or len(stream) or 1
    events = [event for at in range(0, len(stream), step) for event in parser.feed(stream[at : at + step])]
    return events + parser.close()


def message(data: bytes, event_id: str | None = None, retry_ms: int | None = None) -> SseEvent:
    return SseEvent("message", data, event_id, retry_ms)


FRAMINGS = {
    "LF": b"event: message\ndata: %b\n\n" % RESULT,
    "CRLF": b"event: message\r\ndata: %b\r\n\r\n" % RESULT,
    "lone CR": b"event: message\rdata: %b\r\r" % RESULT,
    "mixed line ends": b"event: message\rdata: %b\r\n\n" % RESULT,
    "no space": b"data:%b\n\n" % RESULT,
    "no event field": b"data: %b\n\n" % RESULT,
    "byte order mark": b"\xef\xbb\xbfdata: %b\n\n" % RESULT,
    "comments": b": ping\n\n:\ndata: %b\n: ping\n\n: ping\n\n" % RESULT,
    "unknown field": b"foo: bar\nfoo\ndata: %b\n\n" % RESULT,
    "empty event field": b"event:\ndata: %b\n\n" % RESULT,
    "no blank line": b"data: %b\n" % RESULT,
    "no line end": b"data: %b" % RESULT,
    "blank lines around": b"\n\n\r\n\rdata: %b\n\n\n" % RESULT,
    "blank events around": b"data:\n\ndata\n\ndata: %b\n\ndata: \ndata: \n\n" % RESULT,
    "invalid retry": b"retry: soon\nretry: -1\nretry:\nretry: 99999999999\ndata: %b\n\n" % RESULT,
    "field names are case-sensitive": b"DATA: x\ndata : x\n data: x\ndata: %b\n\n" % RESULT,
    "a mark that is not first": b"\n\xef\xbb\xbfdata: x\ndata: %b\n\n" % RESULT,
}


@pytest.mark.parametrize("chunk_bytes", [None, 1, 2, 3, 7])
@pytest.mark.parametrize("stream", FRAMINGS.values(), ids=FRAMINGS)
def test_the_framing_never_shows(stream: bytes, chunk_bytes: int | None) -> None:
    assert parse(stream, chunk_bytes=chunk_bytes) == [message(RESULT)]


def test_several_data_lines_are_joined() -> None:
    assert parse(b'data: {\r\ndata:   "a": 1\r\ndata\r\ndata: }\r\n\r\n') == [message(b'{\n  "a": 1\n\n}')]


def test_only_one_space_after_the_colon_is_framing() -> None:
    assert parse(b"data:  x \n\n") == [message(b" x ")]


def test_events_keep_their_type_and_the_next_starts_afresh() -> None:
    events = parse(b"event: endpoint\ndata: /messages?id=1\n\ndata: x\n\n")
    assert [(event.event, event.data) for event in events] == [("endpoint", b"/messages?id=1"), ("message", b"x")]


@pytest.mark.parametrize("field", [b"data", b"data:", b"data: "])
def test_a_priming_event_gives_an_id_and_a_retry_and_no_event(field: bytes) -> None:
    parser = SseParser(LIMIT)
    assert parser.feed(b"id: e0\nretry: 1500\n" + field + b"\n\n") == []
    assert (parser.last_event_id, parser.retry_ms) == ("e0", 1500)


def test_an_id_holds_until_the_next_one() -> None:
    events = parse(b"data: 1\nid: a\n\ndata: 2\n\nid: b\nretry: 7\ndata: 3\n\nid\ndata: 4\n\n")
    assert events == [message(b"1", "a"), message(b"2", "a"), message(b"3", "b", 7), message(b"4", None, 7)]


def test_an_id_with_a_null_character_is_ignored() -> None:
    assert parse(b"id: a\nid: b\0c\ndata: x\n\n") == [message(b"x", "a")]


def test_the_id_of_an_event_that_was_cut_off_does_not_count() -> None:
    parser = SseParser(LIMIT)
    parser.feed(b"id: a\ndata: x\n\nid: b\ndata: ")
    assert (parser.close(), parser.last_event_id) == ([], "a")


def test_the_id_after_a_fast_event_is_remembered() -> None:
    parser = SseParser(LIMIT)
    parser.feed(b"id: a\n\n")
    assert parser.feed(b"data: x\n\n") == [message(b"x", "a")]
    parser.feed(b"id: b\n")
    assert parser.feed(b"data: y\n\n") == [message(b"y", "b")]
    assert parser.last_event_id == "b"


@pytest.mark.parametrize(
    "rest", [b"data: {", b'data: {"a":1', b"data: 12", b'data: "x"', b"data: {}\ndata: x", b"id: 1"]
)
def test_an_unterminated_event_without_a_whole_object_is_discarded(rest: bytes) -> None:
    assert parse(b"data: 1\n\n" + rest) == [message(b"1")]


def test_a_field_that_may_be_cut_short_does_not_count_at_the_end() -> None:
    assert parse(b"id: 12\ndata: {}\nid: 1") == [message(b"{}", "12")]


@pytest.mark.parametrize("chunk_bytes", [None, 1, 5])
def test_an_event_over_the_limit_is_refused_and_those_before_it_are_not(chunk_bytes: int | None) -> None:
    parser = SseParser(20)
    stream = b"data: fine\n\ndata: %b\n\n" % (b"x" * 20)
    step = chunk_bytes or len(stream)
    events: list[SseEvent] = []
    with pytest.raises(SseOverflow):
        for at in range(0, len(stream), step):
            events += parser.feed(stream[at : at + step])
        events += parser.close()
    assert events == [message(b"fine")]
    with pytest.raises(SseOverflow):
        parser.feed(b"data: fine\n\n")


def test_lines_of_one_event_count_together_and_comments_do_not() -> None:
    assert parse(b"data: 1234\ndata: 5678\n\n", limit=19)
    with pytest.raises(SseOverflow):
        parse(b"data: 1234\ndata: 5678\ndata: 9012\n\n", limit=19)
    assert parse(b": keep-alive\n" * 100 + b"data: x\n\n", limit=20)


def test_an_event_of_the_very_limit_passes_on_both_paths() -> None:
    event = b"data: 1234"
    assert parse(event + b"\n\n", limit=len(event)) == parse(event + b"\r\n\r\n", limit=len(event))


def test_no_events_come_from_keep_alive_comments() -> None:
    assert parse(COMMENT * 3) == []


@pytest.mark.parametrize(
    ("data", "encoded"),
    [
        (b"{}", b"data: {}\n\n"),
        (b'{\n"a":\r\n1\r}', b'data: {\ndata: "a":\ndata: 1\ndata: }\n\n'),
    ],
)
def test_an_event_is_written_in_data_lines(data: bytes, encoded: bytes) -> None:
    assert encode_event(data) == encoded


def test_an_id_that_is_too_long_to_be_sent_back_is_none() -> None:
    parser = SseParser(1_000_000)
    ids = [b"1", b"x" * 8193, b"y" * 8192]
    events = parser.feed(b"".join(b"id: " + each + b"\ndata: a\n\n" for each in ids))
    assert [event.id for event in events] == ["1", None, "y" * 8192]
