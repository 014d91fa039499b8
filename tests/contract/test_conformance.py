"""The official 2026-07-28 server scenarios that need no round, through the gateway in front of real servers."""

import pytest

from tests.support.conformance import PROFILES, Runs, assert_passed

pytestmark = pytest.mark.contract

SCORED = (
    "completion-complete",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "server-sse-multiple-streams",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "resources-templates-read",
    "sep-2164-resource-not-found",
    "prompts-list",
    "prompts-get-simple",
    "prompts-get-with-args",
    "prompts-get-embedded-resource",
    "prompts-get-with-image",
    "dns-rebinding-protection",
    "caching",
)
UNSCORED = ("json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation")


@pytest.mark.parametrize("scenario", SCORED + UNSCORED)
@pytest.mark.parametrize("profile", PROFILES)
def test_scenario_passes(runs: Runs, profile: str, scenario: str) -> None:
    assert_passed(runs.checks(profile, scenario))
