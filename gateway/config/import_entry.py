"""One server of a client's file, as an upstream of ours.

Clients agree on `command`, `args`, `env`, `url` and `headers`, and differ in the rest: the known ways to say the same
are taken, what only concerns the client is left out and named.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from gateway.config.command import shown_arguments
from gateway.config.document import Document, KeyPath, dotted
from gateway.config.import_variables import Unfillable, Variables, is_named_secret, variable_name
from gateway.config.problems import Problem
from gateway.config.secret import SHOWN, is_owned_header
from gateway.wire.jsonrpc import Json, JsonObject

_URLS: Final = ("url", "serverUrl", "httpUrl")
_TYPES: Final = ("type", "transport", "transportType")
_HTTP: Final = frozenset({"http", "streamable-http", "streamablehttp", "streamable_http"})
_PROCESS: Final = ("command", "args", "env", "cwd")
_FILTERS: Final = {
    "includeTools": "include",
    "tools": "include",
    "excludeTools": "exclude",
    "disabledTools": "exclude",
}
_KNOWN: Final = frozenset({*_URLS, *_TYPES, *_PROCESS, *_FILTERS, "headers", "disabled", "enabled"})
_QUERY: Final = re.compile(r"(?<=[?&])(?P<name>[^=&#]+)=(?P<value>[^&#]+)")
_ASSIGNMENT: Final = re.compile(r"(?P<name>-*[A-Za-z][\w.-]*)(?P<sign>\s*[=:]\s*)(?P<value>[^\s/].*)", re.DOTALL)
_USER_INFO: Final = re.compile(r"https?://[^/?#]*@", re.IGNORECASE)
_UNFILLABLE: Final = "a placeholder that only its own client can fill in"


class Entry:
    """Reads one entry.

    Args:
        document: the client's file.
        path: where the entry stands in it.
        name: what the upstream is called.
        variables: those of the file that is written.

    Attributes:
        upstream: the upstream, as far as it could be read.
        problems: what keeps it from being one.
        notes: what is different from what the client does, a line each.
        origins: for each path below the upstream, that of the client's key.
    """

    def __init__(self, document: Document, path: KeyPath, name: str, variables: Variables) -> None:
        self.upstream: JsonObject = {}
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.origins: dict[KeyPath, KeyPath] = {}
        self._document = document
        self._path = path
        self._name = name
        self._owner = variable_name(name)
        self._variables = variables
        self._is_sse = False

    def read(self, entry: JsonObject) -> None:
        """Read the entry into the attributes."""
        kind, is_process = self._kind(entry), entry.get("command") is not None
        self._is_sse = kind == "sse"
        urls = [key for key in _URLS if entry.get(key) is not None]
        if is_process:
            self._process(entry)
        elif urls:
            self._http(entry, urls[0])
        else:
            self._problem((), "neither a command nor a url", "write one of them, or remove it")
        for key in urls[not is_process :]:
            remedy = "remove one of them"
            self._problem((key,), f"{'a command' if is_process else urls[0]} stands here too", remedy)
        if is_process and kind in ("http", "sse"):
            self._problem(("command",), f"the type is {kind}, which has no command", "remove the type, or write a url")
        if kind == "stdio" and urls and not is_process:
            self._problem((urls[0],), "the type is stdio, which has no url", "remove the type, or write a command")
        self._filters(entry)
        self._leave_out(entry, is_process=is_process)

    def _kind(self, entry: JsonObject) -> str | None:
        """What the entry says of its transport: stdio, http or sse."""
        for key in _TYPES:
            said = entry.get(key)
            kind = said.lower() if isinstance(said, str) else ""
            if kind in _HTTP:
                return "http"
            if kind in ("stdio", "sse"):
                return kind
            if said is not None and kind not in ("auto", "local", "remote"):
                allowed = "stdio, http, streamable-http, sse"
                problem = self._document.problem((*self._path, key), "no transport of ours", "", allowed, "remove it")
                self.problems.append(problem)
        return None

    # --- the two sorts of servers ---

    def _process(self, entry: JsonObject) -> None:
        command, arguments = entry["command"], entry.get("args") or []
        if isinstance(command, list) and command:
            command, arguments = command[0], [*command[1:], *_as_list(arguments)]
        self._set("command", self._text(("command",), command, "COMMAND"))
        if not isinstance(arguments, list):
            self._problem(("args",), "not a list", 'write ["ARGUMENT", ...]')
        elif arguments:
            self._set("args", list(self._arguments(arguments)))
        self._mapping("env", entry, self._variable)
        if entry.get("cwd") is not None:
            self._set("cwd", self._text(("cwd",), entry["cwd"], "FOLDER"))

    def _http(self, entry: JsonObject, key: str) -> None:
        url = entry[key]
        if isinstance(url, str) and _USER_INFO.match(url):
            self._problem((key,), "holds a user name or password", "write an Authorization header under headers")
        elif isinstance(url, str):
            self._set("url", self._url(key, url), key)
        else:
            self._problem((key,), "not text", 'write "https://docs.example.com/mcp"')
        if self._is_sse:
            self._set("transport", "sse")
        self._mapping("headers", entry, self._header)

    def _arguments(self, arguments: list[Json]) -> Iterator[str]:
        texts = [self._plain(("args", number), argument) for number, argument in enumerate(arguments)]
        for number, (text, shown) in enumerate(zip(texts, shown_arguments(texts), strict=True)):
            path = ("args", number)
            self.origins[path] = path
            assigned = _ASSIGNMENT.fullmatch(text)
            if assigned and is_named_secret(assigned["name"], assigned["value"]):
                before = assigned["name"] + assigned["sign"]
                wanted = f"{self._owner}_{variable_name(assigned['name'])}"
                yield before + self._converted(path, assigned["value"], wanted, is_secret=True)
            elif shown == SHOWN and not assigned:
                wanted = f"{self._owner}_{variable_name(texts[number - 1])}"
                yield self._converted(path, text, wanted, is_secret=True)
            else:
                yield self._converted(path, text, f"{self._owner}_ARGUMENT")

    def _variable(self, name: str, text: str) -> str:
        is_path = name.upper().endswith(("_FILE", "_PATH", "_DIR", "APPLICATION_CREDENTIALS"))
        is_secret = is_named_secret(name, text) and not is_path
        return self._converted(("env", name), text, name, is_secret=is_secret)

    def _header(self, name: str, text: str) -> str | None:
        if is_owned_header(name):
            self._note(("headers", name), "left out: the gateway sets it itself")
            return None
        wanted = "TOKEN" if name.lower() == "authorization" else variable_name(name)
        return self._converted(
            ("headers", name), text, f"{self._owner}_{wanted}", is_secret=is_named_secret(name, text)
        )

    def _url(self, key: str, url: str) -> str:
        """Without what its query names as a secret; what merely looks like one is found in any case."""
        parts, end = [], 0
        for part in _QUERY.finditer(url):
            wanted = f"{self._owner}_{variable_name(part['name'])}"
            is_secret = is_named_secret(part["name"], part["value"])
            before = self._converted((key,), url[end : part.start("value")], f"{self._owner}_TOKEN", to="url")
            parts += [before, self._converted((key,), part["value"], wanted, is_secret=is_secret, to="url")]
            end = part.end()
        return "".join([*parts, self._converted((key,), url[end:], f"{self._owner}_TOKEN", to="url")])

    # --- the rest ---

    def _filters(self, entry: JsonObject) -> None:
        tools: dict[str, list[str]] = {}
        for key, ours in _FILTERS.items():
            names = entry.get(key)
            if isinstance(names, list) and all(isinstance(name, str) for name in names):
                tools.setdefault(ours, []).extend(name for name in names if name)
            elif names is not None:
                self._note((key,), "left out: not a list of tools")
        if any(tools.values()):
            self._set("tools", {kind: names for kind, names in tools.items() if names})

    def _leave_out(self, entry: JsonObject, *, is_process: bool) -> None:
        if entry.get("envFile") is not None:
            self._note(("envFile",), "left out: write the variables of that file under env")
        useless = ("headers",) if is_process else _PROCESS[1:]
        others = [key for key in entry if key not in _KNOWN and key != "envFile"]
        if others := [*others, *(key for key in useless if entry.get(key))]:
            self._note((), f"left out, since only the client has it: {', '.join(map(_printable, others))}")

    def _mapping(self, key: str, entry: JsonObject, convert: Callable[[str, str], str | None]) -> None:
        values = entry.get(key)
        if isinstance(values, Mapping):
            texts = {name: self._plain((key, name), value) for name, value in values.items() if value is not None}
            self.origins.update({(key, name): (key, name) for name in texts})
            converted = ((name, convert(name, text)) for name, text in texts.items())
            if kept := {name: text for name, text in converted if text is not None}:
                self._set(key, kept)
        elif values is not None:
            self._problem((key,), "not an object", 'write {"NAME": "VALUE"}')

    def _plain(self, path: KeyPath, value: Json) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, int | float):
            return json.dumps(value)
        self._problem(path, "not text", "put it in double quotes")
        return ""

    def _text(self, path: KeyPath, value: Json, wanted: str) -> str:
        return self._converted(path, self._plain(path, value), f"{self._owner}_{wanted}")

    def _converted(self, path: KeyPath, text: str, wanted: str, *, is_secret: bool = False, to: str = "") -> str:
        place = self._place((to,) if to else path)
        try:
            return self._variables.convert(text, place, wanted, is_secret=is_secret, owner=self._owner)
        except Unfillable as placeholder:
            problem = self._document.problem((*self._path, *path), _UNFILLABLE, str(placeholder), "", "write the value")
            self.problems.append(problem)
            return ""

    def _place(self, path: KeyPath) -> str:
        return dotted(("upstreams", self._name, *path))

    def _set(self, key: str, value: Json, source: str | None = None) -> None:
        self.upstream[key] = value
        self.origins[(key,)] = (source or key,)

    def _problem(self, path: KeyPath, what: str, remedy: str) -> None:
        self.problems.append(self._document.problem((*self._path, *path), what, remedy=remedy))

    def _note(self, path: KeyPath, what: str) -> None:
        self.notes.append(str(self._document.problem((*self._path, *path), what)))


def _as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else [value]


def _printable(text: str) -> str:
    return text if text.isprintable() else ascii(text)
