"""Two replicas and the store between them: what calls and rounds cost there, by where the retry lands."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import aiohttp
from cryptography.fernet import Fernet

from tests.bench.cases import Plan
from tests.bench.load import Load
from tests.bench.processes import Target, put_load, start_gateway
from tests.bench.rounds import first_leg, retry
from tests.bench.store import Store, Work
from tests.bench.store_speed import busy_round_us

_IDLE_S = 5.0
_AT_A_TIME = 32


@dataclass(frozen=True, slots=True)
class Share:
    """What one thing costs at the store and at the replicas together; of an idle replica, a second of it.

    Args:
        name: what it is.
        done: how many were counted.
        rate: how many in a second.
        commands: of each kind, for one.
        bytes_in: that the store received, for one.
        bytes_out: that it sent.
        store_us: its processor time, in microseconds.
        gateway_ms: processor time of both replicas, in milliseconds.
    """

    name: str
    done: float
    rate: float
    commands: dict[str, float]
    bytes_in: float
    bytes_out: float
    store_us: float
    gateway_ms: float


@dataclass(frozen=True, slots=True)
class Shares:
    """All of them, what remains in the store of each round, and what one costs a store that is busy."""

    idle: Share
    shares: list[Share]
    claim_bytes: float
    clients: int
    busy_us: float


def measure_replicas(plan: Plan, upstream: Target, folder: Path) -> Shares:
    """Measures two replicas that do nothing, plain calls, and rounds that come back to the same or the other one."""
    with _replicas(upstream, folder) as (store, alone_us, pair):
        here, there = pair
        seconds = plan.seconds * 5
        _converse(here, there, 0.3)
        idle = _idle(store, alone_us, pair)
        counted = _Counting(store, pair, idle, alone_us)
        plain = counted.share("plain call", lambda: _plain_calls(here, seconds))
        local = counted.share("round, retried at its replica", lambda: _converse(here, here, seconds))
        relayed = counted.share("round, retried at another", lambda: _converse(here, there, seconds))
        claim_bytes, clients = store.bytes_each("era-gateway:claim:*"), store.work().clients
    return Shares(idle, [plain, local, relayed], claim_bytes, clients, busy_round_us(relayed.bytes_in))


@contextmanager
def shared_state() -> Iterator[str]:
    """The lines of a configuration with a store, as long as the store runs."""
    store = Store()
    try:
        yield _state(store)
    finally:
        store.stop()


def _state(store: Store) -> str:
    return f'state: {{store: "{store.url}", keys: "{Fernet.generate_key().decode()}"}}\n'


@contextmanager
def _replicas(upstream: Target, folder: Path) -> Iterator[tuple[Store, float, list[Target]]]:
    """The store, what it costs by itself in microseconds a second, and two replicas on it."""
    with ExitStack() as stack:
        store = Store()
        stack.callback(store.stop)
        before = store.work()
        time.sleep(_IDLE_S)
        after = store.work()
        alone_us = (after.cpu_s - before.cpu_s) / (after.at_s - before.at_s) * 1e6
        state = _state(store)
        pair = []
        for _ in range(2):
            pair.append(start_gateway(upstream, folder, more=state))
            stack.callback(pair[-1].stop)
        yield store, alone_us, pair


def _idle(store: Store, alone_us: float, pair: list[Target]) -> Share:
    """A second of one replica at which nothing happens, beyond what the store costs alone."""
    before, cpu_s = store.work(), sum(one.cpu_s() for one in pair)
    time.sleep(_IDLE_S)
    after = store.work()
    seconds = (after.at_s - before.at_s) * len(pair)
    share = _share("idle replica, each second", before, after, seconds, 1, sum(one.cpu_s() for one in pair) - cpu_s)
    return replace(share, store_us=share.store_us - alone_us / len(pair))


def _share(name: str, before: Work, after: Work, done: float, rate: float, cpu_s: float) -> Share:
    more = Counter(after.commands)
    more.subtract(before.commands)
    return Share(
        name,
        done,
        rate,
        {command: count / done for command, count in more.items() if count},
        (after.bytes_in - before.bytes_in) / done,
        (after.bytes_out - before.bytes_out) / done,
        (after.cpu_s - before.cpu_s) / done * 1e6,
        cpu_s / done * 1e3,
    )


class _Counting:
    """Takes away what the replicas would have cost anyway."""

    def __init__(self, store: Store, pair: list[Target], idle: Share, alone_us: float) -> None:
        self._store = store
        self._pair = pair
        self._idle = idle
        self._alone_us = alone_us

    def share(self, name: str, do: Callable[[], int]) -> Share:
        before, cpu_s = self._store.work(), self._cpu_s()
        done = do()
        after, cpu_s = self._store.work(), self._cpu_s() - cpu_s
        elapsed = after.at_s - before.at_s
        whole = _share(name, before, after, done, done / elapsed, cpu_s)
        anyway = elapsed * len(self._pair) / done
        commands = {
            command: count - self._idle.commands.get(command, 0.0) * anyway for command, count in whole.commands.items()
        }
        return Share(
            name,
            done,
            whole.rate,
            commands,
            whole.bytes_in - self._idle.bytes_in * anyway,
            whole.bytes_out - self._idle.bytes_out * anyway,
            whole.store_us - (self._idle.store_us + self._alone_us / len(self._pair)) * anyway,
            whole.gateway_ms - self._idle.gateway_ms * anyway,
        )

    def _cpu_s(self) -> float:
        return sum(one.cpu_s() for one in self._pair)


def _plain_calls(target: Target, seconds: float) -> int:
    return put_load(Load(target.port, "json_1k", _AT_A_TIME, seconds)).calls


def _converse(first: Target, second: Target, seconds: float) -> int:
    return asyncio.run(_dialogues(first, second, seconds))


async def _dialogues(first: Target, second: Target, seconds: float) -> int:
    """Dialogues for a while, their first leg at one replica and the retry at another; how many there were."""
    async with _client(first) as one, _client(second) as other:
        until = perf_counter() + seconds

        async def worker() -> int:
            done = 0
            while perf_counter() < until:
                await retry(other, await first_leg(one))
                done += 1
            return done

        return sum(await _at_once(worker))


async def _at_once(worker: Callable[[], Awaitable[int]]) -> list[int]:
    return await asyncio.gather(*(worker() for _ in range(_AT_A_TIME)))


def _client(target: Target) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(f"http://127.0.0.1:{target.port}", connector=aiohttp.TCPConnector(limit=0))
