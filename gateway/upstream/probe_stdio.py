"""`era-gateway probe -- COMMAND`: starts a server, asks what it speaks, and ends it.

It goes the way of the gateway itself: `server/discover` first, then `initialize`, on another process where the question
cost the first one.
"""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Final

from gateway.core import era
from gateway.core import session as facts
from gateway.core.era import Modern
from gateway.errors import UpstreamError
from gateway.upstream.era import CLIENT_INFO, read_answer
from gateway.upstream.piped import QUIET_S, PipeTransport
from gateway.upstream.probe_report import Description, ProbeFailed, of_legacy, of_modern
from gateway.upstream.stdio import Command, StdioPipes
from gateway.upstream.transport import SESSION_ID
from gateway.wire import methods
from gateway.wire.jsonrpc import JsonObject, decode, encode, notification, request

_INITIALIZE_ID: Final = "era-initialize"
_TIMEOUT_S: Final = 60.0
_MAX_BYTES: Final = 4 * 2**20
_SILENT: Final = 504


async def describe_command(command: Command) -> Description:
    """Start a server and ask it; all that was started is ended again.

    Raises:
        ProbeFailed: it cannot be started, ends, or is no MCP server; with the last lines that it wrote.
    """
    pipes = StdioPipes(Path(command.program).name, command, max_message_bytes=_MAX_BYTES)
    transport = PipeTransport(Path(command.program).name, pipes, max_message_bytes=_MAX_BYTES, quiet_s=QUIET_S)
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            return await _Asking(transport).describe()
    except TimeoutError:
        raise _failed(f"No answer within {_TIMEOUT_S:g} s", pipes) from None
    except UpstreamError as error:
        raise _failed(error.message, pipes) from error
    finally:
        await transport.close()


class _Asking:
    def __init__(self, transport: PipeTransport) -> None:
        self._transport = transport
        self._notes: list[str] = []

    async def describe(self) -> Description:
        found = await self._by_discover()
        if found is None:
            found = await self._by_initialize()
        return replace(found, notes=(*self._notes, *found.notes))

    async def _by_discover(self) -> Description | None:
        """The modern way; None if it leads nowhere."""
        headers, message = era.probe_request(CLIENT_INFO)
        try:
            answer = await self._transport.post(encode(message), headers)
        except UpstreamError as error:
            if error.reason != "outcome_unknown":
                raise
            self._notes.append("does not survive server/discover")
            return None
        if answer.status == _SILENT:
            self._notes.append("leaves server/discover unanswered")
            return None
        verdict = era.verdict(None, {}, await read_answer(answer))
        return of_modern(verdict.discover_result, "stdio") if isinstance(verdict, Modern) else None

    async def _by_initialize(self) -> Description:
        message = request(_INITIALIZE_ID, methods.INITIALIZE, facts.initialize_params({}, CLIENT_INFO))
        answer = await self._transport.post(encode(message), {})
        said: JsonObject = decode(await read_answer(answer) or b"{}")
        if "result" not in said:
            return await self._by_late_answer(said.get("error"))
        session = {SESSION_ID: answer.headers[SESSION_ID]}
        await self._transport.post(encode(notification(methods.INITIALIZED)), session)
        return of_legacy(said["result"], "stdio", has_sessions=True)

    async def _by_late_answer(self, error: object) -> Description:
        """A modern server that was still starting when it was asked refuses `initialize`, and can be asked again."""
        self._notes = []
        found = await self._by_discover()
        if found is not None:
            return found
        refusal = f"{error.get('message')} (code {error.get('code')})" if isinstance(error, dict) else "no result"
        raise ProbeFailed(f"The server refuses initialize: {refusal}")


def _failed(what: str, pipes: StdioPipes) -> ProbeFailed:
    lines = "".join(f"\n  {line}" for line in pipes.log.last)
    return ProbeFailed(f"{what}{'; it wrote:' if lines else ''}{lines}")
