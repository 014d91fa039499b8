"""One run of the official runner per server, shared by all tests; logs in the reports of failed tests."""

from collections.abc import Iterator

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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Adds to the report of a failed test what the processes behind it printed."""
    report = yield
    if report.failed:
        for process in processes.LIVE:
            report.sections.append((f"output of {process.name}", process.log()))
        profile = getattr(item, "callspec", None) and item.callspec.params.get("profile")
        if profile and (log := item.config.stash[_RUNS].log(profile)):
            report.sections.append((f"output during the run of {profile}", log[-4000:]))
    return report
