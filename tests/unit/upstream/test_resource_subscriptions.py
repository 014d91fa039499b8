"""Each resource is subscribed to once, in the order in which listeners come and go."""

import asyncio

import pytest

from gateway.errors import UpstreamError
from gateway.upstream import resource_subscriptions
from gateway.upstream.background import Background
from gateway.upstream.resource_subscriptions import ResourceSubscriptions
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject

SUBSCRIBE, UNSUBSCRIBE = methods.SUBSCRIBE, methods.UNSUBSCRIBE


class Server:
    """Keeps what it was asked, and answers when it is let."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.refused: set[str] = set()
        self.gates: dict[tuple[str, str], asyncio.Event] = {}
        self.at_once = 0
        self._now = 0

    async def ask(self, method: str, params: JsonObject | None) -> Json:
        uri = (params or {})["uri"]
        self.asked.append((method, uri))
        self._now += 1
        self.at_once = max(self.at_once, self._now)
        try:
            if (gate := self.gates.get((method, uri))) is not None:
                await gate.wait()
            await asyncio.sleep(0)
        finally:
            self._now -= 1
        if uri in self.refused:
            raise UpstreamError("u", "nonsense", "refused")
        return {}


class Desk:
    def __init__(self) -> None:
        self.server = Server()
        self.background = Background()
        self.resources = ResourceSubscriptions(self.server.ask, self.background)

    async def hold(self, *uris: str) -> frozenset[str]:
        return await self.resources.hold(frozenset(uris))

    async def settled(self) -> list[tuple[str, str]]:
        """What the server was asked, when it was told everything."""
        await self.background.close(5.0)
        return self.server.asked


async def test_a_resource_is_subscribed_to_once_until_nobody_holds_it() -> None:
    desk = Desk()
    assert await desk.hold("a") == {"a"}
    assert await desk.hold("a", "b") == {"a", "b"}
    desk.resources.let_go(["a"])
    assert await desk.settled() == [(SUBSCRIBE, "a"), (SUBSCRIBE, "b")]
    desk.resources.let_go(["a"])
    assert await desk.settled() == [(SUBSCRIBE, "a"), (SUBSCRIBE, "b"), (UNSUBSCRIBE, "a")]
    assert len(desk.resources) == 1


async def test_what_is_refused_is_not_held_and_asked_for_again_by_the_next() -> None:
    desk = Desk()
    desk.server.refused = {"a"}
    assert await desk.hold("a", "b") == {"b"}
    desk.server.refused = set()
    assert await desk.hold("a") == {"a"}
    asked = await desk.settled()
    assert asked.count((SUBSCRIBE, "a")) == 2
    assert (UNSUBSCRIBE, "a") not in asked


async def test_who_comes_while_it_is_being_subscribed_to_waits_for_the_same_answer() -> None:
    desk = Desk()
    gate = desk.server.gates[SUBSCRIBE, "a"] = asyncio.Event()
    both = [asyncio.ensure_future(desk.hold("a")) for _ in range(2)]
    await asyncio.sleep(0)
    gate.set()
    assert [await held for held in both] == [{"a"}, {"a"}]
    assert await desk.settled() == [(SUBSCRIBE, "a")]


async def test_who_leaves_while_it_is_being_subscribed_to_does_not_take_it_from_the_others() -> None:
    desk = Desk()
    gate = desk.server.gates[SUBSCRIBE, "a"] = asyncio.Event()
    first, second = (asyncio.ensure_future(desk.hold("a")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    gate.set()
    assert await second == {"a"}
    assert await desk.settled() == [(SUBSCRIBE, "a")]


async def test_who_leaves_alone_while_it_is_being_subscribed_to_is_followed_by_an_unsubscription() -> None:
    desk = Desk()
    gate = desk.server.gates[SUBSCRIBE, "a"] = asyncio.Event()
    only = asyncio.ensure_future(desk.hold("a"))
    await asyncio.sleep(0)
    only.cancel()
    await asyncio.wait([only])
    gate.set()
    assert await desk.settled() == [(SUBSCRIBE, "a"), (UNSUBSCRIBE, "a")]
    assert len(desk.resources) == 0


async def test_who_comes_while_it_is_being_unsubscribed_from_is_subscribed_afterwards() -> None:
    desk = Desk()
    await desk.hold("a")
    gate = desk.server.gates[UNSUBSCRIBE, "a"] = asyncio.Event()
    desk.resources.let_go(["a"])
    again = asyncio.ensure_future(desk.hold("a"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert desk.server.asked == [(SUBSCRIBE, "a"), (UNSUBSCRIBE, "a")]
    gate.set()
    assert await again == {"a"}
    assert desk.server.asked[-1] == (SUBSCRIBE, "a")


async def test_coming_and_going_ends_as_it_began() -> None:
    desk = Desk()

    async def come_and_go(number: int) -> None:
        held = await desk.hold(f"{number % 3}")
        await asyncio.sleep(0)
        desk.resources.let_go(held)

    await asyncio.gather(*(come_and_go(number) for number in range(100)))
    state: dict[str, bool] = {}
    for method, uri in await desk.settled():
        assert state.get(uri, False) is (method == UNSUBSCRIBE)
        state[uri] = method == SUBSCRIBE
    assert not any(state.values())
    assert len(desk.resources) == 0


async def test_a_new_session_is_subscribed_to_everything_that_is_held() -> None:
    desk, other = Desk(), Server()
    await desk.hold("a", "b")
    desk.resources.let_go(["b"])
    await desk.settled()
    await desk.resources.renew(other.ask)
    assert other.asked == [(SUBSCRIBE, "a")]


async def test_a_few_are_asked_for_at_once() -> None:
    desk = Desk()
    await desk.hold(*(str(number) for number in range(200)))
    assert desk.server.at_once <= resource_subscriptions._AT_ONCE
    assert len(desk.server.asked) == 200


async def test_a_server_that_does_not_answer_has_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_subscriptions, "_ASK_S", 0.01)
    desk = Desk()
    desk.server.gates[SUBSCRIBE, "a"] = asyncio.Event()
    assert await desk.hold("a", "b") == {"b"}


async def test_at_the_end_everything_is_unsubscribed_from() -> None:
    desk = Desk()
    await desk.hold("a", "b")
    await desk.hold("a")
    await desk.resources.close()
    assert sorted(desk.server.asked[2:]) == [(UNSUBSCRIBE, "a"), (UNSUBSCRIBE, "b")]
    assert len(desk.resources) == 0
