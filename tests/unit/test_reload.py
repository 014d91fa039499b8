"""Serving with --reload, as a script of what happens to the process from one poll to the next."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway import reload
from gateway.errors import GatewayError

COMMAND = ["era-gateway", "serve"]


class Process:
    """A process that runs until the script says otherwise, or it is told to stop."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.code: int | None = None
        self.stops_when_told = True

    def poll(self) -> int | None:
        return self.code

    def wait(self, timeout: float | None = None) -> int:
        if self.code is None and timeout == reload._POLL_S:
            self.world.next_step(self)
        if self.code is None:
            self.world.log.append(f"waited {timeout:g} s")
            raise subprocess.TimeoutExpired(COMMAND, timeout or 0)
        return self.code

    def send_signal(self, number: int) -> None:
        assert number == signal.SIGINT
        self.world.log.append("interrupt")
        if self.stops_when_told:
            self.code = 0

    def kill(self) -> None:
        self.world.log.append("kill")
        self.code = -9


class World:
    """The file, the processes, and what happens at each poll."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log: list[str] = []
        self.steps: list[Callable[[Process], None]] = []
        self.faults = False

    def start(self, command: list[str]) -> Process:
        assert command == COMMAND
        self.log.append("start")
        return Process(self)

    def next_step(self, process: Process) -> None:
        self.steps.pop(0)(process)

    def change(self, _process: Process) -> None:
        stamp = self.path.stat().st_mtime_ns + 1
        os.utime(self.path, ns=(stamp, stamp))

    def check(self) -> float:
        if self.faults:
            raise GatewayError("gateway.yaml:1: lag: unknown key")
        return 30.0


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    path = tmp_path / "gateway.yaml"
    path.touch()
    world = World(path)
    monkeypatch.setattr(subprocess, "Popen", world.start)
    monkeypatch.setattr(signal, "signal", lambda number, _handler: world.log.append(signal.Signals(number).name))
    return world


def end(code: int) -> Callable[[Process], None]:
    def step(process: Process) -> None:
        process.code = code

    return step


def polls(world: World) -> list[str]:
    return [entry for entry in world.log if entry != "waited 1 s"]


@pytest.mark.parametrize(("code", "expected"), [(0, 0), (3, 1), (-9, 1)])
def test_process_that_ends_by_itself_ends_the_supervision(world: World, code: int, expected: int) -> None:
    world.steps = [end(code)]
    assert reload.supervise(world.path, COMMAND, world.check) == expected
    assert world.log == ["SIGTERM", "start"]


def test_changed_file_is_served_by_a_new_process(world: World) -> None:
    world.steps = [lambda _: None, world.change, lambda _: None, end(0)]
    assert reload.supervise(world.path, COMMAND, world.check) == 0
    assert polls(world) == ["SIGTERM", "start", "interrupt", "start"]


def test_file_with_problems_keeps_the_old_process(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    def break_file(process: Process) -> None:
        world.faults = True
        world.change(process)

    def mend_file(process: Process) -> None:
        world.faults = False
        world.change(process)

    world.steps = [break_file, lambda _: None, mend_file, end(0)]
    assert reload.supervise(world.path, COMMAND, world.check) == 0
    assert polls(world) == ["SIGTERM", "start", "interrupt", "start"]
    assert capsys.readouterr().err == (
        "gateway.yaml:1: lag: unknown key\nstill serving the configuration from before\n"
    )


def test_file_that_an_editor_is_replacing_is_waited_for(world: World) -> None:
    def replace(_process: Process) -> None:
        world.path.unlink()

    world.steps = [replace, lambda _: None, end(0)]
    assert reload.supervise(world.path, COMMAND, world.check) == 0
    assert polls(world) == ["SIGTERM", "start"]


def test_problems_at_the_start_start_nothing(world: World) -> None:
    world.faults = True
    with pytest.raises(GatewayError, match="unknown key"):
        reload.supervise(world.path, COMMAND, world.check)
    assert world.log == []


def test_process_that_does_not_stop_is_killed_after_its_drain_time(world: World) -> None:
    def hang(process: Process) -> None:
        process.stops_when_told = False
        world.change(process)

    world.steps = [hang, end(0)]
    assert reload.supervise(world.path, COMMAND, world.check) == 0
    assert polls(world) == ["SIGTERM", "start", "interrupt", "waited 35 s", "kill", "start"]


@pytest.mark.parametrize("leave", [KeyboardInterrupt, SystemExit])
def test_process_is_stopped_when_the_supervisor_leaves(world: World, leave: type[BaseException]) -> None:
    def interrupt(_process: Process) -> None:
        raise leave

    world.steps = [interrupt]
    with pytest.raises(leave):
        reload.supervise(world.path, COMMAND, world.check)
    assert world.log == ["SIGTERM", "start", "interrupt"]


def test_sigterm_leaves_with_success() -> None:
    with pytest.raises(SystemExit) as stop:
        reload._leave(signal.SIGTERM, None)
    assert stop.value.code == 0
