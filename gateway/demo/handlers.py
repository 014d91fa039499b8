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
    "resources": {},
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
    if method == methods.SET_LEVEL:
        return _set_level(call, params)
    answer = _PLAIN.get(method)
    if answer is None:
        raise RpcError(codes.METHOD_NOT_FOUND, f"Method not found: {method}")
    return answer(params)


def _set_level(call: Call, params: JsonObject) -> JsonObject:
    level = params.get("level")
    if not isinstance(level, str) or level not in meta.LOG_RANK:
        raise RpcError(codes.INVALID_PARAMS, f"Unknown log level: {level}")
    call.set_level(level)
    return {}


_PLAIN: Final[dict[str, Callable[[JsonObject], JsonObject]]] = {
    methods.PING: lambda _: {},
    methods.TOOLS_LIST: lambda _: {"tools": tools.list_tools()},
    methods.PROMPTS_LIST: lambda _: {"prompts": library.PROMPTS},
    methods.PROMPTS_GET: library.get_prompt,
    methods.RESOURCES_LIST: lambda _: {"resources": library.RESOURCES},
    methods.RESOURCE_TEMPLATES_LIST: lambda _: {"resourceTemplates": library.TEMPLATES},
    methods.RESOURCES_READ: library.read_resource,
    methods.COMPLETE: library.complete,
}
