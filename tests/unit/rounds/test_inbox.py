"""The inbox of a replica: what is read, what is thrown away, and what goes away by itself."""

import asyncio
from typing import cast

import pytest
from cryptography.fernet import Fernet, MultiFernet
from structlog.testing import capture_logs

from gateway.core.relay import Cancel, Done, Message
from gateway.core.tokens import Sealer
from gateway.rounds import inbox as module
from gateway.rounds.inbox import Inbox
from gateway.store.connection import SharedStore
from gateway.store.down import StoreDown
from tests.support.leftovers import until
from tests.support.store_in_memory import StoreInMemory

SEALER = Sealer(MultiFernet([Fernet(Fernet.generate_key())]))
STRANGER = Sealer(MultiFernet([Fernet(Fernet.generate_key())]))


class Replica:
    def __init__(self, store: StoreInMemory, name: str, sealer: Sealer = SEALER) -> None:
        self.received: list[Message] = []
        self.inbox = Inbox(cast(SharedStore, store), name, sealer, self.received.append)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PAUSE_S", 0.001)


@pytest.fixture
async def store() -> StoreInMemory:
    return StoreInMemory()


async def received(replica: Replica, count: int) -> list[Message]:
    """Read until so many messages are there."""
    reading = asyncio.create_task(replica.inbox.read())
    try:
        await until(lambda: len(replica.received) >= count)
    finally:
        reading.cancel()
        await asyncio.wait([reading])
    return replica.received


async def test_messages_arrive_in_order_small_ones_and_large_ones(store: StoreInMemory) -> None:
    sender, reader = Replica(store, "a"), Replica(store, "b")
    sent = [Done([str(number) * (100_000 if number % 2 else 1)]) for number in range(6)]
    for message in sent:
        await sender.inbox.send(message, "b")
    assert await received(reader, 6) == sent
    assert not [key for key in store.keys() if "body" in key]  # noqa: SIM118 -- no mapping


async def test_what_is_written_to_an_inbox_that_nobody_reads_goes_away(store: StoreInMemory) -> None:
    sender = Replica(store, "a")
    await sender.inbox.send(Cancel("r"), "dead")
    await sender.inbox.send(Done(["x" * 100_000]), "dead")
    store.now_s += 61
    assert store.keys() == []


async def test_an_inbox_that_was_emptied_away_goes_away_again(store: StoreInMemory) -> None:
    sender = Replica(store, "a")
    await sender.inbox.send(Cancel("r"), "dead")
    store.clear()
    store.turn(is_up=False)
    store.turn(is_up=True)
    await sender.inbox.send(Cancel("r"), "dead")
    assert store.left_s("test:inbox:dead") == 60


async def test_a_sender_sees_to_that_now_and_then_only(store: StoreInMemory) -> None:
    sender = Replica(store, "a")
    for _ in range(50):
        await sender.inbox.send(Cancel("r"), "b")
    assert [command[0] for command in store.sent].count("EXPIRE") == 1


async def test_who_was_written_to_is_not_remembered_for_ever(
    store: StoreInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LIMITED_S", 0)
    sender = Replica(store, "a")
    for number in range(50):
        await sender.inbox.send(Cancel("r"), f"b{number}")
    await sender.inbox.tidy()
    assert sender.inbox._limited == {}


@pytest.mark.parametrize(
    "members",
    [
        (b"m", b""),
        (b"m", b"rubbish"),
        (b"m", b"\xff\xfe"),
        (b"m", STRANGER.seal_bytes(b"{}")),
        (b"m", SEALER.seal_bytes(b"rubbish")),
        (b"m", SEALER.seal_bytes(b'{"to":"else","kind":"cancel","relay":"r"}')),
        (b"m", SEALER.seal_bytes(b'{"to":"b","kind":"later"}')),
        (b"b", b"gone"),
        (b"b", b"\xff"),
        (b"other", b"x"),
    ],
)
async def test_what_is_no_message_is_thrown_away_and_the_next_is_read(
    store: StoreInMemory, members: tuple[bytes, bytes]
) -> None:
    await store.execute("XADD", "test:inbox:b", "*", *members)
    await Replica(store, "a").inbox.send(Cancel("r"), "b")
    with capture_logs() as logs:
        assert await received(Replica(store, "b"), 1) == [Cancel("r")]
    assert [log["log_level"] for log in logs] == ["warning"]


@pytest.mark.parametrize("executed", [False, True])
async def test_a_message_may_be_there_or_not_when_the_store_does_not_say(store: StoreInMemory, executed: bool) -> None:
    sender, reader = Replica(store, "a"), Replica(store, "b")
    store.lose("XADD", executed=executed)
    with pytest.raises(StoreDown):
        await sender.inbox.send(Cancel("r"), "b")
    await sender.inbox.send(Cancel("r"), "b")
    assert await received(reader, 1 + executed) == [Cancel("r")] * (1 + executed)


@pytest.mark.parametrize("command", ["XREAD", "GETDEL"])
async def test_nothing_is_passed_over_because_the_store_was_away(store: StoreInMemory, command: str) -> None:
    large = Done(["x" * 100_000])
    await Replica(store, "a").inbox.send(large, "b")
    store.lose(command)
    assert await received(Replica(store, "b"), 1) == [large]


async def test_what_was_read_is_dropped(store: StoreInMemory) -> None:
    sender, reader = Replica(store, "a"), Replica(store, "b")
    await sender.inbox.send(Cancel("r"), "b")
    await received(reader, 1)
    await reader.inbox.tidy()
    await sender.inbox.send(Cancel("s"), "b")
    assert await received(Replica(store, "b"), 1) == [Cancel("s")]


async def test_a_store_that_counts_anew_is_read_from_its_first_entry(store: StoreInMemory) -> None:
    sender, reader = Replica(store, "a"), Replica(store, "b")
    for relay in "abc":
        await sender.inbox.send(Cancel(relay), "b")
    await received(reader, 3)
    store.clear()
    store.lose("XREAD")
    await sender.inbox.send(Cancel("d"), "b")
    assert (await received(reader, 4))[3:] == [Cancel("d")]


async def test_a_receiver_that_fails_is_logged_once(store: StoreInMemory) -> None:
    def fail(message: Message) -> None:
        failed.append(message)
        raise RuntimeError

    failed: list[Message] = []
    inbox = Inbox(cast(SharedStore, store), "b", SEALER, fail)
    for _ in range(5):
        await Replica(store, "a").inbox.send(Cancel("r"), "b")
    with capture_logs() as logs:
        reading = asyncio.create_task(inbox.read())
        await until(lambda: len(failed) == 5)
        reading.cancel()
        await asyncio.wait([reading])
    assert [log["event"] for log in logs] == ["inbox cannot be read"]
