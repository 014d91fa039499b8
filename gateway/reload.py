"""`serve --reload`: the gateway in a process of its own, replaced when its configuration file changes."""

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NoReturn

from gateway.errors import GatewayError

_POLL_S: Final = 1.0
_KILL_AFTER_S: Final = 5.0
"""How much longer than its drain time a process may take to stop."""


def supervise(path: Path, command: Sequence[str], check: Callable[[], float]) -> int:
    """Run a command, and start it anew whenever a file has changed and has no problems.

    Args:
        path: the configuration file.
        command: what serves it, until SIGTERM.
        check: returns how many seconds a process that serves the file may take to drain.

    Returns:
        1 if the command ended by itself with a failure, else 0.

    Raises:
        GatewayError: by `check`, at the start; later on its problems are printed and the old process stays.
        SystemExit: 0 on SIGTERM, once the command has ended.
    """
    drain_s, stamp = check(), _stamp(path)
    signal.signal(signal.SIGTERM, _leave)
    process = _start(command)
    try:
        while (code := _wait(process)) is None:
            changed, stamp = stamp, _stamp(path) or stamp
            if changed == stamp:
                continue
            try:
                next_drain_s = check()
            except GatewayError as error:
                print(f"{error}\nstill serving the configuration from before", file=sys.stderr)
                continue
            _stop(process, drain_s)
            drain_s, process = next_drain_s, _start(command)
    finally:
        _stop(process, drain_s)
    return 1 if code else 0


def _leave(_signal: int, _frame: object) -> NoReturn:
    raise SystemExit(0)


def _stamp(path: Path) -> int | None:
    """When a file was changed; None for the moment in which an editor replaces it."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _start(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command)  # noqa: S603 -- this program itself, with the arguments that it was given


def _wait(process: "subprocess.Popen[bytes]") -> int | None:
    """The exit code, once the process has ended; None if it still runs a moment later."""
    try:
        return process.wait(_POLL_S)
    except subprocess.TimeoutExpired:
        return None


def _stop(process: "subprocess.Popen[bytes]", drain_s: float) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)  # SIGTERM would wait for users who have been asked something
    try:
        process.wait(drain_s + _KILL_AFTER_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
