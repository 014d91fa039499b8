"""Server-Sent Events: bytes in, events out; and events to bytes.

Rule: a peer's framing never shows in its events, and any split of the bytes into chunks gives equal events.
Strategy: make every line end LF as the chunks arrive, collect whole lines, and run the algorithm of the HTML
Standard ("Interpreting an event stream") on them, with two differences: an event with blank data is no event,
and a last event that lacks its blank line counts if its data is a whole JSON object.
"""

from dataclasses import dataclass
from typing import Final

from gateway.wire.jsonrpc import decode

COMMENT: Final = b": keep-alive\n\n"
"""Keeps proxies from cutting a quiet stream; no event for the reader."""

_BOM = b"\xef\xbb\xbf"
_DATA = b"data: "
_USUAL_HEADS = (_DATA, b"event: message\ndata: ", b"event: message\r\ndata: ")
"""How the SDKs begin an event that has no id."""
_LONG_PART = 16_384
_MAX_RETRY_DIGITS = 9
_MAX_ID_BYTES = 8192  # ids are sent back in a header, and readers remember many


class SseOverflow(ValueError):  # noqa: N818 -- a name that reads like its cause
    """An event is larger than the reader allows."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event.

    Attributes:
        event: its type, "message" unless the stream named one.
        data: the data lines, joined with LF; never blank.
        id: the last event id as of this event, None if there is none (an empty `id:` takes it back).
        retry_ms: the reconnection time as of this event, None until the stream gives one.
    """

    event: str
    data: bytes
    id: str | None
    retry_ms: int | None


class SseParser:
    """An incremental reader of one event stream; time linear in the bytes, whatever the chunks.

    Args:
        max_event_bytes: what the data of one event and the line being read may have together.

    Attributes:
        last_event_id: the id to resume after: as of the last event ended by its blank line, data or not.
        retry_ms: the reconnection time that the stream asked for.
    """

    def __init__(self, max_event_bytes: int) -> None:
        self.last_event_id: str | None = None
        self.retry_ms: int | None = None
        self._max = max_event_bytes
        self._head: bytes | None = b""  # the first bytes, while they may still be a byte order mark
        self._after_cr = False
        self._parts: list[bytes | bytearray] = []  # of the line being read, without its end
        self._line_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._event = ""
        self._id: str | None = None
        self._is_overflowed = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take the next bytes and return the events that they complete.

        Raises:
            SseOverflow: an event is over the limit. Events completed before it are returned first, and the
                next call raises, as does every one after it.
        """
        if (data := self._only_data(chunk)) is not None:
            self._head = None
            self._after_cr = False
            return [SseEvent("message", data, self._id, self.retry_ms)]
        events: list[SseEvent] = []
        try:
            self._read(self._with_lf(chunk), events)
        except SseOverflow:
            if not events:
                raise
        return events

    def close(self) -> list[SseEvent]:
        """Take the end of the stream; an unterminated event is returned if its data is a whole JSON object.

        Raises:
            SseOverflow: the event after those returned last was over the limit.
        """
        events: list[SseEvent] = []
        self._read(self._head or b"", events)
        self._head = None
        line = self._whole_line(b"")
        if line.startswith(b"data"):  # any other field may have been cut short
            self._take(line)
        if self._data and _is_json_object(b"\n".join(self._data)):
            self._dispatch(events)
        return events

    def _only_data(self, chunk: bytes) -> bytes | None:
        """The data of a chunk that is one event of one data line, with nothing left from before: the usual case."""
        start = next((len(head) for head in _USUAL_HEADS if chunk.startswith(head)), None)
        if start is None or self._parts or self._data or self._event or self._head or self._is_overflowed:
            return None
        end = len(chunk) - (4 if chunk.endswith(b"\r\n\r\n") else 2)
        is_whole = (
            chunk.endswith((b"\n\n", b"\r\n\r\n"))
            and chunk.find(b"\n", start, end) == -1 == chunk.find(b"\r", start, end)
            and self._id == self.last_event_id
            and end - start + len(_DATA) <= self._max
            and not chunk[start : start + 1].isspace()
        )
        return chunk[start:end] if is_whole and end > start else None

    def _with_lf(self, chunk: bytes) -> bytes:
        """Drop a leading byte order mark, and make each of CRLF, CR and LF one LF, across chunks."""
        if self._head is not None:
            chunk = self._head + chunk
            if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
                self._head = chunk
                return b""
            self._head = None
            chunk = chunk.removeprefix(_BOM)
        if not chunk:
            return chunk
        if self._after_cr and chunk[0] == 0x0A:
            chunk = chunk[1:]
        self._after_cr = False
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return chunk

    def _read(self, chunk: bytes, events: list[SseEvent]) -> None:
        if self._is_overflowed:
            raise SseOverflow(f"an event is over {self._max} bytes")
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            line = self._whole_line(chunk[start:end])
            self._check_size(len(line))
            if line:
                self._take(line)
            else:
                self._dispatch(events)
            start = end + 1
        if start < len(chunk):
            self._hold(chunk[start:])

    def _hold(self, part: bytes) -> None:
        """Keep a part of a line until it is whole: a long one as it is, short ones together."""
        self._line_bytes += len(part)
        self._check_size(self._line_bytes)
        if len(part) >= _LONG_PART:
            self._parts.append(part)
        elif self._parts and isinstance(self._parts[-1], bytearray):
            self._parts[-1] += part
        else:
            self._parts.append(bytearray(part))

    def _whole_line(self, last: bytes) -> bytes:
        if not self._parts:
            return last
        line = b"".join((*self._parts, last))
        self._parts.clear()
        self._line_bytes = 0
        return line

    def _check_size(self, line_bytes: int) -> None:
        if self._data_bytes + line_bytes > self._max:
            self._is_overflowed = True
            self._parts.clear()
            self._data.clear()
            raise SseOverflow(f"an event is over {self._max} bytes")

    def _take(self, line: bytes) -> None:
        """Apply one field; comments (an empty field name) and unknown fields are dropped."""
        if line.startswith(b"data:"):
            self._add_data(line[6:] if line[5:6] == b" " else line[5:])
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._add_data(value)
        elif field == b"id":
            if b"\0" not in value:
                # Without a usable id the stream cannot be resumed; an older id would resume it in the wrong place.
                self._id = value.decode("utf-8", "replace") or None if len(value) <= _MAX_ID_BYTES else None
        elif field == b"event":
            self._event = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
            self.retry_ms = int(value)

    def _add_data(self, value: bytes) -> None:
        self._data.append(value)
        self._data_bytes += len(value) + 1

    def _dispatch(self, events: list[SseEvent]) -> None:
        # The id counts from here on only: an event that was cut off must not be skipped when resuming.
        self.last_event_id = self._id
        data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        if data and not data.isspace():
            events.append(SseEvent(self._event or "message", data, self._id, self.retry_ms))
        self._data.clear()
        self._data_bytes = 0
        self._event = ""


def encode_event(data: bytes) -> bytes:
    """Encode one unnamed event; line breaks in the data become several data lines."""
    if b"\n" in data or b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
    return b"data: %b\n\n" % data


def _is_json_object(data: bytes) -> bool:
    try:
        return isinstance(decode(data), dict)
    except ValueError:
        return False
