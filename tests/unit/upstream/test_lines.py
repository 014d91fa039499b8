import itertools

from hypothesis import given
from hypothesis import strategies as st

from gateway.upstream.lines import EDGE_BYTES, Line, Lines, Overlong

TEXTS = st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"\xc3", b"\xa9", b"{}", b"x" * 7]), max_size=40).map(b"".join)


def lines_of(chunks: list[bytes], most: int) -> list[Line]:
    lines = Lines(most)
    return [line for chunk in chunks for line in lines.feed(chunk)] + lines.close()


def test_lines_end_as_they_like_and_the_last_one_need_not() -> None:
    assert lines_of([b"a\nb\r\n\n", b"c", b"d\ne"], 10) == [b"a", b"b", b"", b"cd", b"e"]
    assert lines_of([b"a\n"], 10) == [b"a"]
    assert lines_of([], 10) == []


def test_a_line_over_the_limit_leaves_its_edges_and_the_next_one_in_peace() -> None:
    line = b"<" + b"x" * 100_000 + b">"
    chunks = [line[at : at + 999] for at in range(0, len(line), 999)]
    [found, after] = lines_of([*chunks, b"\nafter\n"], 50_000)
    assert isinstance(found, Overlong)
    assert (found.head, found.tail) == (line[:EDGE_BYTES], line[-EDGE_BYTES:])
    assert after == b"after"


@given(TEXTS, st.lists(st.integers(0, 200), max_size=8), st.integers(1, 30))
def test_any_split_into_chunks_gives_the_same_lines(text: bytes, cuts: list[int], most: int) -> None:
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    chunks = [text[a:b] for a, b in itertools.pairwise(edges)]
    assert lines_of(chunks, most) == lines_of([text], most)
