"""The side of a relay that has the client."""

from collections.abc import Coroutine
from typing import Any

import pytest

from gateway.core.relay import Message, Serve
from gateway.rounds.relayer import Relayer
from gateway.server.gate import draining
from gateway.wire.jsonrpc import JsonObject


class Client:
    async def notify(self, notification: JsonObject) -> None:
        raise AssertionError("nothing is told")


async def test_a_replica_that_leaves_begins_no_relay_whose_end_it_would_not_hear() -> None:
    sent: list[Message] = []

    async def send(message: Message, _recipient: str) -> None:
        sent.append(message)

    async def is_alive(_replica: str) -> bool:
        return True

    def run(work: Coroutine[Any, Any, None]) -> None:
        raise AssertionError("nothing is begun")

    relayer = Relayer(send, is_alive, run)
    error = draining()
    relayer.leave(error)
    with pytest.raises(type(error)) as refusal:
        await relayer.relay(Serve("r", "here", "docs", "h", {}, {}), "there", Client())
    assert refusal.value is error
    assert sent == []
