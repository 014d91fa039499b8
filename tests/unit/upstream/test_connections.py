"""gateway.upstream.connections and .dialling: which connection a request gets, and how one is opened."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from yarl import URL

from gateway.errors import UpstreamError
from gateway.upstream import connections, dialling
from gateway.upstream.connections import Connections
from tests.support.leftovers import until

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n"


class Server:
    """Answers everything with the same bytes; knows its open connections."""

    def __init__(self, answer: bytes = OK, greeting: bytes = b"", *, hangs_up: bool = False) -> None:
        self.answer = answer
        self.greeting = greeting
        self.hangs_up = hangs_up
        self.opened = 0
        self.open = 0

    async def __aenter__(self) -> "Server":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        self.open += 1
        writer.write(self.greeting)
        try:
            while not self.hangs_up and await reader.read(1000):
                writer.write(self.answer)
        except ConnectionError:
            pass
        finally:
            self.open -= 1
            writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server() as running:
        yield running


@pytest.fixture
async def pool(server: Server) -> AsyncIterator[Connections]:
    made = to(server.port)
    yield made
    await made.close()


def to(port: int, host: str = "127.0.0.1", timeout_s: float = 5) -> Connections:
    return Connections("docs", URL(f"http://{host}:{port}"), timeout_s)


async def ask(pool: Connections) -> bytes:
    connection = pool.take() or await pool.open()
    return await (await connection.ask(b"GET / HTTP/1.1\r\n\r\n", b"")).read()


# --- free connections ---


async def test_the_connection_that_was_used_last_is_used_again(pool: Connections, server: Server) -> None:
    for _ in range(3):
        assert await ask(pool) == b"hi"
    assert (server.opened, len(pool)) == (1, 1)


async def test_a_connection_that_has_been_free_for_long_is_closed_instead_of_used(
    pool: Connections, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ask(pool)
    monkeypatch.setattr(connections, "KEEP_ALIVE_S", 0.0)
    await ask(pool)
    assert server.opened == 2


async def test_connections_that_nobody_uses_are_closed_in_time(
    pool: Connections, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_SWEEP_S", 0.01)
    await ask(pool)
    await pool.open()  # one at work is left alone
    await until(lambda: server.open == 2)
    monkeypatch.setattr(connections, "KEEP_ALIVE_S", 0.0)
    await until(lambda: server.open == 1)
    assert len(pool) == 0


async def test_an_answer_whose_end_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_SWEEP_S", 0.01)
    monkeypatch.setattr(connections, "END_GRACE_S", 0.02)
    async with Server(STREAM) as server:
        pool = to(server.port)
        connection = await pool.open()
        (await connection.ask(b"GET / HTTP/1.1\r\n\r\n", b"")).finish()
        assert server.open == 1
        await until(lambda: server.open == 0)
        await pool.close()


async def test_closing_closes_what_is_free_and_what_is_at_work(pool: Connections, server: Server) -> None:
    await ask(pool)
    await pool.open()
    busy = await pool.open()
    await until(lambda: server.open == 3)
    await pool.close()
    assert not busy.is_free
    await until(lambda: server.open == 0)


# --- new ones ---


async def test_a_server_that_speaks_first_is_no_server_of_http() -> None:
    async with Server(greeting=b"SSH-2.0-OpenSSH_9.7\r\n") as server:
        pool = to(server.port)
        for _ in range(2):
            with pytest.raises(UpstreamError) as caught:
                await ask(pool)
            assert caught.value.reason == "nonsense"
        await pool.close()


async def test_a_server_that_hangs_up_before_anything_was_sent_may_be_asked_again() -> None:
    async with Server(hangs_up=True) as server:
        pool = to(server.port)
        connection = await pool.open()
        await until(lambda: not connection.is_free)
        with pytest.raises(UpstreamError) as caught:
            await ask(pool)  # it may hang up before or after the request is written
        assert caught.value.reason in ("unreachable", "outcome_unknown")
        await pool.close()


class Names:
    """Stands in for the resolver."""

    def __init__(self, *ports: int) -> None:
        self.ports = ports
        self.asked = 0

    async def __call__(self, host: str, _port: int, **_how: Any) -> list[Any]:
        self.asked += 1
        await asyncio.sleep(0)
        assert host == "u.test"
        how = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "")
        return [(*how, ("127.0.0.1", port)) for port in self.ports]


@pytest.fixture
async def names(server: Server, monkeypatch: pytest.MonkeyPatch) -> Names:
    found = Names(server.port)
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)
    return found


async def test_who_opens_at_the_same_time_or_soon_after_shares_the_question_for_the_address(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = to(1, "u.test.")
    await asyncio.gather(*[pool.open() for _ in range(3)])
    await pool.open()
    assert names.asked == 1
    monkeypatch.setattr(dialling, "ADDRESSES_S", 0.0)
    await pool.open()
    assert names.asked == 1  # as long as was said when it was asked
    await pool.close()


async def test_after_a_failure_the_address_is_asked_for_anew(names: Names) -> None:
    pool = to(1, "u.test")
    ports, names.ports = names.ports, (1,)
    with pytest.raises(UpstreamError, match="connection refused"):
        await pool.open()
    names.ports = ports
    assert await ask(pool) == b"hi"
    assert names.asked == 2
    await pool.close()


async def test_who_leaves_does_not_take_the_question_away_from_the_others(names: Names) -> None:
    pool = to(1, "u.test")
    first, second = asyncio.ensure_future(pool.open()), asyncio.ensure_future(pool.open())
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).is_free
    assert names.asked == 1
    await pool.close()


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port on which connecting never ends, since nobody takes the connections that are waiting."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
        for each in waiting:
            each.close()


async def test_while_one_address_is_silent_the_next_is_tried(names: Names, deaf_port: int) -> None:
    names.ports = (deaf_port, *names.ports)
    pool = to(1, "u.test")
    assert await ask(pool) == b"hi"
    await pool.close()


async def test_connecting_has_a_deadline(names: Names, deaf_port: int) -> None:
    names.ports = (deaf_port,)
    with pytest.raises(UpstreamError, match="connecting took too long"):
        await to(1, "u.test", timeout_s=0.05).open()


async def test_a_name_that_cannot_be_asked_for_does_not_resolve() -> None:
    with pytest.raises(UpstreamError, match="does not resolve"):
        await to(1, "x" * 64 + ".test").open()
