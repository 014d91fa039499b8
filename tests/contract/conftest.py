"""One run of the official runner per server, shared by all tests; logs in the reports of failed tests."""

from collections.abc import Generator

import pytest

from tests.support import processes
from tests.support.conformance import Runs

_RUNS = pytest.StashKey[Runs]()


def pytest_configure(config: pytest.Config) -> None:
    """Makes room for the runs."""
    config.stash[_RUNS] = Runs()


@pytest.fixture(scope="session")
def runs(request: pytest.FixtureRequest) -> Runs:
    """The runs of the official runner."""
    return request.config.stash[_RUNS]


def _profile_of(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("profile") if callspec else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to the report of a failed test what the processes behind it printed."""
    report = yield
    if report.failed:
        for process in processes.LIVE:
            report.sections.append((f"output of {process.name}", process.log()))
        profile = _profile_of(item)
        if profile and (log := item.config.stash[_RUNS].log(profile)):
            report.sections.append((f"output during the run of {profile}", log[-4000:]))
    return report
