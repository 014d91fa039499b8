"""The prompt and the resources of the demo server, and completion for their arguments."""

from typing import Final

from gateway.demo.notes import INDEX_URI, Notes
from gateway.demo.rpc import RpcError
from gateway.wire import codes
from gateway.wire.jsonrpc import Json, JsonObject

_LANGUAGES: Final = {"english": "Welcome", "french": "Bienvenue", "german": "Willkommen", "spanish": "Bienvenido"}

_README_URI = "demo://readme"
_NOTE_PREFIX = f"{INDEX_URI}/"
_README: Final = "# Demo\n\nA legacy MCP server (2025-11-25) with one tool for each thing that such a server may do.\n"

PROMPTS: Final[list[JsonObject]] = [
    {
        "name": "welcome",
        "description": "Welcomes somebody in a language.",
        "arguments": [
            {"name": "name", "description": "Who is welcome.", "required": True},
            {"name": "language", "description": "One of: " + ", ".join(_LANGUAGES) + ".", "required": False},
        ],
    }
]

_RESOURCES: Final[list[JsonObject]] = [
    {"uri": _README_URI, "name": "readme", "description": "What this server is.", "mimeType": "text/markdown"},
    {"uri": INDEX_URI, "name": "notes", "description": "All notes.", "mimeType": "text/plain"},
]

TEMPLATES: Final[list[JsonObject]] = [
    {
        "uriTemplate": _NOTE_PREFIX + "{id}",
        "name": "note",
        "description": "A note by its number.",
        "mimeType": "text/plain",
    }
]


def get_prompt(params: JsonObject) -> JsonObject:
    """The messages of a prompt.

    Raises:
        RpcError: there is no such prompt, or an argument is missing or unknown.
    """
    if params.get("name") != "welcome":
        raise RpcError(codes.INVALID_PARAMS, f"Unknown prompt: {params.get('name')}")
    arguments = params.get("arguments") or {}
    name = arguments.get("name")
    language = arguments.get("language", "english")
    if not isinstance(name, str):
        raise RpcError(codes.INVALID_PARAMS, "Missing argument: name")
    if language not in _LANGUAGES:
        raise RpcError(codes.INVALID_PARAMS, f"Unknown language: {language}")
    text = f"Say this and nothing else: {_LANGUAGES[language]}, {name}!"
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


def list_resources(notes: Notes) -> JsonObject:
    """Every resource that there is now."""
    return {"resources": [*_RESOURCES, *notes.entries()]}


def read_resource(notes: Notes, params: JsonObject) -> JsonObject:
    """The contents of a resource.

    Raises:
        RpcError: there is no such resource.
    """
    uri = params.get("uri")
    if uri == _README_URI:
        return {"contents": [{"uri": uri, "mimeType": "text/markdown", "text": _README}]}
    text = _text_of(notes, uri)
    if text is not None:
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}
    raise RpcError(codes.RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri})


def _text_of(notes: Notes, uri: Json) -> str | None:
    if uri == INDEX_URI:
        return notes.index()
    if isinstance(uri, str) and uri.startswith(_NOTE_PREFIX):
        return notes.text(uri.removeprefix(_NOTE_PREFIX))
    return None


def complete(notes: Notes, params: JsonObject) -> JsonObject:
    """Completions for the prompt's language and for the number of a note; none for anything else.

    Raises:
        RpcError: the argument is not described as the specification asks.
    """
    argument = params.get("argument")
    if not isinstance(argument, dict) or not isinstance(argument.get("value"), str):
        raise RpcError(codes.INVALID_PARAMS, "argument must have a name and a value")
    known = _values_of(notes, params.get("ref"), argument.get("name"))
    values = [value for value in known if value.startswith(argument["value"])]
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}


def _values_of(notes: Notes, ref: Json, argument: Json) -> list[str]:
    if not isinstance(ref, dict):
        return []
    if ref.get("type") == "ref/prompt" and (ref.get("name"), argument) == ("welcome", "language"):
        return list(_LANGUAGES)
    if ref.get("type") == "ref/resource" and (ref.get("uri"), argument) == (TEMPLATES[0]["uriTemplate"], "id"):
        return notes.numbers
    return []
