"""The client's side of a call, while one leg of it is served: where it is told things, and how the leg ends."""

import asyncio
from typing import TypeAlias

from gateway.core.exchange_events import Complete, Fail, Leg, RequireInput
from gateway.upstream.client_stream import ClientStream

Ending: TypeAlias = RequireInput | Complete | Fail
"""How one leg of a call ends for the client."""


class ClientLeg:
    """The current leg of one call.

    Attributes:
        client: where notifications go; None while nobody is there.
        wants_notifications: whether any would be taken.
    """

    __slots__ = ("_ended", "_ending", "client", "wants_notifications")

    def __init__(self) -> None:
        self.client: ClientStream | None = None
        self.wants_notifications = False
        self._ending: Ending | None = None
        self._ended: asyncio.Future[Ending] | None = None

    def enter(self, leg: Leg, client: ClientStream) -> None:
        """A client has come, for this leg."""
        self.client = client
        self.wants_notifications = leg.progress_token is not None or leg.log_level is not None

    def ended(self) -> asyncio.Future[Ending]:
        """The end of this leg, to be waited for."""
        self._ended = asyncio.get_running_loop().create_future()
        return self._ended

    def end(self, ending: Ending) -> None:
        """The leg has ended."""
        self.client = None
        self._ending = ending
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(ending)

    def fail(self, error: Exception) -> bool:
        """Raise an error where the client waits; False if it waits no more."""
        if self._ended is None or self._ended.done():
            return False
        self._ended.set_exception(error)
        return True

    def take(self) -> Ending | None:
        """How the leg has ended, which is kept no longer: a call is part of a cycle, and a result may be large."""
        ending, self._ending, self._ended = self._ending, None, None
        return ending
