"""Keeps watch over one stdio server, from a process of its own: when the gateway goes, whatever way, the server goes.

Run by path, with nothing but the standard library: `python -I -S supervisor.py UPSTREAM FD`. FD is a socket to the
gateway. One line of JSON comes in: the command, its environment and folder. Lines go out: `pid N` or `failed WHY`, and
`exit CODE` (below zero: the signal) the moment the server ends. The server has the supervisor's own stdin, stdout and
stderr; nothing of what it says passes through here.

The gateway's end of the socket closes when it wants the server to end, and when it is killed. The server, its process
group, and on Linux every descendant wherever it went, then get SIGTERM, and after a grace SIGKILL. They do as well
when the server ended by itself and left something behind. Were this process killed, Linux kills the server with it.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any, Final, NoReturn

IS_LINUX: Final = sys.platform.startswith("linux")
KILL_S: Final = 1.0
"""How long processes may take to disappear after SIGKILL."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_POLL_S = 0.01
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""A service manager that stops everything at once must not stop this first: it ends when the server has."""


def main() -> None:
    """Start the server, wait until it or the gateway ends, and leave nothing behind."""
    control = int(sys.argv[2])
    os.set_inheritable(control, False)
    order = _read_order(control)
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    wake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda _signal, _frame: None)
    signal.set_wakeup_fd(woken)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)

    server, fault = _start(order)
    _let_go_of_stdio()
    if fault:
        _tell(control, f"failed {fault}")
        return
    _tell(control, f"pid {server}")
    code = _watch(server, control, wake)
    if code is not None:
        _tell(control, f"exit {code}")
    _end_all(server, order["grace_s"])


def _read_order(control: int) -> dict[str, Any]:
    text = b""
    while not text.endswith(b"\n"):
        chunk = os.read(control, 65_536)
        if not chunk:
            sys.exit(1)
        text += chunk
    order: dict[str, Any] = json.loads(text)
    return order


def _tell(control: int, line: str) -> None:
    with contextlib.suppress(OSError):  # the gateway may be gone
        os.write(control, line.encode() + b"\n")


def _prctl(option: int, value: int) -> None:
    if IS_LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


# --- the server ---


def _start(order: dict[str, Any]) -> tuple[int, str]:
    """Start the server; returns its process id, and why it could not be run, if so."""
    supervisor = os.getpid()
    told, tell = os.pipe()  # closes by itself when the program runs, and before that carries the fault
    server = os.fork()
    if server == 0:
        os.close(told)
        _become_server(order, supervisor, tell)
    os.close(tell)
    with os.fdopen(told, "rb") as faults:
        fault = faults.read().decode("utf-8", "replace")
    if fault:
        os.waitpid(server, 0)
    return server, fault


def _become_server(order: dict[str, Any], supervisor: int, tell: int) -> NoReturn:
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            os._exit(1)
        for number in (*_IGNORED, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)  # what is ignored would stay so in the new program
        if order["cwd"] is not None:
            os.chdir(order["cwd"])
        os.execve(order["program"], [order["program"], *order["arguments"]], order["environment"])  # noqa: S606 -- no shell, on purpose
    except OSError as error:
        os.write(tell, (error.strerror or "unknown fault").encode())
    finally:
        os._exit(127)


def _let_go_of_stdio() -> None:
    """A copy of the server's streams would keep them open when it has closed them."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)


def _watch(server: int, control: int, wake: int) -> int | None:
    """Wait until the server has ended, and return its code; or until the gateway wants it to: None."""
    poll = select.poll()
    poll.register(control, select.POLLIN | select.POLLHUP)
    poll.register(wake, select.POLLIN)
    while True:
        for number, _event in poll.poll():
            if number == control:
                return None
            os.read(wake, 512)
        for pid, status in _reap():
            if pid == server:
                return os.waitstatus_to_exitcode(status)


def _reap() -> Iterator[tuple[int, int]]:
    """Take note of every child that has ended; those of a server that ended before them are children here."""
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            yield found


# --- the end ---


def _end_all(server: int, grace_s: float) -> None:
    for number, patience_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, KILL_S)):
        deadline_s = time.monotonic() + patience_s
        _signal_all(server, number)
        while _is_anything_left(server):
            if time.monotonic() > deadline_s:
                break
            time.sleep(_POLL_S)
            if number == signal.SIGKILL:
                _signal_all(server, number)
        else:
            return


def _is_anything_left(server: int) -> bool:
    """Whether anything runs that the server started.

    On Linux the kernel tells: what loses its parent is a child of this process in the same moment, so whoever has no
    children has no descendants. A look at /proc can miss one whose parent ends meanwhile.
    """
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        if IS_LINUX:
            return False
    if IS_LINUX:
        return True
    with contextlib.suppress(OSError):
        os.killpg(server, 0)
        return True
    return False


def _signal_all(server: int, number: int) -> None:
    if not IS_LINUX:
        with contextlib.suppress(OSError):
            os.killpg(server, number)
    for group in _groups():
        with contextlib.suppress(OSError):
            os.killpg(group, number)


def _groups() -> set[int]:
    """The process groups of the server and all that it started, directly or not. Linux only.

    A group gets a signal as a whole: a process that has a child and ends, again and again, does not get away. All are
    below the session that the server was started in, so none of them is anybody else's.
    """
    if not IS_LINUX:
        return set()
    children: dict[int, list[tuple[int, int]]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 -- a Path for every process would take many times as long
        if name.isdigit():
            parent, group = _parent_and_group(name)
            children.setdefault(parent, []).append((int(name), group))
    found, new = set(), children.get(os.getpid(), [])
    while new:
        found |= {group for _pid, group in new}
        new = [child for pid, _group in new for child in children.get(pid, [])]
    return found - {os.getpgrp()}


def _parent_and_group(pid: str) -> tuple[int, int]:
    """Of a zombie, too: its group may have others."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 -- see above
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0, 0
    return int(fields[1]), int(fields[2])


if __name__ == "__main__":
    main()
