"""Reads the streams of one call, one after the other, until there is nothing more to hear."""

from typing import Protocol

from gateway.core.exchange_events import Broke
from gateway.core.incoming import split
from gateway.errors import UpstreamError
from gateway.upstream.call_driver import CallDriver
from gateway.upstream.legacy_session import LegacySession
from gateway.upstream.resumption import Resumption
from gateway.upstream.transport import Answer
from gateway.wire.jsonrpc import Json


class Hear(Protocol):
    """Takes a message that was read."""

    async def __call__(self, message: Json, *, is_repeated: bool) -> None:
        """Args: the message, and whether an earlier stream of the call had it already."""


class Reading:
    """The reading of one call.

    Args:
        session: whose streams these are.
        driver: is told when a stream broke, and knows when to stop.
        resumption: picks up what broke.
        hear: takes each message.
    """

    def __init__(self, session: LegacySession, driver: CallDriver, resumption: Resumption, hear: Hear) -> None:
        self._session = session
        self._driver = driver
        self._resumption = resumption
        self._hear = hear

    async def read(self, stream: Answer) -> None:
        """Read this stream, and what it is resumed by.

        Raises:
            UpstreamError: the server's fault, other than a stream that broke.
        """
        broke = await self._read(stream)
        if not self._driver.is_done:
            await self.go_on(broke)

    async def go_on(self, broke: UpstreamError | None = None) -> None:
        """Read what a stream is resumed by that ended without the response.

        Args:
            broke: how it did, if it did not end in order.
        """
        while (stream := await self._pick_up(broke)) is not None:
            broke = await self._read(stream)
            if self._driver.is_done:
                return

    async def _read(self, stream: Answer) -> UpstreamError | None:
        """Read a stream to the response or to its end; say how it broke, if it did not end in order."""
        self._resumption.follow(stream)
        try:
            async for event in stream.events():
                is_repeated = self._resumption.has_seen(event)
                for message in split(self._session.decode(event.data)):
                    await self._hear(message, is_repeated=is_repeated)
                if self._driver.is_done:
                    return None
        except UpstreamError as error:
            if error.reason != "outcome_unknown":
                raise
            return error
        finally:
            self._resumption.note(stream)
            if self._driver.has_responded:
                stream.finish()
            else:
                stream.close()
        return None

    async def _pick_up(self, broke: UpstreamError | None) -> Answer | None:
        """After a stream ended without the response: wait until it may be picked up, and do so."""
        while True:
            error = broke or self._resumption.unfinished()
            await self._driver.on(Broke(self._resumption.is_possible, error))
            if self._driver.is_done or not self._resumption.is_possible:
                return None
            await self._resumption.wanted.wait()
            stream = await self._resumption.open()
            if stream is not None:
                return stream
