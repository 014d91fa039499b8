"""A client that does not give up, as a careful one does: it comes back when told to, and sends a retry again whose
reply was lost. A call whose own reply was lost it does not make again, since that may have had effects.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import aiohttp

from gateway.wire.jsonrpc import JsonObject
from tests.support.asking_tools import filled
from tests.support.round_client import Reply, RoundClient

_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 1.0
_MOST: Final = 150


@dataclass
class Tally:
    """How calls ended.

    Attributes:
        ends: `done`, `lost`, `unknown`: the reply to the call itself was lost; `failed`: anything else.
        failures: what was said then.
        turned_away: how often a request was refused that could be sent again.
        cut: how often the connection broke over a retry.
    """

    ends: Counter[str] = field(default_factory=Counter)
    failures: list[JsonObject] = field(default_factory=list)
    turned_away: int = 0
    cut: int = 0


class Steadfast:
    """Makes calls that are asked in rounds.

    Args:
        client: makes single requests.
        url: the endpoint, if not the client's own.
        think_s: how long its user thinks about a question.

    Attributes:
        tally: how they ended.
        ends: the same, call by call.
    """

    def __init__(self, client: RoundClient, url: str | None = None, *, think_s: float = 0.0) -> None:
        self._client = client
        self._url = url
        self._think_s = think_s
        self.tally = Tally()
        self.ends: dict[str, str] = {}

    async def call(self, tool: str, key: str) -> str:
        """Make a call, answer whatever it asks, and say how it ended."""
        reply = await self._first(tool, key)
        while reply is not None and reply.asks:
            await asyncio.sleep(self._think_s)
            answers = {name: filled("Ada") for name in reply.questions}
            reply = await self._retry(tool, key, answers, reply.state)
        end = self.ends[key] = self._end(reply, key)
        self.tally.ends[end] += 1
        return end

    async def calls(self, tool: str, keys: Iterable[str], in_flight: int) -> None:
        """Make many calls, some at a time."""
        waiting = iter(keys)

        async def work() -> None:
            for key in waiting:
                await self.call(tool, key)

        await asyncio.gather(*(work() for _ in range(in_flight)))

    async def _first(self, tool: str, key: str) -> Reply | None:
        for _ in range(_MOST):
            try:
                reply = await self._client.call(tool, {"key": key}, url=self._url)
            except aiohttp.ClientError:
                return None
            if not may_be_sent_again(reply):
                return reply
            await self._wait_as_told(reply)
        raise AssertionError(f"{key} is turned away again and again: {reply.message}")

    async def _retry(self, tool: str, key: str, answers: JsonObject, state: str) -> Reply:
        for _ in range(_MOST):
            try:
                reply = await self._client.call(tool, {"key": key}, answers=answers, state=state, url=self._url)
            except aiohttp.ClientError:
                self.tally.cut += 1
                await asyncio.sleep(_PAUSE_S)
                continue
            if not may_be_sent_again(reply):
                return reply
            await self._wait_as_told(reply)
        raise AssertionError(f"the retry of {key} gets no reply")

    async def _wait_as_told(self, reply: Reply) -> None:
        self.tally.turned_away += 1
        told_s = float(_header(reply, "retry-after") or _PAUSE_S)
        await asyncio.sleep(min(told_s, _LONGEST_PAUSE_S))

    def _end(self, reply: Reply | None, key: str) -> str:
        if reply is None:
            return "unknown"
        if "result" in reply.message:
            return "done"
        if (reply.error.get("data") or {}).get("reason") == "lost":
            return "lost"
        self.tally.failures.append({"key": key, "status": reply.status, **reply.message})
        return "failed"


def may_be_sent_again(reply: Reply) -> bool:
    """Whether the gateway says so; or a balancer that had nobody to send it to."""
    data = reply.message.get("error", {}).get("data")
    if isinstance(data, dict):
        return data.get("retryable") is True
    return not reply.message and reply.status == 503 and _header(reply, "retry-after") is not None


def _header(reply: Reply, name: str) -> str | None:
    return next((value for known, value in reply.headers.items() if known.lower() == name), None)
