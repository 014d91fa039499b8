"""A gateway for one upstream, configured by environment variables alone.

Kubernetes sets ERA_GATEWAY_PORT=tcp://... and its like in every pod beside a service called era-gateway; such values
are not ours.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from gateway.config.document import Document
from gateway.config.load import settle
from gateway.config.model import Settings
from gateway.config.problems import ConfigError, Problem
from gateway.wire import jsonrpc
from gateway.wire.jsonrpc import JsonObject

UPSTREAM: Final = "default"
"""What the one upstream is called."""

_FILE: Final = "environment"
_PREFIX: Final = "ERA_GATEWAY_"
_HEADER_FORMS: Final = "a JSON object of texts, or one Name: value per line"
_URL: Final = f"{_PREFIX}UPSTREAM_URL"
_HEADERS: Final = f"{_PREFIX}UPSTREAM_HEADERS"
VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    _URL: ("upstreams", UPSTREAM, "url"),
    _HEADERS: ("upstreams", UPSTREAM, "headers"),
    f"{_PREFIX}UPSTREAM_ERA": ("upstreams", UPSTREAM, "era"),
    f"{_PREFIX}HOST": ("server", "host"),
    f"{_PREFIX}PORT": ("server", "port"),
    f"{_PREFIX}ALLOWED_ORIGINS": ("server", "allowed_origins"),
    f"{_PREFIX}ALLOWED_HOSTS": ("server", "allowed_hosts"),
    f"{_PREFIX}KEYS": ("state", "keys"),
    f"{_PREFIX}STORE": ("state", "store"),
    f"{_PREFIX}NAMESPACE": ("state", "namespace"),
    f"{_PREFIX}LOG_LEVEL": ("log", "level"),
}
"""Each variable, and the key that it sets."""


def from_environment(environ: Mapping[str, str]) -> Settings:
    """Read the configuration of a gateway without a file. An empty variable counts as not set.

    Raises:
        ConfigError: every problem, each with the name of its variable.
    """
    given = {name: value for name, value in environ.items() if name.startswith(_PREFIX) and _is_ours(value)}
    problems = [problem for name in given if (problem := _misspelt(name))]
    if _URL not in given:
        remedy = f"set {_URL}=https://docs.example.com/mcp, or give a file with -c"
        raise ConfigError((*problems, Problem(_FILE, None, f"{_URL}: not set", remedy=remedy)))
    tree: JsonObject = {"upstreams": {UPSTREAM: {}}, "server": {}, "state": {}, "log": {}}
    for name, (*sections, key) in VARIABLES.items():
        if name in given:
            _at(tree, sections)[key] = given[name]
    if _HEADERS in given:
        try:
            tree["upstreams"][UPSTREAM]["headers"] = _parse_headers(given[_HEADERS])
        except ValueError as error:
            problems.append(Problem(_FILE, None, f"{_HEADERS}: {error}", allowed=_HEADER_FORMS))
            del tree["upstreams"][UPSTREAM]["headers"]
    return settle(Document(_FILE, tree, names={path: name for name, path in VARIABLES.items()}), None, problems)


def _is_ours(value: str) -> bool:
    return bool(value.strip()) and not value.startswith(("tcp://", "udp://"))


def _misspelt(name: str) -> Problem | None:
    """A variable that is none of ours but nearly is one. Others may be anybody's, and are left alone."""
    ours = [known.removeprefix(_PREFIX) for known in VARIABLES]
    if name in VARIABLES or not (close := get_close_matches(name.removeprefix(_PREFIX), ours, n=1, cutoff=0.8)):
        return None
    return Problem(_FILE, None, f"{name}: unknown variable", remedy=f"did you mean {_PREFIX}{close[0]}?")


def _at(tree: JsonObject, sections: Sequence[str]) -> JsonObject:
    for section in sections:
        tree = tree[section]
    return tree


def _parse_headers(text: str) -> JsonObject:
    """Read headers from a JSON object, or from `Name: value` lines.

    Raises:
        ValueError: naming the fault, never a value.
    """
    if text.lstrip().startswith("{"):
        try:
            headers: JsonObject = jsonrpc.decode_strict(text.encode())
        except ValueError:
            raise ValueError("not a JSON object") from None
        return headers
    headers = {}
    for number, line in enumerate(text.strip().splitlines(), 1):
        name, colon, value = line.partition(":")
        if not colon:
            raise ValueError(f"line {number} has no colon")
        if name.strip() in headers:
            raise ValueError(f"{name.strip()} is written twice")
        headers[name.strip()] = value
    return headers
