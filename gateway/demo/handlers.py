"""Which function of the demo server answers which request."""

from collections.abc import Callable
from typing import Final

from gateway.demo import library, tools
from gateway.demo.call import Call
from gateway.demo.rpc import RpcError
from gateway.wire import codes, meta, methods
from gateway.wire.jsonrpc import JsonObject

SERVER_INFO: Final = {"name": "era-gateway-demo", "title": "Demo of a legacy server", "version": "1.0.0"}

CAPABILITIES: Final[JsonObject] = {
    "tools": {},
    "prompts": {},
    "resources": {"subscribe": True, "listChanged": True},
    "completions": {},
    "logging": {},
}

INSTRUCTIONS: Final = "Call greet for a plain answer, and deploy for a tool that asks two questions."


async def handle(call: Call, method: str, params: JsonObject) -> JsonObject:
    """Answer one request of a session.

    Raises:
        RpcError: the method is unknown, or cannot do what the params ask.
    """
    if method == methods.TOOLS_CALL:
        return await tools.call_tool(call, params)
    answer = _PLAIN.get(method)
    if answer is None:
        raise RpcError(codes.METHOD_NOT_FOUND, f"Method not found: {method}")
    return answer(call, params)


def _set_level(call: Call, params: JsonObject) -> JsonObject:
    level = params.get("level")
    if not isinstance(level, str) or level not in meta.LOG_RANK:
        raise RpcError(codes.INVALID_PARAMS, f"Unknown log level: {level}")
    call.set_level(level)
    return {}


def _subscribe(call: Call, params: JsonObject) -> JsonObject:
    call.subscriptions.add(_uri_of(call, params))
    return {}


def _unsubscribe(call: Call, params: JsonObject) -> JsonObject:
    call.subscriptions.discard(_uri_of(call, params))
    return {}


def _uri_of(call: Call, params: JsonObject) -> str:
    """The URI of a resource that there is; thus a session has only so many subscriptions."""
    library.read_resource(call.notes, params)
    uri: str = params["uri"]
    return uri


_PLAIN: Final[dict[str, Callable[[Call, JsonObject], JsonObject]]] = {
    methods.PING: lambda _call, _params: {},
    methods.SET_LEVEL: _set_level,
    methods.TOOLS_LIST: lambda _call, _params: {"tools": tools.list_tools()},
    methods.PROMPTS_LIST: lambda _call, _params: {"prompts": library.PROMPTS},
    methods.PROMPTS_GET: lambda _call, params: library.get_prompt(params),
    methods.RESOURCES_LIST: lambda call, _params: library.list_resources(call.notes),
    methods.RESOURCE_TEMPLATES_LIST: lambda _call, _params: {"resourceTemplates": library.TEMPLATES},
    methods.RESOURCES_READ: lambda call, params: library.read_resource(call.notes, params),
    methods.SUBSCRIBE: _subscribe,
    methods.UNSUBSCRIBE: _unsubscribe,
    methods.COMPLETE: lambda call, params: library.complete(call.notes, params),
}
