"""The servers of `servers.yaml`, how each is started, and the folder that it works in."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.processes import ENVS, node

HERE = Path(__file__).parent
SWEEP = ENVS / "sweep"
FILES = {"hello.txt": b"Hello,\nw\xc3\xb6rld\n", "data.csv": b"a,b\n1,2\n", "pixel.png": b"\x89PNG\r\n\x1a\n\0\0"}
GIT = {
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
}


@dataclass(frozen=True)
class Server:
    """A published server; see `servers.yaml`.

    Attributes:
        name: what it is called as an upstream.
        entry: what the file says of it.
        folder: where it works.
    """

    name: str
    entry: Mapping[str, Any]
    folder: Path

    @property
    def is_native(self) -> bool:
        """Whether it only runs on Linux on x86-64."""
        return bool(self.entry.get("native"))

    @property
    def command(self) -> list[str]:
        """The program and its arguments."""
        arguments = [self._filled(argument) for argument in self.entry.get("args", [])]
        if "python" in self.entry:
            return [str(SWEEP / self.entry["python"] / "bin" / self.entry["program"]), *arguments]
        program = str(SWEEP / "node" / "node_modules" / self.entry["node"])
        return [program, *arguments] if self.is_native else [node(), program, *arguments]

    @property
    def env(self) -> dict[str, str]:
        """The variables that it has beside the usual ones."""
        return {name: self._filled(value) for name, value in self.entry.get("env", {}).items()}

    @property
    def upstream(self) -> dict[str, Any]:
        """The entry of the gateway's configuration."""
        program, *arguments = self.command
        return {"command": program, "args": arguments, "env": self.env, "cwd": str(self.folder)}

    def asked(self, key: str) -> list[Any]:
        """What is asked of it: calls, prompts or reads."""
        return [self._filled(each) for each in self.entry.get(key, [])]

    def prepare(self) -> None:
        """Make its folder as it is at the start, whatever became of it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name, content in FILES.items():
            (self.folder / name).write_bytes(content)
        if self.entry.get("git"):
            identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
            for command in (("init", "-q", "-b", "main"), ("add", "."), (*identity, "commit", "-q", "-m", "Begin")):
                subprocess.run(["git", *command], cwd=self.folder, env={**os.environ, **GIT}, check=True)

    def _filled(self, value: Any) -> Any:
        if isinstance(value, str):
            return value.replace("{folder}", str(self.folder))
        if isinstance(value, list):
            return [self._filled(each) for each in value]
        if isinstance(value, dict):
            return {key: self._filled(each) for key, each in value.items()}
        return value


def servers(names: Iterable[str], folder: Path) -> list[Server]:
    """The servers of these names, or all of them; without those that cannot run on this machine.

    Raises:
        SystemExit: there is none of that name.
    """
    entries = yaml.safe_load((HERE / "servers.yaml").read_text(encoding="utf-8"))
    if unknown := set(names) - set(entries):
        raise SystemExit(f"sweep: no such server: {', '.join(sorted(unknown))}; there are {', '.join(entries)}")
    found = [Server(name, entry, folder / name) for name, entry in entries.items() if name in (set(names) or entries)]
    is_linux = sys.platform == "linux" and os.uname().machine == "x86_64"
    return [server for server in found if is_linux or not server.is_native]
