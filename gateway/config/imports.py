"""A client's own list of servers (`mcp.json`, `claude_desktop_config.json`) as a configuration of ours.

What is written has been checked against the model, and holds no secret: those that the client's file writes out become
references to environment variables.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from gateway.config import explain, references
from gateway.config.document import Document, KeyPath, read_text
from gateway.config.import_entry import Entry
from gateway.config.import_variables import Variable, Variables, names_referred_to
from gateway.config.jsonc import parse_jsonc
from gateway.config.names import LONGEST_UPSTREAM, RESERVED, is_upstream_name
from gateway.config.problems import ConfigError, Problem
from gateway.wire.jsonrpc import Json, JsonObject

_PLACES: Final[tuple[KeyPath, ...]] = (
    ("mcpServers",),
    ("servers",),
    ("mcp", "servers"),
    ("mcp", "mcpServers"),
)
"""Where clients keep their servers: in a file of their own, or in their settings."""

_UNNAMED: Final = "server"


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a client's file.

    Args:
        text: the configuration, in YAML.
        variables: what has to be set where the gateway runs.
        notes: what is different from what the client does, a line each.
    """

    text: str
    variables: tuple[Variable, ...]
    notes: tuple[str, ...]


def import_file(path: Path) -> Imported:
    """Read a client's file.

    Raises:
        ConfigError: every problem, each with its line.
    """
    return import_text(str(path), read_text(path, "give the path of a client's mcp.json"))


def import_text(file: str, text: str) -> Imported:
    """Read what a client's file holds; like `import_file`."""
    document, problems = parse_jsonc(file, text)
    variables = Variables(_inputs(document.tree), names_referred_to(text))
    servers, misplaced = _servers(document)
    enabled = {path: entry for path, entry in servers.items() if _is_enabled(entry)}
    notes = [str(document.problem(path, "left out: disabled")) for path in servers if path not in enabled]
    names = upstream_names([str(path[-1]) for path in enabled])
    entries: dict[str, Entry] = {}
    problems += misplaced
    for (path, value), name in zip(enabled.items(), names, strict=True):
        if name != path[-1]:
            notes.append(str(document.problem(path, f"called {name} here")))
        entries[name] = entry = Entry(document, path, name, variables)
        entry.read(value)
        problems += entry.problems
        notes += entry.notes
    if not entries and not problems:
        problems.append(Problem(file, 1, "no server that is not disabled", remedy="enable one"))
    upstreams = {name: entry.upstream for name, entry in entries.items()}
    problems += _refused(document, dict(zip(names, enabled, strict=True)), entries)
    if problems:
        raise ConfigError(tuple(sorted(problems, key=lambda problem: problem.line or 0)))
    needed = variables.needed()
    return Imported(_written(Path(file).name, upstreams, needed), needed, tuple(notes))


def _inputs(tree: JsonObject) -> Mapping[str, str]:
    """What a file says of each `${input:ID}` that its client asks for."""
    inputs = tree.get("inputs")
    found = [each for each in inputs if isinstance(each, dict)] if isinstance(inputs, list) else []
    return {str(each.get("id")): str(each.get("description") or "") for each in found}


def _servers(document: Document) -> tuple[dict[KeyPath, JsonObject], list[Problem]]:
    """The entries of servers by their paths; those that are none are problems."""
    found: dict[KeyPath, JsonObject] = {}
    problems: list[Problem] = []
    places = [(place, value) for place in _PLACES if (value := _at(document.tree, place)) is not None]
    for place, servers in places:
        if not isinstance(servers, dict):
            problems.append(document.problem(place, "not an object", remedy='write {"NAME": {...}}'))
            continue
        for name, entry in servers.items():
            if isinstance(entry, dict):
                found[*place, name] = entry
            else:
                remedy = 'write {"command": ...} or {"url": ...}'
                problems.append(document.problem((*place, name), "not an object", remedy=remedy))
    if not found and not problems:
        remedy = 'write them as {"mcpServers": {"docs": {"url": "https://docs.example.com/mcp"}}}'
        problems.append(Problem(document.file, 1, "no servers", allowed="mcpServers, servers", remedy=remedy))
    return found, problems


def _at(tree: Json, place: KeyPath) -> Json:
    for key in place:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _is_enabled(entry: JsonObject) -> bool:
    return entry.get("disabled") is not True and entry.get("enabled") is not False


# --- names ---


def upstream_names(names: Iterable[str]) -> list[str]:
    """Names of upstreams for those of a client, in their order.

    One that can be kept is kept, whoever else would have got it; two that become the same get numbers.
    """
    wanted = list(names)
    taken = {name for name in wanted if is_upstream_name(name)}
    found: list[str] = []
    for name in wanted:
        if name in taken and name not in found:
            found.append(name)
        else:
            found.append(_free_name(_normalized(name), taken))
            taken.add(found[-1])
    return found


def _normalized(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    short = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:LONGEST_UPSTREAM].strip("-") or _UNNAMED
    return f"{short}-{_UNNAMED}" if short in RESERVED else short


def _free_name(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name[: LONGEST_UPSTREAM - len(f'-{number}')].rstrip('-')}-{number}"
    return free


# --- what is written ---


def _refused(source: Document, paths: Mapping[str, KeyPath], entries: Mapping[str, Entry]) -> list[Problem]:
    """What the model has against entries that could be read, in the words and lines of the client's file."""
    lines: dict[KeyPath, int] = {}
    names: dict[KeyPath, str] = {}
    readable = {name: entry for name, entry in entries.items() if not entry.problems}
    for name, entry in readable.items():
        origins = {(): (), **entry.origins}
        for ours, theirs in origins.items():
            path = (*paths[name], *theirs)
            lines["upstreams", name, *ours] = source.line(path) or 1
            names["upstreams", name, *ours] = source.label(path)
    if not readable:
        return []
    upstreams = {name: entry.upstream for name, entry in readable.items()}
    document = Document(source.file, {"upstreams": upstreams}, lines, names)
    # References cannot be told here: nothing is said of the values that hold one.
    tree, _missing, unknown = references.resolve(document, {})
    return explain.check(document, tree, unknown)[1]


def _written(file: str, upstreams: JsonObject, variables: Iterable[Variable]) -> str:
    about = [f"# Made of {_on_one_line(file)} by era-gateway import; docs/configuration.md explains every key."]
    sets = [f"#   {variable.name}: {_on_one_line(described(variable))}" for variable in variables]
    if sets:
        about += ["# Set these variables where the gateway runs:", *sets]
    # PyYAML leaves some letters unescaped that it then reads as the end of a line.
    is_plain = json.dumps(upstreams, ensure_ascii=False).isprintable()
    body = yaml.safe_dump({"upstreams": upstreams}, sort_keys=False, allow_unicode=is_plain, width=1000)
    return "\n".join(["\n".join(about), body])


def described(variable: Variable) -> str:
    """Where a variable is needed, and what it is, on one line."""
    meaning = f" ({variable.meaning})" if variable.meaning else ""
    return _on_one_line(", ".join(variable.places) + meaning)


def _on_one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
