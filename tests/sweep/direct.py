"""A server's own words: a client on its stdin and stdout, in the language that it speaks.

As the specification has it: `server/discover` first; where it is refused, `initialize` on the same process; where it is
not survived or not answered, on another one.
"""

import itertools
import json
import os
import queue
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.sweep.catalog import Server
from tests.sweep.questions import LISTS, Question, questions

WAIT_S = 60.0
QUIET_S = 15.0
"""Longer than the gateway waits: what a server is must not depend on how busy the machine is."""
LEGACY = "2025-11-25"
MODERN = "2026-07-28"
CLIENT = {"name": "sweep", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
INHERITED = ("HOME", "LANG", "PATH", "TMPDIR", "USER")

Message = dict[str, Any]


class NoAnswerError(Exception):
    """The server has ended, or says nothing."""


@dataclass
class Said:
    """What a server says.

    Attributes:
        era: modern or legacy.
        version: the revision.
        greeting: the result of `server/discover` or `initialize`.
        lists: the entries of each list, all pages; None where the server has no such method.
        answers: what it answers to each question: its `result` or its `error`.
        pages: how many pages its lists have.
    """

    era: str = ""
    version: str = ""
    greeting: Message = field(default_factory=dict)
    lists: dict[str, list[Message] | None] = field(default_factory=dict)
    answers: list[tuple[Question, Message]] = field(default_factory=list)
    pages: int = 0


class _Client:
    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._ids = itertools.count(1)
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self.is_modern = False
        threading.Thread(target=self._read, daemon=True).start()

    def ask(self, method: str, params: Message, wait_s: float = WAIT_S) -> Message:
        """Make a request; whatever comes before its answer is passed over."""
        request_id = next(self._ids)
        about = {"_meta": META} if self.is_modern else {}
        self.say({"id": request_id, "method": method, "params": {**params, **about}})
        while True:
            message = self._message(wait_s)
            if message.get("id") == request_id and "method" not in message:
                return {key: value for key, value in message.items() if key in ("result", "error")}

    def say(self, message: Message) -> None:
        """Write a message."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise NoAnswerError("ended") from None

    def _message(self, wait_s: float) -> Message:
        try:
            line = self._lines.get(timeout=wait_s)
        except queue.Empty:
            raise NoAnswerError("says nothing") from None
        if line is None:
            raise NoAnswerError("ended")
        try:
            message = json.loads(line)
        except ValueError:
            return {}
        return message if isinstance(message, dict) else {}

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(None)


@contextmanager
def _started(server: Server) -> Iterator[_Client]:
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
    with subprocess.Popen(
        server.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=server.folder,
        env={**environment, **server.env},
    ) as process:
        try:
            yield _Client(process)
        finally:
            process.kill()


def said_by(server: Server) -> Said:
    """Start a server and ask it everything. Raises NoAnswerError."""
    with _started(server) as client:
        try:
            client.is_modern = True
            found = client.ask("server/discover", {}, QUIET_S)
            if "result" in found:
                return _heard(client, server, Said("modern", MODERN, found["result"]))
            client.is_modern = False
            return _initialized(client, server)
        except NoAnswerError:
            pass
    server.prepare()
    with _started(server) as client:
        return _initialized(client, server)


def _initialized(client: _Client, server: Server) -> Said:
    params = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}
    result = client.ask("initialize", params)["result"]
    client.say({"method": "notifications/initialized"})
    return _heard(client, server, Said("legacy", result["protocolVersion"], result))


def _heard(client: _Client, server: Server, said: Said) -> Said:
    for method, member in LISTS.items():
        said.lists[method] = _entries(client, said, method, member)
    said.answers = [(question, client.ask(question.method, question.params)) for question in questions(server)]
    return said


def _entries(client: _Client, said: Said, method: str, member: str) -> list[Message] | None:
    entries: list[Message] = []
    params: Message = {}
    while True:
        answer = client.ask(method, params)
        if "result" not in answer:
            return None
        said.pages += 1
        entries += answer["result"][member]
        if answer["result"].get("nextCursor") is None:
            return entries
        params = {"cursor": answer["result"]["nextCursor"]}
