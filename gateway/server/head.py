"""uvicorn's HTTP protocol, with two things about the head of a request put right.

- Java's HTTP client offers `Upgrade: h2c` with every request. Nothing else is spoken here, and who offers goes on in
  HTTP/1.1 (RFC 9110, section 7.8); but the parser takes the offer for the end of the request, and loses the body. So
  the offer is made unreadable before the parser sees it.
- A head has a limit, since nobody is known yet who could be held to one: 431.
"""

import re
from typing import Any, Final

from gateway.server.stalled import StalledProtocol

MAX_HEAD_BYTES: Final = 131_072

_OFFER: Final = re.compile(rb"\r\nupgrade:", re.IGNORECASE)
_HIDDEN: Final = b"\r\nx-offer:"
_NEEDLE: Final = b"\r\nupgrade:"
_LONGEST_PART: Final = len(_NEEDLE) - 1
_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: 27\r\nconnection: close\r\n\r\n"
    b"The request head is too big"
)


class HeadProtocol(StalledProtocol):
    """One connection of a client."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_size = 0
        self._held = b""  # the end of what came, if it may be the beginning of an offer

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        had_begun = self.is_in_head
        if not self.is_in_body:
            data = self._readable(data)
        super().data_received(data)
        if had_begun and self.is_in_head:
            self._head_size += len(data)
            if self._head_size > MAX_HEAD_BYTES:
                self.transport.write(_TOO_LARGE)
                self.transport.close()

    def on_message_begin(self) -> None:
        """A request begins."""
        self._head_size = 0
        super().on_message_begin()

    def _readable(self, data: bytes) -> bytes:
        """The bytes of a head without the offer to upgrade."""
        if self._held:
            data, self._held = self._held + data, b""
        end = data.find(b"\r\n\r\n")
        if end < 0:
            data, self._held = _split(data)
            end = len(data)
        if b"pgrade:" in data or b"PGRADE:" in data:
            return _OFFER.sub(_HIDDEN, data[:end]) + data[end:]
        return data


def _split(data: bytes) -> tuple[bytes, bytes]:
    """Bytes of a head that is not complete, and what of them must wait for more."""
    start = data.rfind(b"\r", -_LONGEST_PART)
    if start >= 0 and _NEEDLE.startswith(data[start:].lower()):
        return data[:start], data[start:]
    return data, b""
