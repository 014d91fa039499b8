"""`era-gateway probe -c FILE`: asks every server of a configuration what it offers, as a client of the gateway would.

Like `serve` it goes through the gateway itself, filters and new names included, but listens on no port.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.app import Gateway
from gateway.config.model import Settings
from gateway.core.cursors import Place
from gateway.core.inbound_request import InboundRequest
from gateway.core.merging import Page, join_pages
from gateway.core.names import Names
from gateway.core.principal import Caller, Principal
from gateway.errors import GatewayError, ProtocolError
from gateway.upstream.contexts import Upstream
from gateway.upstream.probe_report import printable, server_name
from gateway.wire import codes, meta, methods
from gateway.wire.jsonrpc import JsonObject
from gateway.wire.versions import MODERN

_OPERATOR = Caller(Principal("operator", "operator"))
_MOST_PAGES = 1000
_KINDS = {
    methods.TOOLS_LIST: "tools",
    methods.PROMPTS_LIST: "prompts",
    methods.RESOURCES_LIST: "resources",
    methods.RESOURCE_TEMPLATES_LIST: "templates",
}


@dataclass(slots=True)
class Inspected:
    """What one server offers.

    Attributes:
        name: the upstream's configured name.
        era: its era, as far as it is known.
        server: who it says it is.
        lists: the entries of each list, by method.
        fault: why it could not be asked; empty if it could.
    """

    name: str
    era: str = "unknown"
    server: str = ""
    lists: dict[str, list[JsonObject]] = field(default_factory=dict)
    fault: str = ""

    def __str__(self) -> str:
        if self.fault:
            return self.fault
        counts = [_count(len(self.lists[method]), kind) for method, kind in _KINDS.items() if self.lists.get(method)]
        return f"{self.era}, {self.server or 'no name'}: {', '.join(counts) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class Inspection:
    """What all of them offer, and what clashes where they are merged."""

    servers: Sequence[Inspected]
    clashes: Sequence[str]

    @property
    def is_whole(self) -> bool:
        """Whether every server could be asked."""
        return not any(server.fault for server in self.servers)

    def __str__(self) -> str:
        width = max(len(server.name) for server in self.servers) + 2
        lines = [f"{server.name:{width}}{printable(str(server))}" for server in self.servers]
        return "\n".join([*lines, *(f"{'clash':{width}}{printable(clash)}" for clash in self.clashes)])


def _count(number: int, kind: str) -> str:
    return f"{number} {kind if number > 1 else kind.removesuffix('s')}"


class _Nobody:
    async def notify(self, notification: JsonObject) -> None:
        """Nobody wants to hear of anything."""


async def inspect(settings: Settings) -> Inspection:
    """Ask every server; what is started for it is ended again."""
    gateway = Gateway(settings)
    try:
        asked = (_inspected(front, gateway) for front in gateway.fronts.values())
        servers = await asyncio.gather(*asked)
    finally:
        gateway.end_streams()
        await gateway.close()
    return Inspection(servers, list(_clashes(settings, servers)) if settings.is_merged else [])


async def _inspected(front: Upstream, gateway: Gateway) -> Inspected:
    found = Inspected(front.name)
    try:
        about = await _ask(front, methods.DISCOVER)
        info = (about.get("_meta") or {}).get(meta.SERVER_INFO)
        found.server = server_name(info if isinstance(info, dict) else {})
        for method in _KINDS:
            found.lists[method] = await _entries(front, method)
    except GatewayError as error:
        found.fault = str(error)
    found.era = gateway.upstreams[front.name].era or "unknown"
    return found


async def _entries(front: Upstream, method: str) -> list[JsonObject]:
    """The entries of all pages; none if the server has no such list."""
    entries: list[JsonObject] = []
    params: JsonObject = {}
    for _ in range(_MOST_PAGES):
        page = await _ask(front, method, params)
        entries += page.get(methods.LIST_KEYS[method]) or []
        if page.get("nextCursor") is None:
            break
        params = {"cursor": page["nextCursor"]}
    return entries


async def _ask(front: Upstream, method: str, params: Mapping[str, object] | None = None) -> JsonObject:
    """A result; `{}` where the server has no such method. Raises GatewayError."""
    about = {meta.PROTOCOL_VERSION: MODERN, meta.CLIENT_CAPABILITIES: {}}
    request = InboundRequest(1, method, {**(params or {}), "_meta": about}, about, {})
    try:
        outcome = await front.serve(request, _OPERATOR, _Nobody())
    except ProtocolError as refusal:
        if refusal.code != codes.METHOD_NOT_FOUND:
            raise
        return {}
    error = outcome.body.get("error")
    if error is not None and error.get("code") != codes.METHOD_NOT_FOUND:
        raise GatewayError(f"{method}: {error.get('message')} (code {error.get('code')})")
    result: JsonObject = outcome.body.get("result") or {}
    return result


def _clashes(settings: Settings, servers: Sequence[Inspected]) -> list[str]:
    """What only the first of two servers can be used for, a line each."""
    names = Names(list(settings.upstreams), is_prefixed=settings.prefix != "never")
    found = []
    for method, kind in _KINDS.items():
        key = methods.LIST_KEYS[method]
        pages = [Page(Place(server.name), {key: server.lists.get(method, [])}) for server in servers]
        for entry, owner, other in join_pages(method, pages, names).clashes:
            found.append(f"{kind}: {entry} of {owner} is used, that of {other} is left out")
    return found
