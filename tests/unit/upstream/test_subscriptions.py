"""Who shares a source, how changes are merged, and what a client that does not read costs."""

import asyncio
from typing import Any

import pytest

from gateway.core.inbound_request import InboundRequest
from gateway.core.principal import ANONYMOUS, Caller
from gateway.core.subscriptions import Filter
from gateway.errors import ProtocolError, UpstreamError
from gateway.upstream import subscriptions
from gateway.upstream.background import Background
from gateway.upstream.subscriptions import Reports, StreamLimit, Subscriptions
from gateway.wire import methods
from gateway.wire.jsonrpc import JsonObject, notification

BOUND_S = 5.0
TOOLS = notification(methods.TOOLS_CHANGED)
ASKED = {"toolsListChanged": True, "resourceSubscriptions": ["note://1"]}


class FakeSource:
    """Grants what is asked, and remembers what happened to it."""

    def __init__(self, reports: Reports, gate: asyncio.Event) -> None:
        self.reports = reports
        self.left: list[Filter] = []
        self.closed = asyncio.Event()
        self.failure: Exception | None = None
        self._gate = gate

    async def join(self, asked: Filter) -> Filter:
        await self._gate.wait()
        if self.failure is not None:
            raise self.failure
        return asked

    async def leave(self, granted: Filter) -> None:
        self.left.append(granted)

    async def close(self) -> None:
        self.closed.set()


class Client:
    """Takes what it is told; while `reads` is not set, it does not."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[JsonObject] = asyncio.Queue()
        self.reads = asyncio.Event()
        self.reads.set()

    async def notify(self, notification: JsonObject) -> None:
        await self.reads.wait()
        self.told.put_nowait(notification)

    async def next(self) -> JsonObject:
        async with asyncio.timeout(BOUND_S):
            return await self.told.get()


class Desk:
    """The listeners of an upstream, and the sources that were opened for them."""

    def __init__(self, most: int = 10) -> None:
        self.sources: list[FakeSource] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.background = Background()
        self.changes: list[JsonObject | None] = []
        self.subscriptions = Subscriptions(
            lambda _request, caller: (caller.authorization, ""),
            self._open,
            StreamLimit(most),
            self.background,
            self.changes.append,
        )

    def _open(self, _request: InboundRequest, _caller: Caller, reports: Reports) -> FakeSource:
        self.sources.append(FakeSource(reports, self.gate))
        return self.sources[-1]

    def listen(self, client: Client, id: str | int = 1, key: str = "k", asked: Any = ASKED) -> "asyncio.Task[Any]":
        """Begin to listen."""
        request = InboundRequest(id, methods.LISTEN, {"notifications": asked}, {}, {})
        serving = self.subscriptions.serve(request, Caller(ANONYMOUS, key), client)
        return asyncio.get_running_loop().create_task(serving)

    async def listening(self, **how: Any) -> tuple[Client, "asyncio.Task[Any]"]:
        """Listen, and take the acknowledgement."""
        client = Client()
        task = self.listen(client, **how)
        assert (await client.next())["method"] == methods.ACKNOWLEDGED
        return client, task


async def stop(*tasks: "asyncio.Task[Any]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=BOUND_S)


@pytest.fixture(autouse=True)
def merge_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MERGE_S", 0.001)


async def test_callers_with_one_key_share_a_source_and_others_do_not() -> None:
    desk = Desk()
    tasks = [(await desk.listening(id=number, key=key))[1] for number, key in enumerate("aab")]
    assert len(desk.sources) == 2
    assert len(desk.subscriptions) == 3
    await stop(tasks[0])
    await desk.background.close(BOUND_S)
    assert len(desk.sources[0].left) == 1
    assert not desk.sources[0].closed.is_set()
    await stop(*tasks[1:])
    await desk.background.close(BOUND_S)
    assert all(source.closed.is_set() for source in desk.sources)
    assert len(desk.subscriptions) == 0


async def test_a_source_that_cannot_be_joined_is_closed_and_the_next_listener_gets_another() -> None:
    desk = Desk()
    desk.gate.clear()
    task = desk.listen(Client())
    await asyncio.sleep(0)
    desk.sources[0].failure = UpstreamError("u", "unreachable", "down")
    desk.gate.set()
    with pytest.raises(UpstreamError):
        await task
    await desk.background.close(BOUND_S)
    assert desk.sources[0].closed.is_set()
    _, other = await desk.listening()
    assert len(desk.sources) == 2
    await stop(other)


async def test_changes_within_a_moment_are_told_once() -> None:
    desk = Desk()
    client, task = await desk.listening()
    for owner in ("k", "other", "k"):
        desk.subscriptions.publish(TOOLS, owner)
    assert (await client.next())["method"] == methods.TOOLS_CHANGED
    desk.subscriptions.publish(notification(methods.RESOURCE_UPDATED, {"uri": "note://1"}), "k")
    assert (await client.next())["method"] == methods.RESOURCE_UPDATED
    assert client.told.empty()
    await stop(task)


async def test_many_different_changes_are_told_before_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MERGE_S", 3600)
    monkeypatch.setattr(subscriptions, "_MOST_PENDING", 10)
    desk = Desk()
    client, task = await desk.listening()
    for number in range(10):
        desk.subscriptions.publish(notification(methods.RESOURCE_UPDATED, {"uri": f"note://1/{number}"}), "k")
    assert [(await client.next())["params"]["uri"] for _ in range(10)] == [f"note://1/{n}" for n in range(10)]
    await stop(task)


async def test_every_change_and_every_gap_is_told_within_the_gateway_first() -> None:
    desk = Desk()
    desk.subscriptions.publish(TOOLS, "k")
    _, task = await desk.listening()
    desk.sources[0].reports.missed()
    assert desk.changes == [TOOLS, None]
    await stop(task)


async def test_nothing_waits_where_nobody_listens() -> None:
    desk = Desk()
    desk.subscriptions.publish(TOOLS, "k")
    client, task = await desk.listening()
    desk.subscriptions.publish(notification(methods.RESOURCE_UPDATED, {"uri": "note://1"}), "k")
    assert (await client.next())["method"] == methods.RESOURCE_UPDATED
    await stop(task)


async def test_a_client_that_does_not_read_is_told_of_each_change_once_when_it_does() -> None:
    desk = Desk()
    slow, slow_task = await desk.listening(id="slow")
    quick, quick_task = await desk.listening(id="quick")
    slow.reads.clear()
    for _ in range(50):
        desk.subscriptions.publish(TOOLS, "k")
        assert (await quick.next())["method"] == methods.TOOLS_CHANGED
    slow.reads.set()
    desk.subscriptions.publish(notification(methods.RESOURCE_UPDATED, {"uri": "note://1"}), "k")
    told = []
    while methods.RESOURCE_UPDATED not in told:
        told.append((await slow.next())["method"])
    assert told.count(methods.TOOLS_CHANGED) <= 2
    await stop(slow_task, quick_task)


async def test_a_gap_concerns_the_listeners_of_its_source() -> None:
    desk = Desk()
    first, first_task = await desk.listening(key="a")
    second, second_task = await desk.listening(key="b")
    desk.sources[0].reports.missed()
    assert {(await first.next())["method"] for _ in range(2)} == {methods.TOOLS_CHANGED, methods.RESOURCE_UPDATED}
    assert second.told.empty()
    await stop(first_task, second_task)


async def test_what_is_lost_ends_its_listeners_with_the_reason() -> None:
    desk = Desk()
    _, task = await desk.listening(key="a")
    _, other = await desk.listening(key="b")
    error = UpstreamError("u", "nonsense", "gone")
    desk.sources[0].reports.lost(error)
    async with asyncio.timeout(BOUND_S):
        with pytest.raises(UpstreamError) as raised:
            await task
    assert raised.value is error
    assert not other.done()
    _, again = await desk.listening(key="a")
    assert len(desk.sources) == 3
    await stop(other, again)


async def test_the_bound_counts_listeners_that_are_there() -> None:
    desk = Desk(most=1)
    _, task = await desk.listening()
    with pytest.raises(ProtocolError) as refused:
        await desk.listen(Client())
    assert refused.value.status == 503
    assert dict(refused.value.headers)["retry-after"]
    await stop(task)
    _, other = await desk.listening()
    await stop(other)


async def test_at_the_end_every_stream_is_completed() -> None:
    desk = Desk()
    client, task = await desk.listening(id=7)
    desk.subscriptions.end()
    assert (await client.next())["params"]["requestId"] == 7
    outcome = await task
    assert outcome.body["result"]["resultType"] == "complete"
    late, late_task = await desk.listening()
    assert (await late.next())["method"] == methods.CANCELLED
    await late_task


async def test_a_listener_that_leaves_before_it_has_joined_leaves_nothing() -> None:
    desk = Desk()
    desk.gate.clear()
    task = desk.listen(Client())
    await asyncio.sleep(0)
    await stop(task)
    await desk.background.close(BOUND_S)
    assert desk.sources[0].closed.is_set()
    assert not desk.subscriptions._groups
