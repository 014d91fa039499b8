"""What a pipe is: one conversation with a server, whole messages in both directions, and nothing that sorts them.

A process that reads lines is one, the two HTTP endpoints of 2024-11-05 are another. `piped` makes a transport of it.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeAlias

from gateway.upstream.transport import Answer


class Hearer(Protocol):
    """Takes what a server says on a pipe."""

    def hear(self, data: bytes) -> bool:
        """Take a message; False if it is none, so that the pipe may log what it is."""

    def hear_overlong(self, edges: bytes) -> None:
        """A message was over the limit and could not be kept; these are its first and last bytes."""

    def end(self, how: str = ..., reason: str = ...) -> None:
        """The server will say nothing more.

        Args:
            how: what it did, to follow its name in a sentence.
            reason: what becomes of requests that it has not answered, as a key of `errors.UPSTREAM_STATUS`.
        """


class Pipe(Protocol):
    """An open pipe."""

    async def send(self, message: bytes, headers: Mapping[str, str]) -> Answer | None:
        """Send a message.

        Args:
            message: JSON on one line.
            headers: credentials, for a pipe that can carry them.

        Returns:
            None when it is on its way; else how the server refused it, so that it was not executed.

        Raises:
            UpstreamError: it could not be sent, or nobody knows whether it was.
        """

    async def close(self) -> None:
        """End the conversation; returns when nothing of it is left, within a bound. May be called twice."""


class Refused(Exception):  # noqa: N818 -- what the server did; an answer like any other
    """The server would not open a pipe.

    Args:
        answer: what it said instead.
    """

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"HTTP {answer.status}")
        self.answer = answer


Opener: TypeAlias = Callable[[Hearer, Mapping[str, str]], Awaitable[Pipe]]
"""Opens a pipe for a hearer, with the credentials in these headers; raises `Refused` or UpstreamError."""
