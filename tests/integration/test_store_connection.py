"""The connection to the shared store: what a store may say, or not say, and what becomes of it."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator

import pytest
from redis.exceptions import ResponseError
from structlog.testing import capture_logs

from gateway.store import connection as module
from gateway.store.connection import SharedStore
from gateway.store.down import StoreDown
from tests.support.fake_redis import FakeRedis

NOT_SERVED = {
    "READONLY": b"-READONLY You can't write against a read only replica.\r\n",
    "OOM": b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "LOADING": b"-LOADING Redis is loading the dataset in memory\r\n",
    "MASTERDOWN": b"-MASTERDOWN Link with MASTER is down\r\n",
    "CLUSTERDOWN": b"-CLUSTERDOWN The cluster is down\r\n",
    "MISCONF": b"-MISCONF Redis is configured to save RDB snapshots\r\n",
    "NOREPLICAS": b"-NOREPLICAS Not enough good replicas to write.\r\n",
    "NOAUTH": b"-NOAUTH Authentication required.\r\n",
    "MOVED": b"-MOVED 3999 127.0.0.1:6381\r\n",
    "BUSY": b"-BUSY Redis is busy running a script\r\n",
}
NOT_ALLOWED = b"-NOPERM User gateway has no permissions to run the 'xadd' command\r\n"


@pytest.fixture
async def redis() -> AsyncIterator[FakeRedis]:
    async with FakeRedis() as server:
        yield server


@pytest.fixture
async def store(redis: FakeRedis) -> AsyncIterator[SharedStore]:
    made = SharedStore(redis.url, "era-gateway")
    yield made
    await made.close()


@pytest.mark.parametrize("word", sorted(NOT_SERVED))
async def test_a_store_that_answers_and_does_not_serve_is_down(redis: FakeRedis, store: SharedStore, word: str) -> None:
    redis.answers["SET"] = NOT_SERVED[word]
    with capture_logs() as logs:
        for _ in range(5):
            with pytest.raises(StoreDown):
                await store.probe("SET", "k", "v")
        assert not store.is_up
        redis.answers.clear()
        assert await store.probe("SET", "k", "v")
    assert store.is_up
    assert [log["event"] for log in logs] == ["store down", "store back"]
    assert logs[0]["said"] in (word, None)


async def test_a_store_that_can_be_read_and_not_written_stays_down(redis: FakeRedis, store: SharedStore) -> None:
    redis.answers["SET"] = NOT_SERVED["OOM"]
    with pytest.raises(StoreDown):
        await store.execute("SET", "k", "v")
    redis.answers["XREAD"] = b"*-1\r\n"
    await store.wait(1, "XREAD", "k")
    assert not store.is_up
    with pytest.raises(StoreDown):
        await store.execute("GET", "k")
    assert redis.commands.count("GET") == 0


async def test_a_right_that_its_user_lacks_is_said_once_and_the_store_is_not_down(
    redis: FakeRedis, store: SharedStore
) -> None:
    redis.answers["XADD"] = redis.answers["XREAD"] = NOT_ALLOWED
    with capture_logs() as logs:
        for _ in range(5):
            with pytest.raises(StoreDown):
                await store.execute("XADD", "k", "*", "m", "secret")
            with pytest.raises(StoreDown):
                await store.wait(1, "XREAD", "k")
    assert store.is_up
    assert await store.execute("GET", "k") == b"OK"
    assert [(log["event"], log["command"], log["log_level"]) for log in logs] == [
        ("store refuses a command", "XADD", "error"),
        ("store refuses a command", "XREAD", "error"),
    ]
    assert "secret" not in str(logs)


async def test_a_heartbeat_that_is_not_allowed_means_down(redis: FakeRedis, store: SharedStore) -> None:
    redis.answers["SET"] = NOT_ALLOWED
    with capture_logs() as logs, pytest.raises(StoreDown):
        await store.probe("SET", "k", "v")
    assert not store.is_up
    assert logs[0]["said"] == "NOPERM"


async def test_a_command_that_is_wrong_is_a_fault_of_ours_and_not_an_outage(
    redis: FakeRedis, store: SharedStore
) -> None:
    redis.answers["GET"] = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"
    with pytest.raises(ResponseError):
        await store.execute("GET", "k")
    assert store.is_up


async def test_a_wait_that_is_cut_off_says_nothing_of_the_store(redis: FakeRedis, store: SharedStore) -> None:
    redis.answers["XREAD"] = b""
    changes: list[bool] = []
    store.on_change(changes.append)
    for _ in range(3):
        with pytest.raises(StoreDown):
            await store.wait(1, "XREAD", "k")
    assert (store.is_up, changes) == (True, [])


async def test_rubbish_is_no_answer(redis: FakeRedis, store: SharedStore) -> None:
    redis.answers["GET"] = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    with pytest.raises(StoreDown):
        await store.execute("GET", "k")
    assert not store.is_up


async def test_a_command_is_sent_once_however_it_ends(redis: FakeRedis, store: SharedStore) -> None:
    await store.execute("GET", "k")
    redis.answers["XADD"] = b""
    with pytest.raises(StoreDown):
        await store.execute("XADD", "k", "*", "m", "v")
    assert redis.commands.count("XADD") == 1


async def test_many_commands_at_once_to_a_store_that_says_nothing_fail_within_the_bound(
    redis: FakeRedis, store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_COMMAND_S", 0.1)
    monkeypatch.setattr(module, "_CONNECT_S", 0.1)
    patient = SharedStore(redis.url, "era-gateway")
    redis.answers["GET"] = None
    async with asyncio.timeout(5):
        ends = await asyncio.gather(*(patient.execute("GET", "k") for _ in range(500)), return_exceptions=True)
    assert {type(end) for end in ends} == {StoreDown}
    assert not patient.is_up
    began_s = time.monotonic()
    with pytest.raises(StoreDown):
        await patient.execute("GET", "k")
    assert time.monotonic() - began_s < 0.1, "nobody waits for a store that is known to be down"
    assert await patient.probe("SET", "k", "v")
    assert patient.is_up
    await patient.close()


async def test_a_port_that_takes_no_connection_is_not_waited_for_beyond_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_COMMAND_S", 0.1)
    monkeypatch.setattr(module, "_CONNECT_S", 0.1)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)  # a connection or two are taken into its queue, and answered by nobody; the next not even that
        store = SharedStore(f"redis://127.0.0.1:{deaf.getsockname()[1]}/0", "era-gateway")
        async with asyncio.timeout(5):
            ends = await asyncio.gather(*(store.execute("GET", "k") for _ in range(10)), return_exceptions=True)
            assert {type(end) for end in ends} == {StoreDown}
            await store.close()


async def test_whoever_is_cancelled_while_it_connects_ends() -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(1)
        store = SharedStore(f"redis://127.0.0.1:{deaf.getsockname()[1]}/0", "era-gateway")
        asking = asyncio.create_task(store.execute("GET", "k"))
        await asyncio.sleep(0)
        asking.cancel()
        async with asyncio.timeout(5):
            await asyncio.wait([asking])
        assert asking.cancelled()
        assert store.is_up, "that somebody left says nothing of the store"
        await store.close()


async def test_who_cleans_up_after_a_cancellation_is_not_cancelled_again(redis: FakeRedis, store: SharedStore) -> None:
    cleaned: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await store.execute("DEL", "k")
            cleaned.append(True)

    working = asyncio.create_task(work())
    await asyncio.sleep(0)
    working.cancel()
    await asyncio.wait([working])
    assert working.cancelled()
    assert cleaned == [True]


async def test_a_cancellation_that_the_client_swallows_is_not_lost(
    store: SharedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = asyncio.Event()

    async def swallow(*_command: str) -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "as if nothing had been"
        raise AssertionError

    monkeypatch.setattr(store._client, "execute_command", swallow)
    asking = asyncio.create_task(store.execute("GET", "k"))
    await began.wait()
    asking.cancel()
    await asyncio.wait([asking])
    assert asking.cancelled()
