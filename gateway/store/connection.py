"""The connection to the shared store: bounded in time, counted, and quick to say that the store is down.

Rule: a command is sent once. Whether it was executed when its answer is lost, the caller must be able to bear.
While the store is known to be down, commands fail at once. Only a `probe`, which writes, finds out when it is back: a
store that may be read and not written is down. A wait that breaks says nothing of the store: who waits does so again.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import structlog
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)

from gateway.store.down import StoreDown
from gateway.store.urls import to_redis_url

log = structlog.get_logger()

Argument: TypeAlias = str | bytes | int

_NOT_ALLOWED: Final = "NOPERM"
_DOWN: Final = frozenset(
    {"LOADING", "MASTERDOWN", "READONLY", "OOM", "NOAUTH", "WRONGPASS", "CLUSTERDOWN", "MISCONF", "NOREPLICAS", "BUSY"}
    | {"MOVED", "ASK", "TRYAGAIN", _NOT_ALLOWED}
)
_WORDS: Final[dict[type[BaseException], str]] = {
    AskError: "ASK",
    ClusterDownError: "CLUSTERDOWN",
    MasterDownError: "MASTERDOWN",
    MovedError: "MOVED",
    NoPermissionError: _NOT_ALLOWED,
    OutOfMemoryError: "OOM",
    ReadOnlyError: "READONLY",
    TryAgainError: "TRYAGAIN",
}
"""Errors that the package tells apart lack the word by which it does."""

_CLOSE_S: Final = 2.0
_CONNECT_S: Final = 1.0
_COMMAND_S: Final = 2.0
_MAX_CONNECTIONS: Final = 64


@dataclass(slots=True)
class Traffic:
    """What the store was asked: commands sent, those that failed, and bytes of their arguments."""

    commands: int = 0
    failures: int = 0
    bytes_sent: int = 0


class SharedStore:
    """One Redis or Valkey server, or cluster endpoint, as a place for small sealed things.

    Args:
        url: `redis://`, `rediss://`, `valkey://` or `valkeys://`, with user, password, database and TLS options as the
            `redis` package reads them.
        namespace: begins every key.

    Attributes:
        is_up: whether the store serves; commands fail at once while it is False.
        traffic: counts.
    """

    def __init__(self, url: str, namespace: str) -> None:
        self.is_up = True
        self.traffic = Traffic()
        self._namespace = namespace
        self._url = to_redis_url(url)
        self._client = self._connect(_COMMAND_S, _MAX_CONNECTIONS)
        self._waiting: Redis | None = None
        self._not_allowed: set[str] = set()
        self._on_change: list[Callable[[bool], None]] = []

    def key(self, *parts: str) -> str:
        """The name of something within the namespace."""
        return ":".join((self._namespace, *parts))

    def on_change(self, told: Callable[[bool], None]) -> None:
        """Have somebody told when the store goes down or comes back."""
        self._on_change.append(told)

    async def execute(self, *command: Argument) -> Any:
        """Send a command.

        Raises:
            StoreDown: no answer, or none in time; the command may have been executed all the same.
        """
        if not self.is_up:
            raise StoreDown
        try:
            return await self._send(self._client, command)
        except _Failed as failed:
            if failed.word == _NOT_ALLOWED:
                self._complain(str(command[0]))
            else:
                self._note(is_up=False, failed=failed)
            raise StoreDown from failed

    async def probe(self, *command: Argument) -> Any:
        """Send a command that writes, although the store may be down. Raises like `execute`."""
        try:
            answer = await self._send(self._client, command)
        except _Failed as failed:
            self._note(is_up=False, failed=failed)
            raise StoreDown from failed
        self._note(is_up=True)
        return answer

    async def wait(self, block_s: float, *command: Argument) -> Any:
        """Send a command that blocks at the store, on a connection of its own. Raises like `execute`."""
        if self._waiting is None:
            self._waiting = self._connect(block_s + _COMMAND_S, 1)
        try:
            return await self._send(self._waiting, command)
        except _Failed as failed:
            if failed.word == _NOT_ALLOWED:
                self._complain(str(command[0]))
            raise StoreDown from failed

    async def close(self) -> None:
        """Close every connection; one that cannot be closed in time is left."""
        with suppress(TimeoutError, RedisError, OSError):
            async with asyncio.timeout(_CLOSE_S):
                for client in (self._client, self._waiting):
                    if client is not None:
                        await client.aclose()

    def _connect(self, timeout_s: float, connections: int) -> Redis:
        pool = BlockingConnectionPool.from_url(
            self._url,
            max_connections=connections,
            timeout=_COMMAND_S,
            socket_connect_timeout=_CONNECT_S,
            socket_timeout=timeout_s,
            retry=Retry(NoBackoff(), 0),  # its default would send commands again that have been executed
            health_check_interval=0,
            protocol=2,
        )
        return Redis.from_pool(pool)

    async def _send(self, client: Redis, command: tuple[Argument, ...]) -> Any:
        self.traffic.commands += 1
        self.traffic.bytes_sent += sum(len(part) if isinstance(part, str | bytes) else 8 for part in command)
        before = _cancellations()
        try:
            answer = await client.execute_command(*command)  # type: ignore[no-untyped-call]
        except (RedisError, OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            _check_cancelled(before)
            word = _word(error)
            if isinstance(error, ResponseError) and word not in _DOWN:
                raise
            self.traffic.failures += 1
            raise _Failed(word) from error
        _check_cancelled(before)
        return answer

    def _note(self, *, is_up: bool, failed: "_Failed | None" = None) -> None:
        if is_up is self.is_up:
            return
        self.is_up = is_up
        if failed is None:
            log.info("store back")
        else:
            log.warning("store down", error=type(failed.__cause__).__name__, said=failed.word)
        for told in self._on_change:
            told(is_up)

    def _complain(self, command: str) -> None:
        """The store serves, but its user lacks a right: said once for each command."""
        if command not in self._not_allowed:
            self._not_allowed.add(command)
            log.error("store refuses a command", command=command, said=_NOT_ALLOWED, remedy="allow it to the user")


class _Failed(Exception):  # noqa: N818 -- what befell a command, within this file
    """A command got no answer, or one that says that the store does not serve.

    Args:
        word: the word by which it says so.
    """

    def __init__(self, word: str | None) -> None:
        super().__init__(word)
        self.word = word


def _cancellations() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def _check_cancelled(before: int) -> None:
    """The client loses a cancellation that meets it while it connects. One from before is not: somebody cleans up."""
    if _cancellations() > before:
        raise asyncio.CancelledError


def _word(error: BaseException) -> str | None:
    """The word by which the store says what is wrong; the rest may hold anything."""
    if type(error) in _WORDS:
        return _WORDS[type(error)]
    return str(error).partition(" ")[0] if isinstance(error, ResponseError) else None
