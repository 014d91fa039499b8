"""The tools of the demo server: one for each thing that a legacy server may do in mid-call."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from gateway.demo.call import Call
from gateway.demo.rpc import RpcError
from gateway.wire import codes, methods
from gateway.wire.jsonrpc import Json, JsonObject

_MAX_COUNT = 100
_STEP_S = 0.2
_REGIONS = ("north", "south")


def list_tools() -> list[JsonObject]:
    """Every tool, as `tools/list` describes it."""
    return [tool for tool, _ in _TOOLS.values()]


async def call_tool(call: Call, params: JsonObject) -> JsonObject:
    """Run a tool.

    Raises:
        RpcError: there is no such tool, or a client that was asked answered with an error.
    """
    name = params.get("name")
    if not isinstance(name, str) or name not in _TOOLS:
        raise RpcError(codes.INVALID_PARAMS, f"Unknown tool: {name}")
    arguments = params.get("arguments", {})
    if not isinstance(arguments, dict):
        raise RpcError(codes.INVALID_PARAMS, "arguments must be an object")
    _, run = _TOOLS[name]
    try:
        return await run(call, arguments)
    except ToolError as error:
        return {"content": [_text(str(error))], "isError": True}


class ToolError(Exception):
    """A failure that the model should read: it becomes a result with `isError`."""


async def _greet(_: Call, arguments: JsonObject) -> JsonObject:
    return _said(f"Hello, {_string(arguments, 'name')}!")


async def _ask_name(call: Call, _: JsonObject) -> JsonObject:
    content = await _elicit(call, "What is your name?", "UserName", {"name": {"type": "string", "minLength": 1}})
    return _said(f"Nice to meet you, {content['name']}." if content else "You would rather not say.")


async def _count(call: Call, arguments: JsonObject) -> JsonObject:
    to = arguments.get("to", 5)
    if type(to) is not int or not 1 <= to <= _MAX_COUNT:
        raise ToolError(f"to must be an integer from 1 to {_MAX_COUNT}")
    call.log("info", f"counting to {to}")
    for number in range(1, to + 1):
        await asyncio.sleep(_STEP_S)
        call.report(number, to, f"{number} of {to}")
        call.log("debug", f"counted {number}")
    return _said(f"Counted to {to}.")


async def _deploy(call: Call, arguments: JsonObject) -> JsonObject:
    service = _string(arguments, "service")
    agreed = await _elicit(call, f"Deploy {service}?", "Confirmation", {"confirm": {"type": "boolean"}})
    if agreed is None or not agreed["confirm"]:
        return _deployed(f"{service} was not deployed.", {"deployed": False})
    chosen = await _elicit(call, "Where?", "Region", {"region": {"type": "string", "enum": list(_REGIONS)}})
    if chosen is None:
        return _deployed(f"{service} was not deployed.", {"deployed": False})
    region = chosen["region"]
    return _deployed(f"{service} runs in {region}.", {"deployed": True, "region": region})


async def _summarize(call: Call, arguments: JsonObject) -> JsonObject:
    text = _string(arguments, "text")
    _need(call, "sampling")
    prompt = {"role": "user", "content": _text(f"Summarize in one sentence:\n\n{text}")}
    answer = await call.ask(methods.SAMPLE, {"messages": [prompt], "maxTokens": 200})
    blocks = answer.get("content")
    blocks = blocks if isinstance(blocks, list) else [blocks]
    texts = [block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)]
    if not texts:
        raise ToolError("the model answered without a text")
    return _said("\n".join(texts))


async def _list_workspace(call: Call, _: JsonObject) -> JsonObject:
    _need(call, "roots")
    answer = await call.ask(methods.LIST_ROOTS, {})
    roots = [root for root in answer.get("roots", []) if isinstance(root, dict)]
    lines = [f"{root.get('name', 'unnamed')}: {root.get('uri')}" for root in roots]
    return _said("\n".join(lines) if lines else "The workspace is empty.")


async def _add_note(call: Call, arguments: JsonObject) -> JsonObject:
    try:
        number = call.notes.add(_string(arguments, "text"))
    except ValueError as error:
        raise ToolError(str(error)) from None
    return _said(f"Note {number} is written.")


async def _elicit(call: Call, message: str, title: str, properties: JsonObject) -> JsonObject | None:
    """Ask the user to fill in a form whose fields are all required; None if the user declines or cancels."""
    _need(call, "elicitation")
    schema = {"type": "object", "title": title, "properties": properties, "required": list(properties)}
    answer = await call.ask(methods.ELICIT, {"mode": "form", "message": message, "requestedSchema": schema})
    if answer.get("action") != "accept":
        return None
    content = answer.get("content")
    if not isinstance(content, dict):
        raise ToolError("the form came back empty")
    for field, rule in properties.items():
        if not _fits(content.get(field), rule):
            raise ToolError(f"the form's field {field} is missing or of the wrong kind")
    return content


def _fits(value: Json, rule: JsonObject) -> bool:
    """Whether a form's value keeps the few rules that this server's forms make."""
    if rule["type"] == "boolean":
        return isinstance(value, bool)
    return isinstance(value, str) and bool(value) and value in rule.get("enum", [value])


def _need(call: Call, capability: str) -> None:
    if not call.is_able(capability):
        raise ToolError(f"this tool needs a client with the {capability} capability")


def _string(arguments: JsonObject, name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value:
        raise ToolError(f"{name} must be a non-empty string")
    return value


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _said(text: str) -> JsonObject:
    return {"content": [_text(text)]}


def _deployed(text: str, structured: JsonObject) -> JsonObject:
    return {"content": [_text(text)], "structuredContent": structured}


def _tool(name: str, description: str, properties: JsonObject, required: tuple[str, ...] = ()) -> JsonObject:
    schema: JsonObject = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return {"name": name, "description": description, "inputSchema": schema}


_TEXT_FIELD: Final = {"type": "string", "minLength": 1}
_Run = Callable[[Call, JsonObject], Awaitable[JsonObject]]

_TOOLS: Final[dict[str, tuple[JsonObject, _Run]]] = {
    "greet": (_tool("greet", "Says hello.", {"name": _TEXT_FIELD}, ("name",)), _greet),
    "ask_name": (_tool("ask_name", "Asks the user for a name: one question.", {}), _ask_name),
    "count": (
        _tool(
            "count",
            "Counts, and reports progress and log messages on the way.",
            {"to": {"type": "integer", "minimum": 1, "maximum": _MAX_COUNT, "default": 5}},
        ),
        _count,
    ),
    "deploy": (
        {
            **_tool("deploy", "Asks whether, then asks where: two rounds.", {"service": _TEXT_FIELD}, ("service",)),
            "outputSchema": {
                "type": "object",
                "properties": {
                    "deployed": {"type": "boolean"},
                    "region": {"type": "string", "enum": list(_REGIONS)},
                },
                "required": ["deployed"],
            },
        },
        _deploy,
    ),
    "summarize": (
        _tool("summarize", "Lets the client's model summarize a text.", {"text": _TEXT_FIELD}, ("text",)),
        _summarize,
    ),
    "add_note": (
        _tool("add_note", "Adds a note: the list of resources changes.", {"text": _TEXT_FIELD}, ("text",)),
        _add_note,
    ),
    "list_workspace": (_tool("list_workspace", "Lists the folders that the user opened.", {}), _list_workspace),
}
