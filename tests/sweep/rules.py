"""What docs/translation.md and docs/merging.md make of a server's words: written from them, not from the code."""

import json
import re
from typing import Any

from tests.sweep.direct import Message, Said
from tests.sweep.questions import Question

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
GATEWAY = "era-gateway"
NOT_FOUND, INVALID, INTERNAL = -32601, -32602, -32603
SPECIFICATIONS_OWN = range(-32099, -32019)
CAPABILITIES = ("tools", "prompts", "resources", "completions", "logging", "experimental")
OPTIONAL = ("title", "description", "annotations", "icons", "_meta", "mimeType", "size", "arguments")
IDS = {"tools/list": "name", "prompts/list": "name", "resources/list": "uri", "resources/templates/list": "uriTemplate"}


class UnexpectedError(Exception):
    """A reply of the gateway that no reply may be; the text says why."""


# --- what is expected ---


def expected_entries(said: Said, method: str, upstream: str) -> list[Message]:
    """The entries of a list, under the names that they have at the merged endpoint."""
    entries = said.lists[method] or []
    if said.era == "legacy":
        entries = [mended for entry in entries if (mended := _mended(entry, method)) is not None]
    seen: dict[str, Message] = {}
    for entry in entries:
        seen.setdefault(entry[IDS[method]], entry)
    prefixed = method in ("tools/list", "prompts/list")
    return [{**entry, "name": _merged(upstream, entry["name"])} if prefixed else entry for entry in seen.values()]


def expected_answer(said: Said, question: Question, answer: Message, upstream: str) -> Message:
    """The answer to a question, at the merged endpoint."""
    if "result" in answer:
        return {"result": _result(answer["result"], question)}
    if said.era == "modern":
        return answer
    return {"error": _error(answer["error"], question, upstream)}


def expected_discovery(said: Said) -> Message:
    """What `server/discover` says at the server's own endpoint."""
    if said.era == "modern":
        return _without_hints(said.greeting)
    missing = {"tools": "tools/list", "prompts": "prompts/list", "resources": "resources/list"}
    capabilities = {
        name: _without_what_is_false(value)
        for name, value in said.greeting["capabilities"].items()
        if name in CAPABILITIES and not (name in missing and said.lists[missing[name]] is None)
    }
    found = {
        "supportedVersions": ["2026-07-28"],
        "capabilities": capabilities,
        "_meta": {SERVER_INFO: said.greeting["serverInfo"]},
    }
    instructions = said.greeting.get("instructions")
    return found if instructions is None else {**found, "instructions": instructions}


def _without_what_is_false(capability: Any) -> Any:
    """`listChanged` and `subscribe` are there only where they are so."""
    changes = ("listChanged", "subscribe")
    return {key: value for key, value in capability.items() if key not in changes or value is True}


def _merged(upstream: str, name: str) -> str:
    merged = f"{upstream}__{name}"
    assert len(merged) <= 128, "the sweep has no rule for names that are cut"
    return merged


def _mended(entry: Message, method: str) -> Message | None:
    """Entries of lists."""
    entry = {key: value for key, value in entry.items() if not (key in OPTIONAL and value is None)}
    if method == "tools/list":
        if (entry.pop("execution", None) or {}).get("taskSupport") == "required":
            return None
        schema = entry.get("inputSchema") or {}
        entry["inputSchema"] = schema if schema.get("type") == "object" else {**schema, "type": "object"}
        if entry["inputSchema"].get("properties") == []:
            entry["inputSchema"]["properties"] = {}
        if not isinstance(entry.get("outputSchema", {}), dict):
            del entry["outputSchema"]
    return entry


def _result(result: Message, question: Question) -> Message:
    """Results."""
    result = _without_hints(result)
    about = {key: value for key, value in (result.pop("_meta", None) or {}).items() if key != SERVER_INFO}
    if question.method == "tools/call" and not result.get("content"):
        structured = result.get("structuredContent")
        text = [] if structured is None else [{"type": "text", "text": structured}]
        result["content"] = text
    return {**result, "_meta": about} if about else result


def _error(error: Message, question: Question, upstream: str) -> Message:
    """Errors."""
    code, data = error.get("code"), error.get("data")
    message = error.get("message") or "The server gave no reason"
    target = question.params.get("uri")
    about = {"uri": target} if target else {"name": _merged(upstream, str(question.params["name"]))}
    if code == -32002:
        return _shown(INVALID, message, data, {"uri": target})
    if code == INVALID and target and re.search(r"not found", message, re.IGNORECASE):
        return _shown(INVALID, message, data, about)
    if code == NOT_FOUND:
        return _shown(INVALID, message, data, about)
    if code == 0 or not isinstance(code, int) or isinstance(code, bool):
        is_unknown = question.method != "tools/call" and re.search(r"unknown|not found", message, re.IGNORECASE)
        return _shown(INVALID, message, data, about) if is_unknown else _shown(INTERNAL, message, data, {})
    if isinstance(code, int) and code in SPECIFICATIONS_OWN:
        return _shown(INTERNAL, message, data, {"originalCode": code})
    return _shown(code, message, data, {})


def _shown(code: Any, message: str, data: Any, more: Message) -> Message:
    if more:
        own = data if isinstance(data, dict) else {} if data is None else {"originalData": data}
        data = {**own, **more}
    return {"code": code, "message": message, **({} if data is None else {"data": data})}


# --- what came ---


def without_additions(
    result: Message, *, is_cacheable: bool, server_info: str | None, keeps_info: bool = False
) -> Message:
    """A result of the gateway without what 2026-07-28 adds to it.

    Args:
        result: the result.
        is_cacheable: whether it has to say for how long it is good.
        server_info: the name that it has to bear; None for any.
        keeps_info: whether that is left in it.

    Raises:
        UnexpectedError: what has to be there is not.
    """
    if result.get("resultType") != "complete":
        raise UnexpectedError(f"resultType {result.get('resultType')!r}")
    if is_cacheable and not (
        isinstance(result.get("ttlMs"), int) and result.get("cacheScope") in ("private", "public")
    ):
        raise UnexpectedError("no ttlMs and cacheScope")
    about = dict(result.get("_meta") or {})
    name = (about.get(SERVER_INFO) or {}).get("name")
    if server_info is not None and name != server_info:
        raise UnexpectedError(f"serverInfo of {name!r}")
    if not keeps_info:
        about.pop(SERVER_INFO, None)
    rest = {key: value for key, value in _without_hints(result).items() if key != "_meta"}
    return {**rest, "_meta": about} if about else rest


def _without_hints(result: Message) -> Message:
    return {key: value for key, value in result.items() if key not in ("resultType", "ttlMs", "cacheScope")}


def same_text_block(expected: Message, found: Message) -> Message:
    """Where the gateway has to add the text of structured content, compare the value and not its spelling."""
    for wanted, block in zip(expected.get("content", []), found.get("content", []), strict=False):
        if isinstance(wanted.get("text"), dict | list) and json.loads(block.get("text", "null")) == wanted["text"]:
            wanted["text"] = block["text"]
    return expected
