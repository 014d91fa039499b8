"""A scripted upstream with lists of everything, in pages, whose tools say whose they are.

    OfferingUpstream("a", tools=["x", "y"], prompts=["greet"], resources=["file:///1"], templates=["file:///{id}"])
    OfferingUpstream("a", tools=[["x"], ["y"]])         # two pages, the second one's cursor is "1"

A call of any of its tools answers `TOOL@a`, a prompt `PROMPT@a`, a resource that is listed or in `unlisted` `URI@a`, a
completion `[NAME@a]`; anything else is -32602, as from the TypeScript SDK. `cursors` replaces what pages are called.
With `shut()` it takes requests and answers none, until `open()`.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Literal

from tests.support.scripted import ScriptedUpstream, Wire

Entries = Sequence[str] | Sequence[Sequence[str]]

_LISTS = {
    "tools/list": ("tools", "name"),
    "prompts/list": ("prompts", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
}
_CAPABILITIES = {"tools": "tools", "prompts": "prompts", "resources": "resources", "templates": "resources"}


class OfferingUpstream(ScriptedUpstream):
    """See the module."""

    def __init__(
        self,
        label: str,
        *,
        era: Literal["legacy", "modern"] = "legacy",
        tools: Entries = (),
        prompts: Entries = (),
        resources: Entries = (),
        templates: Entries = (),
    ) -> None:
        super().__init__(era)
        self.label = label
        self.server_info = {"name": label, "version": "1"}
        self.offers: dict[str, Entries] = {
            "tools/list": tools,
            "prompts/list": prompts,
            "resources/list": resources,
            "resources/templates/list": templates,
        }
        self.capabilities = {
            _CAPABILITIES[kind]: {}
            for kind, entries in (
                ("tools", tools),
                ("prompts", prompts),
                ("resources", resources),
                ("templates", templates),
            )
            if entries
        } | {"completions": {}}
        self.unlisted: set[str] = set()
        self.cursors: Callable[[int], str] = str
        self._is_open = asyncio.Event()
        self._is_open.set()
        for method in _LISTS:
            self.on(method, self._list_entries)
        self.on("tools/call", self._call_tool)
        self.on("prompts/get", self._get_prompt)
        self.on("resources/read", self._read_resource)
        self.on("completion/complete", self._complete_name)
        self.gate = self._wait_until_open

    def shut(self) -> None:
        """Answer nothing from now on."""
        self._is_open.clear()

    def open(self) -> None:
        """Answer everything that has come, and that comes."""
        self._is_open.set()

    async def _wait_until_open(self, _wire: Wire) -> None:
        await self._is_open.wait()

    def pages(self, method: str) -> list[list[str]]:
        """A list in pages."""
        entries = self.offers[method]
        if not entries or isinstance(entries[0], str):
            return [list(entries)]  # type: ignore[arg-type]
        return [list(page) for page in entries]

    def everything(self, method: str) -> list[str]:
        """A list as a whole."""
        return [entry for page in self.pages(method) for entry in page]

    async def _list_entries(self, wire: Wire) -> None:
        method = wire.request.method
        member, key = _LISTS[method]
        pages = self.pages(method)
        names = [self.cursors(number) for number in range(len(pages))]
        cursor = wire.request.params.get("cursor")
        if cursor is not None and cursor not in names[1:]:
            await wire.error(-32602, "Invalid cursor")
            return
        number = 0 if cursor is None else names.index(cursor)
        result: dict[str, Any] = {member: [self.entry(key, entry) for entry in pages[number]]}
        if number + 1 < len(pages):
            result["nextCursor"] = names[number + 1]
        await wire.result(self._in_era(result, cacheable=True))

    def entry(self, key: str, entry: str) -> dict[str, Any]:
        """One entry of a list."""
        schema = {"inputSchema": {"type": "object"}} if key == "name" else {}
        return {"name": f"{entry} of {self.label}", "description": f"{entry}@{self.label}", key: entry, **schema}

    async def _call_tool(self, wire: Wire) -> None:
        name = wire.request.params["name"]
        await self._reply(
            wire, name, self.everything("tools/list"), {"content": [{"type": "text", "text": f"{name}@{self.label}"}]}
        )

    async def _get_prompt(self, wire: Wire) -> None:
        name = wire.request.params["name"]
        message = {"role": "user", "content": {"type": "text", "text": f"{name}@{self.label}"}}
        await self._reply(wire, name, self.everything("prompts/list"), {"messages": [message]})

    async def _read_resource(self, wire: Wire) -> None:
        uri = wire.request.params["uri"]
        result = {"contents": [{"uri": uri, "text": f"{uri}@{self.label}"}]}
        await self._reply(wire, uri, [*self.everything("resources/list"), *self.unlisted], result)

    async def _complete_name(self, wire: Wire) -> None:
        reference = wire.request.params["ref"]
        kind = "prompts/list" if reference["type"] == "ref/prompt" else "resources/templates/list"
        name = reference.get("name") or reference["uri"]
        await self._reply(wire, name, self.everything(kind), {"completion": {"values": [f"{name}@{self.label}"]}})

    async def _reply(self, wire: Wire, name: str, known: Sequence[str], result: dict[str, Any]) -> None:
        if name in known:
            await wire.result(self._in_era(result, cacheable=wire.request.method == "resources/read"))
        else:
            await wire.error(-32602, f"{name} not found")
