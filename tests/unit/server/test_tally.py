"""gateway.server.tally: what is counted of requests, and what nobody can make it count."""

import pytest

from gateway.server import tally
from gateway.server.tally import BOUNDS_MS, Tally
from gateway.wire import methods


def noted(*kinds: tuple[str | None, int, str | None, bool]) -> Tally:
    counted = Tally()
    for method, status, result, is_error in kinds:
        counted.note(method, status, 1.0, result, is_error=is_error)
    return counted


@pytest.mark.parametrize(
    ("note", "end"),
    [
        (("tools/call", 200, "complete", False), ("tools/call", 200, "complete")),
        (("tools/call", 200, "input_required", False), ("tools/call", 200, "input_required")),
        (("tools/call", 200, None, True), ("tools/call", 200, "error")),
        (("tools/call", 499, None, False), ("tools/call", 499, "none")),
        ((None, 403, None, True), ("other", 403, "error")),
        (("made/up", 404, None, True), ("other", 404, "error")),
        (("tools/call", 200, "made_up", False), ("tools/call", 200, "other")),
    ],
)
def test_requests_are_counted_by_words_that_nobody_made_up(
    note: tuple[str | None, int, str | None, bool], end: tuple[str, int, str]
) -> None:
    assert noted(note, note).ends == {end: 2}


def test_durations_fall_into_classes_with_their_bounds() -> None:
    counted = Tally()
    for ms in (0.0, 5.0, 5.1, 10_000.0, 10_001.0):
        counted.note("tools/call", 200, ms, "complete", is_error=False)
    assert counted.durations == [2, 1, *[0] * (len(BOUNDS_MS) - 3), 1, 1]
    assert counted.total_ms == 20_011.1


def test_streams_of_changes_are_no_slow_requests() -> None:
    counted = Tally()
    counted.note(methods.LISTEN, 200, 3_600_000.0, "complete", is_error=False)
    assert (sum(counted.durations), counted.total_ms) == (0, 0)
    assert counted.ends[methods.LISTEN, 200, "complete"] == 1


def test_notes_are_counted_before_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "_MOST_NOTES", 3)
    counted = Tally()
    for number in range(10):
        assert len(counted._notes) < 3
        counted.note("tools/call", 200, float(number), "complete", is_error=False)
    assert counted.ends == {("tools/call", 200, "complete"): 10}
    assert (sum(counted.durations), counted.total_ms) == (10, 45.0)
    assert counted.ends == {("tools/call", 200, "complete"): 10}, "looking changes nothing"
