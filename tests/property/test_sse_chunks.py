"""Any split of a stream into chunks gives the same events; any data survives the round trip."""

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from gateway.wire.sse import SseEvent, SseOverflow, SseParser, encode_event

FRAGMENTS = (
    *(b"data", b"data:", b"data: ", b"id", b"id: ", b"event: ", b"retry: ", b"retry: 15", b":", b": ping", b"foo: bar"),
    *(b"{}", b'{"a":1}', b"[1]", "ż→".encode(), b"\xc5", b"\0", b"\xef\xbb\xbf", b"\xef\xbb", b" ", b"x" * 40),
    *(b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n"),
)
STREAMS = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.binary(max_size=3)), max_size=25).map(b"".join)


def outcome(chunks: list[bytes], limit: int) -> tuple[list[SseEvent], str | None, int | None, bool]:
    parser = SseParser(limit)
    events: list[SseEvent] = []
    try:
        for chunk in chunks:
            events += parser.feed(chunk)
        events += parser.close()
    except SseOverflow:
        return events, parser.last_event_id, parser.retry_ms, True
    return events, parser.last_event_id, parser.retry_ms, False


def cut(stream: bytes, at: list[int]) -> list[bytes]:
    bounds = [0, *sorted(min(place, len(stream)) for place in at), len(stream)]
    return [stream[start:end] for start, end in pairwise(bounds)]


@given(stream=STREAMS, at=st.lists(st.integers(0, 200), max_size=12), limit=st.sampled_from([16, 64, 1000]))
@example(stream=b"\xef\xbb\xbfdata: x\r\n\r\n", at=[1, 2, 11, 13], limit=64)
@example(stream=b"data: x\n\ndata: " + b"y" * 20 + b"\n\n", at=[9], limit=16)
def test_chunks_do_not_matter(stream: bytes, at: list[int], limit: int) -> None:
    whole = outcome([stream], limit)
    assert outcome(cut(stream, at), limit) == whole
    assert outcome([stream[place : place + 1] for place in range(len(stream))], limit) == whole


@given(
    parts=st.lists(
        st.tuples(
            st.binary(min_size=1).filter(lambda data: not set(data) & set(b"\r\n") and not data.isspace()),
            st.sampled_from([b"\n", b"\r\n", b"\r"]),
            st.sampled_from([b"data:", b"data: "]),
            st.sampled_from([b"", b": ping", b"event: message", b"retry: 5", b"foo"]),
        )
    )
)
def test_any_framing_gives_the_data(parts: list[tuple[bytes, bytes, bytes, bytes]]) -> None:
    framed = [end.join([extra or b":", field + data, b"", b""]) for data, end, field, extra in parts]
    expected = [data.removeprefix(b" ") if field == b"data:" else data for data, _, field, _ in parts]
    events, _, _, is_overflowed = outcome([b"".join(framed)], 10_000)
    assert not is_overflowed
    assert [event.data for event in events] == [data for data in expected if not data.isspace()]


@given(st.binary(min_size=1).filter(lambda data: not data.isspace()))
def test_what_is_written_is_read_back(data: bytes) -> None:
    events, _, _, _ = outcome([encode_event(data)], 10_000)
    assert [event.data for event in events] == [data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")]
