import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from gateway.core.principal import ANONYMOUS, Principal
from gateway.errors import ProtocolError, to_reply
from gateway.rounds.memory import MemoryRounds, RoundLimits

ALICE = Principal("api_key:alice", "alice")
BOB = Principal("api_key:bob", "bob")


class Waiting:
    """A round that tells when nobody came back for it."""

    def __init__(self) -> None:
        self.expired = asyncio.Event()
        self.times = 0

    async def expire(self) -> None:
        self.times += 1
        self.expired.set()


class Sulking(Waiting):
    """A round that cannot be ended."""

    async def expire(self) -> None:
        raise RuntimeError


def _rounds(ttl_s: float = 60.0, **limits: Any) -> MemoryRounds:
    tasks: set[asyncio.Task[None]] = set()

    def run(work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    return MemoryRounds(RoundLimits(ttl_s, **limits), run)


def _fill(rounds: MemoryRounds, principal: Principal, count: int, upstream: str = "docs") -> list[str]:
    handles = []
    for _ in range(count):
        rounds.admit(principal, upstream)
        handles.append(rounds.keep(Waiting(), principal, upstream))
    return handles


def _refusal(rounds: MemoryRounds, principal: Principal, upstream: str = "docs") -> tuple[int, dict[str, str], Any]:
    with pytest.raises(ProtocolError) as caught:
        rounds.admit(principal, upstream)
    reply = to_reply(caught.value)
    return reply.status, dict(reply.headers), reply.error


# --- claims ---


async def test_a_round_is_claimed_exactly_once() -> None:
    rounds = _rounds()
    waiting = Waiting()
    handle = rounds.keep(waiting, ALICE, "docs")
    assert rounds.find(handle) is waiting
    assert [rounds.claim(handle) for _ in range(3)] == [waiting, None, None]
    assert rounds.find(handle) is None
    assert len(rounds) == 0


async def test_a_round_is_found_under_its_own_handle_only() -> None:
    rounds = _rounds()
    handle = rounds.keep(Waiting(), ALICE, "docs")
    for other in ("", handle[:-1], handle + "A", handle.swapcase()):
        assert rounds.find(other) is None
        assert rounds.claim(other) is None
    assert len(rounds) == 1


async def test_handles_are_random_and_long() -> None:
    rounds = _rounds()
    handles = {rounds.keep(Waiting(), ALICE, "docs") for _ in range(100)}
    assert len(handles) == 100
    assert min(map(len, handles)) >= 22  # 128 bits in base64url


async def test_processes_are_told_apart() -> None:
    assert _rounds().owner != _rounds().owner


# --- time ---


async def test_a_round_that_nobody_claims_expires() -> None:
    rounds = _rounds(ttl_s=0.0)
    waiting = Waiting()
    handle = rounds.keep(waiting, ALICE, "docs")
    await asyncio.wait_for(waiting.expired.wait(), 5)
    assert rounds.claim(handle) is None
    assert len(rounds) == 0


async def test_a_claimed_round_does_not_expire() -> None:
    rounds = _rounds(ttl_s=0.0)
    claimed, left = Waiting(), Waiting()
    handle = rounds.keep(claimed, ALICE, "docs")
    rounds.claim(handle)
    rounds.keep(left, ALICE, "docs")
    await asyncio.wait_for(left.expired.wait(), 5)
    assert not claimed.expired.is_set()


async def test_a_directory_that_closes_ends_every_round_whatever_becomes_of_one() -> None:
    rounds = _rounds()
    waiting = [Waiting(), Sulking(), Waiting()]
    for round_ in waiting:
        rounds.keep(round_, ALICE, "docs")
    await rounds.close()
    assert [round_.times for round_ in waiting] == [1, 0, 1]
    assert len(rounds) == 0


# --- limits ---


async def test_a_principal_has_its_own_limit() -> None:
    rounds = _rounds(max_per_principal=2)
    handles = _fill(rounds, ALICE, 2)
    status, headers, error = _refusal(rounds, ALICE)
    assert (status, error["code"], error["data"]["reason"]) == (429, -32603, "full")
    assert int(headers["retry-after"]) > 0
    _fill(rounds, BOB, 2)
    rounds.claim(handles[0])
    rounds.admit(ALICE, "docs")


async def test_everybody_anonymous_shares_only_the_limit_of_all() -> None:
    rounds = _rounds(max_per_principal=1, max_rounds=3)
    _fill(rounds, ANONYMOUS, 3)
    assert _refusal(rounds, ANONYMOUS)[0] == 503


async def test_all_share_one_limit() -> None:
    rounds = _rounds(max_rounds=2)
    handles = [*_fill(rounds, ALICE, 1), *_fill(rounds, BOB, 1)]
    status, headers, error = _refusal(rounds, ALICE)
    assert (status, error["data"]["reason"]) == (503, "full")
    assert "retry-after" in headers
    rounds.claim(handles[1])
    rounds.admit(ALICE, "docs")


async def test_an_upstream_may_have_a_limit() -> None:
    rounds = _rounds(max_per_upstream=1)
    (handle,) = _fill(rounds, ALICE, 1, "docs")
    assert _refusal(rounds, BOB, "docs")[0] == 503
    rounds.admit(BOB, "git")
    rounds.claim(handle)
    rounds.admit(BOB, "docs")


async def test_a_call_that_goes_on_keeps_its_place() -> None:
    for limits in ({"max_rounds": 1}, {"max_per_principal": 1}, {"max_per_upstream": 1}):
        rounds = _rounds(**limits)
        (handle,) = _fill(rounds, ALICE, 1)
        rounds.claim(handle)
        with rounds.occupied(ALICE, "docs"):
            _refusal(rounds, ALICE)
        rounds.admit(ALICE, "docs")


async def test_expired_rounds_make_room() -> None:
    rounds = _rounds(ttl_s=0.0, max_rounds=1, max_per_principal=1, max_per_upstream=1)
    waiting = Waiting()
    rounds.keep(waiting, ALICE, "docs")
    await asyncio.wait_for(waiting.expired.wait(), 5)
    rounds.admit(ALICE, "docs")


async def test_nothing_is_remembered_of_principals_without_rounds() -> None:
    rounds = _rounds()
    for number in range(10):
        principal = Principal(f"p{number}", "p")
        for handle in _fill(rounds, principal, 2, f"u{number}"):
            rounds.claim(handle)
    assert not rounds._by_principal
    assert not rounds._by_upstream
