"""The load generator: keep-alive HTTP/1.1 connections, each sending its next call when the last is answered.

Every reply is checked: status 200, the id of the request, a `result`, and about the size that the tool has.
Run as a process with one `Load` as JSON in its argument; it prints a `Sample` as JSON.
"""

import array
import asyncio
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from time import perf_counter
from typing import Final, cast

import orjson
import uvloop

from tests.bench.messages import CALL, DIRECT, TOOLS, legacy_call, modern_call

_LAST_CHUNK: Final = b"\r\n0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Load:
    """What to send, where to, and for how long.

    Args:
        port: where the target listens.
        tool: the upstream's tool.
        connections: how many calls are under way at a time.
        seconds: after which no more calls are sent.
        asking: whether the client declares that it can be asked.
        legacy: whether to speak as a legacy client in a session that is open: to the upstream itself, and to peers.
        method: `tools/call`, or `tools/list` of a modern client.
        name: under which the target offers the tool, if that is not the upstream's own name.
        path: the endpoint.
        headers: of a legacy client: its session, and its credentials.
        calls: after so many calls it is over, too; 0: only when the time is.
    """

    port: int
    tool: str
    connections: int
    seconds: float
    asking: bool = False
    legacy: bool = False
    method: str = CALL
    name: str = ""
    path: str = "/mcp"
    headers: Mapping[str, str] = field(default_factory=lambda: DIRECT)
    calls: int = 0

    def request(self, number: int) -> bytes:
        """The bytes that one connection sends again and again."""
        if self.legacy:
            return legacy_call(self.tool, number, self.port, name=self.name, path=self.path, headers=self.headers)
        return modern_call(
            self.tool, number, self.port, asking=self.asking, name=self.name, path=self.path, method=self.method
        )

    @property
    def least_bytes(self) -> int:
        """A reply shorter than this is wrong."""
        return TOOLS[self.tool][1] * 9 // 10


@dataclass(frozen=True, slots=True)
class Sample:
    """What one load saw, from the first byte sent to the last reply."""

    calls: int
    rate: float
    p50_ms: float
    p99_ms: float


class BadReplyError(Exception):
    """A reply that is not the result of the call: the measurement would be worthless."""


class Recorder:
    """The latencies of all connections, and the moment at which they stop."""

    def __init__(self, least_bytes: int, most_calls: int = 0) -> None:
        """Prepares an empty record.

        Args:
            least_bytes: a reply shorter than this is wrong.
            most_calls: after which it stops; 0: it is stopped from outside.
        """
        self.least_bytes = least_bytes
        self._most_calls = most_calls
        self.latencies = array.array("d")
        self.stopped = False
        self.running = 0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def note(self, latency_s: float) -> None:
        """One call is done."""
        self.latencies.append(latency_s)
        if len(self.latencies) == self._most_calls:
            self.stopped = True

    def leave(self) -> None:
        """One connection is through."""
        self.running -= 1
        if self.running == 0 and not self.done.done():
            self.done.set_result(None)

    def fail(self, reason: str) -> None:
        """Ends the whole load."""
        self.stopped = True
        if not self.done.done():
            self.done.set_exception(BadReplyError(reason))


class Caller(asyncio.Protocol):
    """One connection: send, read to the end, check, send again."""

    def __init__(self, recorder: Recorder, request: bytes, request_id: int) -> None:
        """Prepares a connection that sends the same bytes again and again."""
        self._recorder = recorder
        self._request = request
        self._expected_id = re.compile(rb'"id": ?%d\b' % request_id)
        self._reply = bytearray()
        self._head_end = 0
        self._total = 0
        self._sent_at = 0.0
        self._transport: asyncio.WriteTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keeps the transport; `send` starts the dialogue."""
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's is none by inheritance

    def send(self) -> None:
        """Sends the next call, or leaves when the time is over."""
        if self._recorder.stopped:
            self._transport.close()
            self._recorder.leave()
            return
        self._reply.clear()
        self._head_end = 0
        self._sent_at = perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Collects the reply; a complete one is recorded, checked and followed by the next call."""
        self._reply += data
        if not self._head_end and not self._read_head():
            return
        complete = len(self._reply) == self._total if self._total else self._reply.endswith(_LAST_CHUNK)
        if not complete:
            return
        self._recorder.note(perf_counter() - self._sent_at)
        if self._is_good():
            self.send()
        else:
            self._recorder.fail(bytes(self._reply[:600]).decode(errors="replace"))

    def connection_lost(self, exc: Exception | None) -> None:
        """A connection that ends before the load does is a failure."""
        if not self._recorder.stopped:
            self._recorder.fail(f"the connection was closed: {exc}")

    def _read_head(self) -> bool:
        self._head_end = self._reply.find(b"\r\n\r\n") + 4
        if self._head_end < 4:
            self._head_end = 0
            return False
        head = bytes(self._reply[: self._head_end]).lower()
        start = head.find(b"\r\ncontent-length:") + 17
        self._total = self._head_end + int(head[start : head.index(b"\r", start)]) if start > 16 else 0
        return True

    def _is_good(self) -> bool:
        reply = self._reply
        return (
            reply.startswith(b"HTTP/1.1 200")
            and len(reply) >= self._recorder.least_bytes
            and reply.find(b'"result":', self._head_end) > 0
            and self._has_id(reply)
        )

    def _has_id(self, reply: bytearray) -> bool:
        """Whether the request's id is near either end, where every peer writes it."""
        return bool(
            self._expected_id.search(reply, self._head_end, self._head_end + 300)
            or self._expected_id.search(reply, max(self._head_end, len(reply) - 300))
        )


async def run(load: Load) -> Sample:
    """Puts one load on a server.

    Raises:
        BadReplyError: a reply is not the result of its call, or a connection broke.
    """
    loop = asyncio.get_running_loop()
    recorder = Recorder(load.least_bytes, load.calls)
    callers = []
    for number in range(1, load.connections + 1):
        connect = partial(Caller, recorder, load.request(number), number)
        _, caller = await loop.create_connection(connect, "127.0.0.1", load.port)
        callers.append(caller)
    recorder.running = len(callers)
    started = perf_counter()
    for caller in callers:
        caller.send()
    stop = loop.call_later(load.seconds, setattr, recorder, "stopped", True)
    await recorder.done
    stop.cancel()
    return _summary(recorder.latencies, perf_counter() - started)


def _summary(latencies: "array.array[float]", seconds: float) -> Sample:
    ordered = sorted(latencies)
    return Sample(
        calls=len(ordered),
        rate=len(ordered) / seconds,
        p50_ms=ordered[len(ordered) // 2] * 1000,
        p99_ms=ordered[len(ordered) * 99 // 100] * 1000,
    )


def main() -> int:
    """Runs the load given as JSON in the first argument."""
    try:
        sample = uvloop.run(run(Load(**orjson.loads(sys.argv[1]))))
    except BadReplyError as error:
        print(error, file=sys.stderr)
        return 1
    print(orjson.dumps(asdict(sample)).decode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
