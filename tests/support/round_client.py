"""A modern client that does what a test says: no loop of its own, no memory of rounds."""

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import aiohttp

from gateway.wire.jsonrpc import JsonObject, decode
from gateway.wire.sse import SseParser
from tests.support.messages import PREFIX, good_request

EVERYTHING: JsonObject = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
WAIT_S = 30.0
_TARGETS = {"prompts/get": "name", "resources/read": "uri", "tools/call": "name"}


@dataclass
class Reply:
    """What one request came to."""

    status: int
    headers: Mapping[str, str]
    message: JsonObject = field(default_factory=dict)
    notifications: list[JsonObject] = field(default_factory=list)

    @property
    def result(self) -> JsonObject:
        """The result; fails with what came instead."""
        assert "result" in self.message, (self.status, self.message)
        result: JsonObject = self.message["result"]
        return result

    @property
    def error(self) -> JsonObject:
        """The error; fails with what came instead."""
        assert "error" in self.message, (self.status, self.message)
        error: JsonObject = self.message["error"]
        return error

    @property
    def asks(self) -> bool:
        """Whether this is a round."""
        return "result" in self.message and self.result["resultType"] == "input_required"

    @property
    def questions(self) -> JsonObject:
        """The questions of a round, by name."""
        assert self.asks, self.message
        questions: JsonObject = self.result["inputRequests"]
        return questions

    @property
    def state(self) -> str:
        """The `requestState` of a round."""
        assert self.asks, self.message
        state: str = self.result["requestState"]
        return state

    @property
    def text(self) -> str:
        """The first text of a complete tool result."""
        assert self.result.get("resultType") == "complete", self.message
        text: str = self.result["content"][0]["text"]
        return text


class RoundClient:
    """Makes requests of 2026-07-28.

    Args:
        url: the endpoint.
        capabilities: declared with every request that does not say otherwise.
        key: an API key, if the gateway wants one.
        wait_s: the bound of every wait.
    """

    def __init__(
        self, url: str, *, capabilities: JsonObject = EVERYTHING, key: str | None = None, wait_s: float = WAIT_S
    ) -> None:
        self._wait_s = wait_s
        self.url = url
        self.capabilities = capabilities
        self.key = key
        self._ids = itertools.count(1)
        self._http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.close()

    async def call(self, target: str, arguments: JsonObject | None = None, **more: Any) -> Reply:
        """Call a tool; `more` as in `request`."""
        return await self.request("tools/call", target, {"arguments": arguments or {}}, **more)

    async def request(
        self,
        method: str,
        target: str | None = None,
        params: JsonObject | None = None,
        *,
        answers: JsonObject | None = None,
        state: str | None = None,
        capabilities: JsonObject | None = None,
        meta: JsonObject | None = None,
        key: str | None = None,
        url: str | None = None,
    ) -> Reply:
        """Make one request and read its reply to the end.

        Args:
            method: the JSON-RPC method.
            target: the name or URI that it is about.
            params: other parameters.
            answers: `inputResponses`.
            state: `requestState`.
            capabilities: for this request alone.
            meta: more keys of `_meta`.
            key: the API key of this request.
            url: another endpoint.
        """
        full = dict(params or {})
        if target is not None:
            full[_TARGETS[method]] = target
        if answers is not None:
            full["inputResponses"] = answers
        if state is not None:
            full["requestState"] = state
        declared = self.capabilities if capabilities is None else capabilities
        raw, body = good_request(
            method, full, request_id=next(self._ids), capabilities=declared, meta=meta, headers=self._authorize(key)
        )
        headers = [(name.decode(), value.decode("latin-1")) for name, value in raw]
        posting = self._http.post(url or self.url, data=body, headers=headers)
        async with asyncio.timeout(self._wait_s), posting as response:
            return _read(response.status, response.headers, response.content_type, await response.read())

    def _authorize(self, key: str | None) -> dict[str, str]:
        used = key or self.key
        return {} if used is None else {"Authorization": f"Bearer {used}"}


def notified(progress: str | int | None = None, logs: str | None = None) -> JsonObject:
    """The keys of `_meta` that ask for progress and logs."""
    meta: JsonObject = {}
    if progress is not None:
        meta["progressToken"] = progress
    if logs is not None:
        meta[f"{PREFIX}logLevel"] = logs
    return meta


def _read(status: int, headers: Mapping[str, str], content_type: str, body: bytes) -> Reply:
    reply = Reply(status, dict(headers))
    if content_type == "application/json":
        reply.message = decode(body)
        return reply
    parser = SseParser(1 << 24)
    for event in [*parser.feed(body), *parser.close()]:
        message = decode(event.data)
        if "method" in message:
            assert not reply.message, "a notification after the response"
            reply.notifications.append(message)
        else:
            assert not reply.message, "two responses"
            reply.message = message
    return reply
