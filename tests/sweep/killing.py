"""What remains of servers that are killed, and of all of them when the gateway has ended."""

import contextlib

import psutil

from tests.support.processes import Process
from tests.sweep.rules import UnexpectedError
from tests.sweep.through import Through

_SUPERVISOR = "supervisor.py"
WAIT_S = 15.0


def started_by(gateway: Process) -> list[psutil.Process]:
    """Every process below the gateway, supervisors included."""
    return psutil.Process(gateway.popen.pid).children(recursive=True)


def kill_all(gateway: Process, client: Through) -> list[str]:
    """Kill every server at once; the lists have to be the same as before. Returns what is wrong.

    A request that reaches a server as it dies fails, and says so; the one after that has another server.
    """
    before = dict(client.lists)
    servers = [process for process in started_by(gateway) if not _is_supervisor(process)]
    for process in servers:
        process.kill()
    psutil.wait_procs(servers, WAIT_S)
    try:
        with contextlib.suppress(UnexpectedError):
            client.read_lists()
        client.read_lists()
    except UnexpectedError as error:
        return [f"after all servers were killed: {error}"]
    different = [method for method in before if _names(before, method) != _names(client.lists, method)]
    return [f"after all servers were killed, {method} is another" for method in different]


def left_of(processes: list[psutil.Process]) -> list[str]:
    """Which processes have outlived the gateway, a line each."""
    _gone, left = psutil.wait_procs(processes, WAIT_S)
    return [f"left behind: {process}" for process in left if process.status() != psutil.STATUS_ZOMBIE]


def _is_supervisor(process: psutil.Process) -> bool:
    try:
        return any(part.endswith(_SUPERVISOR) for part in process.cmdline())
    except psutil.NoSuchProcess:
        return True


def _names(lists: dict[str, list[dict[str, str]]], method: str) -> list[str]:
    return [entry.get("uri") or entry.get("uriTemplate") or entry["name"] for entry in lists[method]]
