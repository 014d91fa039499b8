"""The official scenarios of multi round-trip requests: a legacy server's live question becomes a round."""

import pytest

from tests.support.conformance import PROFILES, Runs, assert_passed

pytestmark = pytest.mark.contract

ROUNDS = (
    "basic-elicitation",
    "basic-sampling",
    "basic-list-roots",
    "request-state",
    "multiple-input-requests",
    "multi-round",
    "missing-input-response",
    "non-tool-request",
    "result-type",
    "unsupported-methods",
    "tampered-state",
    "capability-check",
    "ignore-extra-params",
    "validate-input",
)


@pytest.mark.parametrize("scenario", ROUNDS)
@pytest.mark.parametrize("profile", PROFILES)
def test_round_scenario_passes(runs: Runs, profile: str, scenario: str) -> None:
    assert_passed(runs.checks(profile, f"input-required-result-{scenario}"))
