"""Rounds of a modern upstream: its `requestState` travels inside one of the gateway's, bound to whom it was given."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.support.asking_tools import ELICIT, FORM, filled
from tests.support.round_client import RoundClient
from tests.support.running_gateway import running_gateway
from tests.support.scripted import ScriptedUpstream, Wire

KEYS = {"alice": "alice-key", "bob": "bob-key"}
AUTH: dict[str, Any] = {
    "type": "api_key",
    "keys": [{"name": name, "sha256": hashlib.sha256(key.encode()).hexdigest()} for name, key in KEYS.items()],
}
ADA = {"name": filled("Ada")}
FROZEN = {"code": -32602, "message": "Invalid or expired request state"}
TOOL = {"name": "book", "inputSchema": {"type": "object"}}


class Upstream(ScriptedUpstream):
    """Asks until it is answered; gives out a state, or none."""

    def __init__(self, state: str | None) -> None:
        super().__init__(era="modern")
        self.tools = [TOOL, {**TOOL, "name": "other"}]
        self.state = state
        self.on("tools/call", self._book)

    async def _book(self, wire: Wire) -> None:
        params = wire.request.params
        if "inputResponses" in params:
            text = params["inputResponses"]["name"]["content"]["name"]
            return await wire.result({"resultType": "complete", "content": [{"type": "text", "text": text}]})
        result: dict[str, Any] = {
            "resultType": "input_required",
            "inputRequests": {"name": {"method": ELICIT, "params": FORM}},
        }
        if self.state is not None:
            result["requestState"] = self.state
        return await wire.result(result)

    @property
    def states(self) -> list[Any]:
        """The `requestState` of every call, None where there was none."""
        return [received.params.get("requestState") for received in self.received("tools/call")]


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def _front(stack: AsyncExitStack, upstream: ScriptedUpstream, **sections: Any) -> RoundClient:
    await stack.enter_async_context(upstream)
    upstreams = {"docs": {"url": upstream.url}, "twin": {"url": upstream.url}}
    gateway = await stack.enter_async_context(running_gateway(upstreams=upstreams, auth=AUTH, **sections))
    return await stack.enter_async_context(RoundClient(gateway.url + "/docs", key=KEYS["alice"]))


@pytest.mark.parametrize("state", ["opaque", "", "\u00e9\U0001f600", "x" * 100_000])
async def test_the_upstream_gets_its_own_state_back(stack: AsyncExitStack, state: str) -> None:
    upstream = Upstream(state)
    client = await _front(stack, upstream)
    asked = await client.call("book")
    assert asked.questions == {"name": {"method": ELICIT, "params": FORM}}
    assert asked.state != state
    done = await client.call("book", answers=ADA, state=asked.state)
    assert done.text == "Ada"
    assert upstream.states == [None, state]


async def test_an_upstream_without_state_gets_none(stack: AsyncExitStack) -> None:
    upstream = Upstream(None)
    client = await _front(stack, upstream)
    asked = await client.call("book")
    assert (await client.call("book", answers=ADA, state=asked.state)).text == "Ada"
    assert upstream.states == [None, None]


async def test_a_state_too_long_to_carry_is_the_upstreams_fault(stack: AsyncExitStack) -> None:
    client = await _front(stack, Upstream("x" * 2_000_000))
    failed = await client.call("book")
    assert (failed.status, failed.error["data"]["reason"]) == (502, "nonsense")


@pytest.mark.parametrize(
    "change",
    [
        {"key": KEYS["bob"]},
        {"target": "other"},
        {"params": {"arguments": {"seat": 1}}},
        {"path": "/twin"},
        {"state": "opaque"},
        {"damage": -1},
        {"damage": 40},
    ],
)
async def test_a_wrapped_state_is_bound_like_any_other(stack: AsyncExitStack, change: dict[str, Any]) -> None:
    """With one credential for all users, the upstream itself could not tell them apart."""
    upstream = Upstream("opaque")
    client = await _front(stack, upstream)
    asked = await client.call("book")
    state = change.get("state", asked.state)
    if (position := change.get("damage")) is not None:
        characters = list(state)
        characters[position] = "A" if state[position] != "A" else "B"
        state = "".join(characters)
    refused = await client.request(
        "tools/call",
        change.get("target", "book"),
        change.get("params", {"arguments": {}}),
        answers={"name": filled("Eve")},
        state=state,
        key=change.get("key"),
        url=client.url.replace("/docs", change.get("path", "/docs")),
    )
    assert (refused.status, refused.error) == (400, FROZEN)
    assert upstream.states == [None]


async def test_a_wrapped_state_expires(stack: AsyncExitStack) -> None:
    upstream = Upstream("opaque")
    client = await _front(stack, upstream, rounds={"ttl": "1ms"})
    asked = await client.call("book")
    await asyncio.sleep(0.001)
    refused = await client.call("book", answers=ADA, state=asked.state)
    assert refused.error == FROZEN
    assert upstream.states == [None]


async def test_a_wrapped_state_outlives_the_process_if_its_key_does(stack: AsyncExitStack) -> None:
    upstream = Upstream("opaque")
    keys = {"keys": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
    client = await _front(stack, upstream, state=keys)
    asked = await client.call("book")
    upstreams = {"docs": {"url": upstream.url}}
    async with running_gateway(upstreams=upstreams, auth=AUTH, state=keys) as gateway:
        done = await client.call("book", answers=ADA, state=asked.state, url=gateway.url)
    assert done.text == "Ada"
