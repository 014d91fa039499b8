"""The dialogues are complete: they enter every cell of the table, and leave it by every way that the table declares."""

import pytest

from gateway.core.exchange import TRANSITIONS
from gateway.core.transitions import HANDLERS, IMPOSSIBLE, targets
from tests.playbook import (
    test_endings,
    test_impossible,
    test_more_rounds,
    test_one_round,
    test_refused_questions,
    test_server_moves,
)
from tests.support.playbook import Step, recording

MODULES = (test_endings, test_impossible, test_more_rounds, test_one_round, test_refused_questions, test_server_moves)


@pytest.fixture(scope="module")
def steps() -> set[Step]:
    """Every step of every dialogue."""
    with recording() as taken:
        for module in MODULES:
            for name, dialogue in vars(module).items():
                if name.startswith("test_"):
                    dialogue()
    return taken


def test_every_cell_is_visited(steps: set[Step]) -> None:
    visited = {(state, event) for state, event, _ in steps}
    assert visited == set(TRANSITIONS)


def test_exactly_the_impossible_cells_are_refused(steps: set[Step]) -> None:
    refused = {(state, event) for state, event, target in steps if target is None}
    assert refused == {cell for cell, handler in HANDLERS.items() if handler == IMPOSSIBLE}


def test_every_declared_way_out_is_taken_and_no_other(steps: set[Step]) -> None:
    taken = {step for step in steps if step[2] is not None}
    declared = {(state, event, target) for state, event in HANDLERS for target in targets(state, event)}
    assert taken == declared
