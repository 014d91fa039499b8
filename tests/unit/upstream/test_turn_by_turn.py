"""What comes in floods is taken in turns."""

import asyncio

import pytest

from gateway.upstream import turn_by_turn
from gateway.upstream.turn_by_turn import TurnByTurn


class Reader:
    """Notes what is taken, and when reading was to pause."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.turns = TurnByTurn(self._take, lambda: self.log.append("pause"), lambda: self.log.append("resume"))

    def _take(self, source: int, data: bytes) -> None:
        self.log.append(f"{source}{data.decode()}")

    async def until_empty(self) -> None:
        empty = asyncio.Event()
        self.turns.when_empty(empty.set)
        await empty.wait()


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, and a turn is over."""
    monkeypatch.setattr(turn_by_turn, "TURN_S", -1.0)
    monkeypatch.setattr(turn_by_turn, "REST_S", 0.0)


async def test_what_fits_into_a_turn_is_taken_at_once() -> None:
    reader = Reader()
    reader.turns.add(1, b"a\nb")
    reader.turns.add(2, b"")
    reader.turns.add(2, b"c\n")
    assert reader.log == ["1a\n", "1b", "2c\n"]
    await reader.until_empty()


async def test_nothing_is_read_on_before_all_was_taken_in_its_order(short_turns: None) -> None:
    reader = Reader()
    reader.turns.add(1, b"a\nb\n\nc")
    assert reader.log == ["1a\n", "pause"]
    reader.turns.add(2, b"d\n")
    await reader.until_empty()
    assert reader.log == ["1a\n", "pause", "1b\n", "1\n", "1c", "2d\n", "resume"]
    reader.turns.add(1, b"e")
    assert reader.log[-1] == "1e"


async def test_others_have_the_loop_between_two_turns(short_turns: None) -> None:
    reader = Reader()
    reader.turns.add(1, b"x\n" * 100)
    seen: set[int] = set()
    reader.turns.when_empty(lambda: seen.add(-1))
    while -1 not in seen:
        seen.add(len(reader.log))
        await asyncio.sleep(0)
    assert len(seen) > 50
