"""The same questions to the gateway: a client of 2026-07-28 at the endpoint of all servers together."""

import itertools
import json
from typing import Any, Self

import httpx

from gateway.wire.sse import SseParser
from tests.sweep.direct import META, MODERN, WAIT_S, Message
from tests.sweep.questions import LISTS, Question
from tests.sweep.rules import GATEWAY, UnexpectedError, without_additions

_TARGETS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_STATUSES = {200, 400, 404, 502, 503, 504}


class Through:
    """A client of the gateway.

    Args:
        url: the endpoint of all servers together.

    Attributes:
        lists: the entries of each merged list, all pages.
        pages: how many replies these came in.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._http = httpx.Client(timeout=3 * WAIT_S, trust_env=False)
        self._ids = itertools.count(1)
        self.lists: dict[str, list[Message]] = {}
        self.pages = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()

    def discovery(self, name: str) -> Message:
        """What one server says of itself at its own endpoint. Raises UnexpectedError."""
        reply = self._ask("server/discover", {}, f"{self._url}/{name}")
        return without_additions(_result(reply), is_cacheable=True, server_info=None, keeps_info=True)

    def read_lists(self) -> None:
        """Read every page of every merged list. Raises UnexpectedError."""
        for method, member in LISTS.items():
            self.lists[method] = entries = []
            params: Message = {}
            while True:
                result = _result(self._ask(method, params))
                if missing := (result.get("_meta") or {}).get("era-gateway/unavailable"):
                    raise UnexpectedError(f"{method} without {', '.join(missing)}")
                without_additions(result, is_cacheable=True, server_info=GATEWAY)
                entries += result[member]
                self.pages += 1
                if result.get("nextCursor") is None:
                    break
                params = {"cursor": result["nextCursor"]}

    def answer(self, question: Question, name: str) -> Message:
        """The answer to a question to a server, by the names of the merged endpoint. Raises UnexpectedError.

        A URI that no server lists may be anybody's there, so it is read at the server's own endpoint.
        """
        params = dict(question.params)
        if "name" in params:
            params["name"] = f"{name}__{params['name']}"
        is_read = question.method == "resources/read"
        is_nobodys = is_read and params["uri"] not in [entry["uri"] for entry in self.lists["resources/list"]]
        reply = self._ask(question.method, params, f"{self._url}/{name}" if is_nobodys else None)
        if "error" in reply:
            return reply
        server_info = None if is_nobodys else GATEWAY
        return {"result": without_additions(reply["result"], is_cacheable=is_read, server_info=server_info)}

    def _ask(self, method: str, params: Message, url: str | None = None) -> Message:
        request_id = next(self._ids)
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN,
            "Mcp-Method": method,
        }
        if method in _TARGETS:
            headers["Mcp-Name"] = params[_TARGETS[method]]
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {**params, "_meta": META}}
        reply = self._http.post(url or self._url, json=body, headers=headers)
        message = _message(reply)
        if reply.status_code not in _STATUSES or message.get("id") != request_id:
            raise UnexpectedError(f"HTTP {reply.status_code}: {reply.text[:200]}")
        return {key: value for key, value in message.items() if key in ("result", "error")}


def _message(reply: httpx.Response) -> dict[str, Any]:
    if not reply.headers.get("content-type", "").startswith("text/event-stream"):
        found: dict[str, Any] = reply.json()
        return found
    parser = SseParser(2**26)
    messages = [json.loads(event.data) for event in parser.feed(reply.content) if event.data]
    return next(message for message in messages if "method" not in message)


def _result(reply: Message) -> Message:
    if "result" not in reply:
        raise UnexpectedError(f"error {json.dumps(reply['error'], ensure_ascii=False)[:200]}")
    result: Message = reply["result"]
    return result
