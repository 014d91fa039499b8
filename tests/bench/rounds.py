"""Calls that ask: how long the whole dialogue takes."""

import asyncio
from dataclasses import dataclass
from statistics import quantiles
from time import perf_counter
from typing import Any

import aiohttp
import orjson

from tests.bench.cases import Plan
from tests.bench.messages import ASK, modern_headers, modern_params
from tests.bench.processes import Target

_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
_ANSWER = {"action": "accept", "content": {"name": "Alice"}}


@dataclass(frozen=True, slots=True)
class Rounds:
    """Dialogues of two requests: the call that is answered with a question, and the retry with the answer."""

    rate: float
    p50_ms: float
    p99_ms: float
    cpu_s_per_1000: float


def measure_rounds(plan: Plan, gateway: Target) -> Rounds:
    """Runs dialogues for a while, 32 at a time."""
    return asyncio.run(_measure(gateway, 32, plan.seconds * 3))


async def _measure(gateway: Target, at_a_time: int, seconds: float) -> Rounds:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{gateway.port}", connector=connector) as http:
        await asyncio.gather(*(_dialogue(http) for _ in range(at_a_time)))
        cpu_s, started = gateway.cpu_s(), perf_counter()
        workers = [_dialogues(http, started + seconds) for _ in range(at_a_time)]
        spent = [one for many in await asyncio.gather(*workers) for one in many]
        elapsed, cpu_s = perf_counter() - started, gateway.cpu_s() - cpu_s
        percentiles = quantiles(spent, n=100)
    return Rounds(
        rate=len(spent) / elapsed,
        p50_ms=percentiles[49] * 1000,
        p99_ms=percentiles[98] * 1000,
        cpu_s_per_1000=cpu_s / len(spent) * 1000,
    )


async def _dialogues(http: aiohttp.ClientSession, until: float) -> list[float]:
    """One dialogue after the other; the seconds that each took."""
    spent = []
    while perf_counter() < until:
        started = perf_counter()
        await _dialogue(http)
        spent.append(perf_counter() - started)
    return spent


async def _dialogue(http: aiohttp.ClientSession) -> None:
    await retry(http, await first_leg(http))


async def retry(http: aiohttp.ClientSession, asked: dict[str, Any]) -> None:
    """Answers what a call asked."""
    answers = dict.fromkeys(asked["inputRequests"], _ANSWER)
    done = await call(http, {"inputResponses": answers, "requestState": asked["requestState"]})
    if "content" not in done:
        raise SystemExit(f"bench: no result after the answer: {done}")


async def first_leg(http: aiohttp.ClientSession) -> dict[str, Any]:
    """Makes a call that asks; what it is answered with."""
    asked = await call(http, {})
    if asked.get("resultType") != "input_required":
        raise SystemExit(f"bench: no question came back: {asked}")
    return asked


async def call(http: aiohttp.ClientSession, extra: dict[str, Any]) -> dict[str, Any]:
    """Calls the tool that asks; its result."""
    params = {**modern_params(ASK, asking=True), **extra}
    body = orjson.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    async with http.post("/mcp", data=body, headers={**_HEADERS, **modern_headers(ASK)}) as reply:
        text = await reply.read()
    message: dict[str, Any] = orjson.loads(text)
    if "result" not in message:
        raise SystemExit(f"bench: a call that asks failed with HTTP {reply.status}: {text[:600]!r}")
    result: dict[str, Any] = message["result"]
    return result
