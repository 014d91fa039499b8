"""Undoes the compression of an answer, a piece at a time: little that came may stand for very much.

RFC 9110, section 8.4.1.
"""

import zlib
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import brotli  # type: ignore[import-untyped]

OFFERED: Final = "gzip, deflate, br"
PIECE_BYTES: Final = 262_144
"""What one step makes of what came, at most, or not much more; the rest waits for the next."""

_GZIP: Final = 16 + zlib.MAX_WBITS
_IS_ZLIB: Final = 8  # the low half of the first byte (RFC 1950); some servers send deflate without that frame


class _Step(NamedTuple):
    """What one step came to.

    Args:
        decoded: a piece of the body.
        held: input for the next step.
        is_end: whether nothing is missing if the body ends here.
    """

    decoded: bytes
    held: bytes
    is_end: bool


_Stepper: TypeAlias = Callable[[bytes], _Step]


class Decoder:
    """Undoes one encoding of one body.

    Attributes:
        has_more: whether `decode(b"")` may give more of what came before.
        is_complete: whether nothing is missing if the body ends here.
    """

    def __init__(self, step: _Stepper) -> None:
        self.has_more = False
        self.is_complete = True
        self._step = step
        self._held = b""

    def decode(self, data: bytes) -> bytes:
        """Take what came, and give a piece of what it means.

        Raises:
            ValueError: it does not decode.
        """
        data = self._held + data
        if not data and not self.has_more:
            return b""
        try:
            decoded, self._held, self.is_complete = self._step(data)
        except (zlib.error, brotli.error) as error:
            raise ValueError("a body that does not decode") from error
        # A full piece is the only sign that a decoder may have more of which all input is taken already.
        self.has_more = bool(self._held) or len(decoded) >= PIECE_BYTES
        return decoded


def decoder_of(encoding: str) -> Decoder | None:
    """The decoder for the value of `Content-Encoding`; None if there is nothing to undo.

    Raises:
        ValueError: it was not offered.
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name not in _STEPPERS:
        raise ValueError("an encoding that was not offered")
    return Decoder(_STEPPERS[name]())


def _gzip() -> _Stepper:
    stream = zlib.decompressobj(_GZIP)

    def step(data: bytes) -> _Step:
        nonlocal stream
        if stream.eof and data:  # several members, one after the other (RFC 1952, section 2.2)
            stream = zlib.decompressobj(_GZIP)
        decoded = stream.decompress(data, PIECE_BYTES)
        return _Step(decoded, stream.unused_data or stream.unconsumed_tail, stream.eof)

    return step


def _deflate() -> _Stepper:
    stream: zlib._Decompress | None = None

    def step(data: bytes) -> _Step:
        nonlocal stream
        if stream is None:
            stream = zlib.decompressobj(zlib.MAX_WBITS if data[0] & 15 == _IS_ZLIB else -zlib.MAX_WBITS)
        decoded = stream.decompress(data, PIECE_BYTES)
        return _Step(decoded, stream.unconsumed_tail, stream.eof)

    return step


def _br() -> _Stepper:
    stream = brotli.Decompressor()

    def step(data: bytes) -> _Step:
        taken, held = (data, b"") if stream.can_accept_more_data() else (b"", data)
        decoded = stream.process(taken, output_buffer_limit=PIECE_BYTES)
        return _Step(decoded, held, bool(stream.is_finished()))

    return step


_STEPPERS: Final = {"gzip": _gzip, "deflate": _deflate, "br": _br}
