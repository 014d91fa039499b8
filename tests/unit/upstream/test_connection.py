"""gateway.upstream.connection: one connection, its bytes given by hand."""

import asyncio
import weakref
from typing import Any

import pytest

from gateway.errors import UpstreamError
from gateway.upstream.connection import MAX_HEAD_BYTES, Connection
from gateway.upstream.response import READ_AHEAD_BYTES, Response

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.unsent = 0
        self.is_aborted = False
        self.is_paused = False

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def writelines(self, pieces: Any) -> None:
        self.written.extend(pieces)

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


class Book:
    """Whom connections belong to."""

    def __init__(self) -> None:
        self.free: list[Connection] = []
        self.ending: list[Connection] = []
        self.forgotten: list[Connection] = []
        self.keep = self.free.append
        self.let_end = self.ending.append
        self.forget = self.forgotten.append


class Line:
    """A connection, its transport, and whom it belongs to."""

    def __init__(self) -> None:
        self.wire = Wire()
        self.book = Book()
        self.connection = Connection("docs", self.book)
        self.connection.connection_made(self.wire)

    def ask(self, body: bytes = b"{}") -> "asyncio.Future[Response]":
        return self.connection.ask(b"HEAD", body)

    def hear(self, data: bytes, *, bytewise: bool = False) -> None:
        for piece in [data[i : i + 1] for i in range(len(data))] if bytewise else [data]:
            self.connection.data_received(piece)

    @property
    def is_free(self) -> bool:
        return self.connection in self.book.free and self.connection.is_free


@pytest.fixture
async def line() -> Line:
    return Line()


async def read_all(response: Response) -> bytes:
    data = b""
    while piece := await response.read():
        data += piece
    return data


def fault_of(answer: "asyncio.Future[Response]") -> str:
    error = answer.exception()
    assert isinstance(error, UpstreamError)
    return error.reason


# --- one answer after the other ---


@pytest.mark.parametrize("bytewise", [False, True])
async def test_answers_come_one_after_the_other(line: Line, bytewise: bool) -> None:
    for number in (b"1", b"2", b"3"):
        answer = line.ask()
        line.hear(OK.replace(b"hi", b"h" + number), bytewise=bytewise)
        assert await read_all(answer.result()) == b"h" + number
        assert line.is_free
    assert len(line.book.free) == 3


@pytest.mark.parametrize("bytewise", [False, True])
async def test_the_fields_of_a_head_are_read_by_any_name_and_the_first_counts(line: Line, bytewise: bool) -> None:
    answer = line.ask()
    head = b"HTTP/1.1 201 Made\r\nX-Empty:\r\nMcp-Session-Id:  s1 \r\nmcp-session-id: s2\r\nX-Utf: \xc3\xa9\xff\r\n"
    line.hear(head + b"Content-Length: 0\r\n\r\n", bytewise=bytewise)
    headers = answer.result().headers
    assert (headers["MCP-SESSION-ID"], headers["x-empty"], headers.get("None")) == ("s1", "", None)
    assert headers["X-Utf"].encode("utf-8", "surrogateescape") == b"\xc3\xa9\xff"
    assert "Content-Length" in headers
    assert len(headers) == len(list(headers)) == 4


async def test_small_requests_are_one_write_and_large_ones_are_not_copied(line: Line) -> None:
    line.ask(b"small")
    line.hear(OK)
    large = b"x" * 100_000
    line.ask(large)
    assert line.wire.written[0] == b"HEADsmall"
    assert line.wire.written[2] is large


async def test_an_interim_answer_is_not_the_answer(line: Line) -> None:
    answer = line.ask()
    line.hear(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
    assert not answer.done()
    line.hear(OK)
    assert answer.result().status == 200
    assert "Link" not in answer.result().headers
    assert line.is_free


@pytest.mark.parametrize("bytewise", [False, True])
async def test_a_trailer_is_no_part_of_this_head_or_the_next(line: Line, bytewise: bool) -> None:
    answer = line.ask()
    line.hear(CHUNKED + b"2\r\nhi\r\n0\r\nMcp-Session-Id: evil\r\nRetry-After: 9\r\n\r\n", bytewise=bytewise)
    assert await read_all(answer.result()) == b"hi"
    assert "Mcp-Session-Id" not in answer.result().headers
    again = line.ask()
    line.hear(OK, bytewise=bytewise)
    assert list(again.result().headers) == ["content-length"]
    assert await read_all(again.result()) == b"hi"


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    ],
)
async def test_a_connection_that_the_server_will_close_is_not_used_again(line: Line, head: bytes) -> None:
    answer = line.ask()
    line.hear(head)
    assert await read_all(answer.result()) == b"hi"
    assert line.book.free == []
    assert line.wire.is_aborted


async def test_an_answer_to_a_request_that_is_not_written_yet_ends_the_connection(line: Line) -> None:
    answer = line.ask(b"x" * 1_000_000)
    line.wire.unsent = 900_000
    line.hear(OK)
    assert await read_all(answer.result()) == b"hi"
    assert line.book.free == []


async def test_a_body_without_a_length_ends_with_its_connection(line: Line) -> None:
    answer = line.ask()
    line.hear(b"HTTP/1.1 200 OK\r\n\r\nhi")
    assert not answer.result().is_complete
    line.connection.connection_lost(None)
    assert await read_all(answer.result()) == b"hi"


# --- what must not be taken for an answer ---


async def test_what_a_server_says_unasked_ends_the_connection(line: Line) -> None:
    line.hear(OK)
    assert line.connection.has_babbled
    assert line.book.forgotten == [line.connection]
    assert not line.connection.is_free


async def test_a_second_answer_behind_the_first_is_nobodys(line: Line) -> None:
    answer = line.ask()
    line.hear(OK + OK.replace(b"hi", b"no"))
    assert await read_all(answer.result()) == b"hi"
    assert not line.is_free
    assert line.wire.is_aborted


async def test_what_comes_after_an_answer_ends_the_connection(line: Line) -> None:
    answer = line.ask()
    line.hear(OK)
    line.hear(b"\r\nHTTP/1.1 200 OK\r\n")
    assert await read_all(answer.result()) == b"hi"
    assert not line.is_free


NO_HTTP = {
    "another protocol": b"SSH-2.0-OpenSSH_9.9\r\n\r\n",
    "an upgrade": b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
    "a length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
    "a head without an end": b"HTTP/1.1 200 OK\r\nX: " + b"x" * (MAX_HEAD_BYTES + 1),
    "many heads without an answer": b"HTTP/1.1 100 Continue\r\n\r\n" * 6000,
}


@pytest.mark.parametrize("case", NO_HTTP)
async def test_what_is_no_http_is_nonsense(line: Line, case: str) -> None:
    answer = line.ask()
    line.hear(NO_HTTP[case])
    assert fault_of(answer) == "nonsense"
    assert line.wire.is_aborted


@pytest.mark.parametrize("endless", [b"1;" + b"x" * MAX_HEAD_BYTES, b"0\r\nX: " + b"x" * MAX_HEAD_BYTES])
async def test_what_surrounds_a_body_in_chunks_has_a_bound(line: Line, endless: bytes) -> None:
    answer = line.ask()
    line.hear(CHUNKED)
    line.hear(endless)
    with pytest.raises(UpstreamError, match="cannot be read as HTTP"):
        await answer.result().read()


async def test_a_chunk_that_is_none_breaks_the_body_off(line: Line) -> None:
    answer = line.ask()
    line.hear(CHUNKED + b"2\r\nhi\r\nzz\r\n")
    assert await answer.result().read() == b"hi"
    assert answer.result()._failure is not None
    with pytest.raises(UpstreamError, match="cannot be read as HTTP"):
        await answer.result().read()


# --- ends ---


@pytest.mark.parametrize("error", [None, ConnectionResetError()])
async def test_a_connection_that_is_lost_before_the_head_leaves_the_outcome_unknown(line: Line, error: Any) -> None:
    answer = line.ask()
    line.connection.connection_lost(error)
    assert fault_of(answer) == "outcome_unknown"


async def test_what_arrived_is_read_before_the_break_is_told(line: Line) -> None:
    answer = line.ask()
    line.hear(CHUNKED + b"2\r\nhi\r\n")
    line.connection.connection_lost(None)
    assert await answer.result().read() == b"hi"
    with pytest.raises(UpstreamError) as broken:
        await answer.result().read()
    assert broken.value.reason == "outcome_unknown"


async def test_a_body_without_a_length_that_is_reset_is_not_complete(line: Line) -> None:
    answer = line.ask()
    line.hear(b"HTTP/1.1 200 OK\r\n\r\nhi")
    line.connection.connection_lost(ConnectionResetError())
    assert await answer.result().read() == b"hi"
    with pytest.raises(UpstreamError):
        await answer.result().read()


async def test_a_reader_is_woken_by_each_part_and_by_the_end(line: Line) -> None:
    answer = line.ask()
    line.hear(CHUNKED)
    reading = asyncio.ensure_future(read_all(answer.result()))
    for piece in (b"1\r\na\r\n", b"1\r\nb\r\n", b"0\r\n\r\n"):
        await asyncio.sleep(0)
        line.hear(piece)
    assert await reading == b"ab"


async def test_who_left_while_waiting_for_an_answer_is_not_told(line: Line) -> None:
    answer = line.ask()
    answer.cancel()
    line.hear(OK)
    assert answer.cancelled()


# --- readers who are slow, or have had enough ---


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def test_a_slow_reader_stops_the_server(line: Line) -> None:
    answer = line.ask()
    line.hear(CHUNKED + chunk(b"x" * READ_AHEAD_BYTES))
    assert not line.wire.is_paused
    line.hear(chunk(b"y"))
    assert line.wire.is_paused
    assert len(await answer.result().read()) == READ_AHEAD_BYTES + 1
    assert not line.wire.is_paused


async def test_a_connection_that_is_free_is_read_although_its_answer_is_not(line: Line) -> None:
    answer = line.ask()
    line.hear(CHUNKED + chunk(b"x" * (READ_AHEAD_BYTES + 1)))
    assert line.wire.is_paused
    line.hear(b"0\r\n\r\n")
    assert not line.wire.is_paused
    assert line.is_free
    assert len(await read_all(answer.result())) == READ_AHEAD_BYTES + 1


async def test_an_answer_that_is_given_up_takes_its_connection_with_it(line: Line) -> None:
    answer = line.ask()
    line.hear(CHUNKED)
    answer.result().close()
    assert line.wire.is_aborted
    line.connection.connection_lost(None)
    assert line.book.forgotten == [line.connection]


async def test_the_rest_of_an_answer_that_nobody_wants_is_waited_for(line: Line) -> None:
    answer = line.ask()
    line.hear(CHUNKED + chunk(b"hi"))
    answer.result().finish()
    assert line.book.ending == [line.connection]
    line.hear(chunk(b"more") + b"0\r\n\r\n")
    assert line.is_free


@pytest.mark.parametrize("is_before", [True, False])
async def test_much_that_nobody_wants_is_not_waited_for(line: Line, is_before: bool) -> None:
    answer = line.ask()
    line.hear(CHUNKED)
    if not is_before:
        answer.result().finish()
    line.hear(chunk(b"x" * (READ_AHEAD_BYTES + 1)))
    answer.result().finish()
    assert line.wire.is_aborted


async def test_a_complete_answer_is_neither_closed_nor_finished(line: Line) -> None:
    answer = line.ask()
    line.hear(OK)
    answer.result().close()
    answer.result().finish()
    assert line.is_free
    assert line.book.ending == []


async def test_a_connection_that_is_lost_leaves_nothing_to_the_collector() -> None:
    line = Line()
    gone = weakref.ref(line.connection)
    line.ask().cancel()
    line.connection.connection_lost(None)
    line.book.forgotten.clear()
    del line
    assert gone() is None
