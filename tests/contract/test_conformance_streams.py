"""The official scenario of the stateless protocol itself, subscriptions included."""

import pytest

from tests.support.conformance import PROFILES, Runs, assert_passed

pytestmark = pytest.mark.contract


@pytest.mark.parametrize("profile", PROFILES)
def test_stateless_scenario_passes(runs: Runs, profile: str) -> None:
    assert_passed(runs.checks(profile, "server-stateless"))
