"""Runs the official conformance runner and reads what it found."""

import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.processes import (
    NODE_MODULES,
    NotReadyError,
    Process,
    gateway,
    legacy_python,
    legacy_typescript,
    modern_python,
    need,
    node,
)

REVISION = "2026-07-28"
RUNNER = NODE_MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
_TIMEOUT_S = 240.0
_RESULTS = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d{2}-\d{2}T")
_BAD = ("FAILURE", "WARNING", "SKIPPED")

Checks = Mapping[str, list[dict[str, Any]]]
"""The checks of a run, by scenario."""

PROFILES: Mapping[str, Callable[[], AbstractContextManager[Process]]] = {
    "legacy-python": legacy_python,
    "legacy-python-resumable-uncorrelated": lambda: legacy_python("--event-store", "--uncorrelated"),
    "legacy-python-2025-06-18": lambda: legacy_python("--version", "2025-06-18"),
    "legacy-python-2025-03-26": lambda: legacy_python("--version", "2025-03-26"),
    "legacy-typescript": legacy_typescript,
    "legacy-typescript-uncorrelated": lambda: legacy_typescript("--uncorrelated"),
    "legacy-typescript-resumable-2025-06-18": lambda: legacy_typescript("--event-store", "--version", "2025-06-18"),
    "modern-python": modern_python,
}
"""The servers that are put behind the gateway, by the name under which tests report them."""


def run(url: str) -> Checks:
    """Runs every server scenario that the revision requires, and the unscored ones, against a URL.

    Raises:
        FileNotFoundError: The environments are missing.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [node(), str(need(RUNNER)), "server", "--url", url, "--requirements", REVISION]
        # What the runner did not get to in time has no checks, and so does not pass.
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                [*command, "--output-dir", folder],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        return _collect(Path(folder))


def _collect(folder: Path) -> Checks:
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*/checks.json")):
        if matched := _RESULTS.match(path.parent.name):
            found[matched["scenario"]] = json.loads(path.read_text())
    return found


@dataclass(slots=True)
class _Run:
    checks: Checks = field(default_factory=dict)
    log: str = ""
    failure: Exception | None = None


@dataclass(slots=True)
class Runs:
    """One run per profile, made when it is first asked for."""

    _done: dict[str, _Run] = field(default_factory=dict)

    def checks(self, profile: str, scenario: str) -> list[dict[str, Any]]:
        """What the runner found in one scenario, through the gateway in front of one server.

        Raises:
            FileNotFoundError: The environments are missing.
            NotReadyError: The server or the gateway did not start.
        """
        if profile not in self._done:
            self._done[profile] = _run_behind_gateway(profile)
        done = self._done[profile]
        if done.failure:
            raise done.failure.with_traceback(None)
        return done.checks.get(scenario, [])

    def log(self, profile: str) -> str:
        """What the gateway and the server printed during the run of a profile."""
        return self._done[profile].log if profile in self._done else ""


def _run_behind_gateway(profile: str) -> _Run:
    try:
        with PROFILES[profile]() as server, gateway({"fixture": {"url": server.url}}) as front:
            checks = run(front.url)
            return _Run(checks, f"{server.log()}\n--- the gateway\n{front.log()}")
    except (FileNotFoundError, NotReadyError) as failure:
        return _Run(failure=failure)


def assert_passed(checks: list[dict[str, Any]]) -> None:
    """Asserts that a scenario passed whole: something succeeded, and nothing failed, warned or was skipped."""
    assert checks, "the runner did not get to this scenario"
    bad = [check for check in checks if check["status"] in _BAD]
    assert not bad, "\n".join(_told(check) for check in bad)
    assert any(check["status"] == "SUCCESS" for check in checks), checks


def _told(check: Mapping[str, Any]) -> str:
    details = json.dumps(check.get("details", {}))[:1500]
    return f"{check['status']} {check['id']}: {check.get('errorMessage')}\n    {details}"
