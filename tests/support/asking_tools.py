"""Questions and answers that the tests of rounds have in common, and the tools that ask them."""

import asyncio

from gateway.wire.jsonrpc import JsonObject
from tests.support.asking_server import AskingServer, Call

ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"

FORM: JsonObject = {
    "message": "Who are you?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 2}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name"],
    },
}
PAGE: JsonObject = {"mode": "url", "message": "Sign in", "url": "https://pay.test/x?y=1", "elicitationId": "el-9"}
PROMPT: JsonObject = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 9}

SAID: JsonObject = {"role": "assistant", "content": {"type": "text", "text": "Hello"}, "model": "m"}
FOLDERS: JsonObject = {"roots": [{"uri": "file:///srv", "name": "srv"}]}
DECLINED: JsonObject = {"action": "decline"}
CANCELLED: JsonObject = {"action": "cancel"}


def filled(name: str) -> JsonObject:
    """The answer to `FORM`."""
    return {"action": "accept", "content": {"name": name}}


async def book(call: Call) -> str:
    """Asks once; says what it was answered."""
    return _name(await call.ask(ELICIT, FORM))


async def in_turn(call: Call) -> str:
    """Asks `count` times, one after the other."""
    return ",".join([_name(await call.ask(ELICIT, FORM)) for _ in range(call.arguments["count"])])


async def at_once(call: Call) -> str:
    """Asks `count` times at once."""
    questions = [call.put(ELICIT, FORM) for _ in range(call.arguments["count"])]
    return ",".join(map(_name, await asyncio.gather(*map(call.answer_to, questions))))


async def mixed(call: Call) -> str:
    """Asks the user, the model and for the roots, at once."""
    asked = [call.put(ELICIT, FORM), call.put(SAMPLE, PROMPT), call.put(ROOTS)]
    form, said, folders = [await call.answer_to(question) for question in asked]
    return f"{_name(form)} {said['content']['text']} {folders['roots'][0]['uri']}"


async def plain(_call: Call) -> str:
    """Asks nothing."""
    return "plain"


def offer_tools(server: AskingServer) -> AskingServer:
    """Let a server offer all of these."""
    for tool in (book, in_turn, at_once, mixed, plain):
        server.tool(tool)
    return server


def _name(answer: JsonObject) -> str:
    return str(answer["content"]["name"]) if answer["action"] == "accept" else str(answer["action"])
