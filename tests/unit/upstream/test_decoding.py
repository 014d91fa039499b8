"""gateway.upstream.decoding: a body decodes to the same in whatever pieces it comes, and never to much at once."""

import gzip
import random
import zlib
from collections.abc import Callable

import brotli
import pytest

from gateway.upstream.decoding import PIECE_BYTES, Decoder, decoder_of

ENCODERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "deflate": ("Deflate", zlib.compress),
    "deflate without a frame": ("deflate", lambda data: zlib.compress(data)[2:-4]),
    "br": (" br ", brotli.compress),
}
BODIES = {
    "nothing": b"",
    "little": b"x",
    "a bomb": b"0" * 3_000_000,
    "noise": random.Random(1).randbytes(600_000),  # noqa: S311 -- noise, no secret
    "exactly a piece": b"ab" * (PIECE_BYTES // 2),
}
encoders = pytest.mark.parametrize("encoding", ENCODERS)


def decode_all(decoder: Decoder, data: bytes, step: int) -> list[bytes]:
    pieces = []
    for start in range(0, len(data), step):
        pieces.append(decoder.decode(data[start : start + step]))
        while decoder.has_more:
            pieces.append(decoder.decode(b""))
    return pieces


def opened(encoding: str) -> Decoder:
    decoder = decoder_of(encoding)
    assert decoder is not None
    return decoder


@encoders
@pytest.mark.parametrize("body", BODIES)
def test_a_body_decodes_in_whatever_pieces_it_comes(encoding: str, body: str) -> None:
    name, encode = ENCODERS[encoding]
    data = encode(BODIES[body])
    for step in (1 if len(data) < 5000 else 5000, 100_000, len(data)):
        decoder = opened(name)
        pieces = decode_all(decoder, data, step)
        assert b"".join(pieces) == BODIES[body]
        assert decoder.is_complete
        assert max(map(len, pieces)) < 2 * PIECE_BYTES


@encoders
def test_a_body_that_is_cut_short_is_not_complete(encoding: str) -> None:
    name, encode = ENCODERS[encoding]
    decoder = opened(name)
    decode_all(decoder, encode(BODIES["noise"])[:-3], 100_000)
    assert not decoder.is_complete


def test_no_body_at_all_is_complete() -> None:
    assert opened("gzip").is_complete
    assert opened("gzip").decode(b"") == b""


def test_gzip_may_have_several_members() -> None:
    assert decode_all(opened("gzip"), gzip.compress(b"a") + gzip.compress(b"b"), 1000) == [b"a", b"b"]


@pytest.mark.parametrize("encoding", ["gzip", "br"])
def test_what_does_not_decode_is_said_to_be_so(encoding: str) -> None:
    with pytest.raises(ValueError, match="does not decode"):
        decode_all(opened(encoding), b"\xffno such thing" * 100, 100)


def test_what_was_not_offered_is_refused() -> None:
    with pytest.raises(ValueError, match="not offered"):
        decoder_of("zstd")
    assert decoder_of("") is decoder_of("Identity") is None
