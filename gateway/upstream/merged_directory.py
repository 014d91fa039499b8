"""Whose a tool, a prompt or a resource is, where its name does not tell: learned from the upstreams' lists."""

import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from gateway.core.inbound_request import InboundRequest
from gateway.core.names import Names
from gateway.core.principal import Caller
from gateway.upstream.fan_out import FanOut, Upstream
from gateway.wire import methods
from gateway.wire.jsonrpc import JsonObject

_FRESH_S: Final = 60.0
_LOOK_AGAIN_S: Final = 1.0
_MAX_CALLERS: Final = 1000
_MAX_PAGES: Final = 100
_EXPRESSION: Final = re.compile(r"\{[^{}]*\}")

LIST_OF: Final = {methods.TOOLS_CALL: methods.TOOLS_LIST, methods.PROMPTS_GET: methods.PROMPTS_LIST}
"""The list in which the target of a request stands."""


@dataclass(slots=True)
class _Known:
    learned_at_s: float
    names: dict[str, tuple[str, str]] = field(default_factory=dict)
    uris: dict[str, str] = field(default_factory=dict)
    templates: list[tuple[re.Pattern[str], str, str]] = field(default_factory=list)


class Directory:
    """Finds owners, for each authorization context apart.

    Args:
        names: makes public names.
        fan_out: asks the upstreams.
        now_s: a monotonic clock.
    """

    def __init__(self, names: Names, fan_out: FanOut, now_s: Callable[[], float]) -> None:
        self._names = names
        self._fan_out = fan_out
        self._now_s = now_s
        self._known: OrderedDict[Hashable, _Known] = OrderedDict()

    async def owner_of_name(
        self, method: str, public: str, upstreams: Sequence[Upstream], request: InboundRequest, caller: Caller
    ) -> tuple[str, str] | None:
        """The upstream of a tool or prompt, and its name there; None if nobody has it."""
        owner = self._names.owner(public)
        original = self._names.original(public)
        if owner is not None and original is not None:
            return owner, original
        known = await self._learn(LIST_OF[method], upstreams, request, caller, lambda known: public in known.names)
        return known.names.get(public)

    async def owner_of_uri(
        self, uri: str, upstreams: Sequence[Upstream], request: InboundRequest, caller: Caller
    ) -> str | None:
        """The upstream that lists a resource, or has a template for it; None if nobody says that it has it."""
        known = await self._learn(methods.RESOURCES_LIST, upstreams, request, caller, lambda known: uri in known.uris)
        if uri in known.uris:
            return known.uris[uri]
        templates = await self._learn(
            methods.RESOURCE_TEMPLATES_LIST, upstreams, request, caller, lambda known: _matched(known, uri) is not None
        )
        return _matched(templates, uri)

    async def owner_of_template(
        self, template: str, upstreams: Sequence[Upstream], request: InboundRequest, caller: Caller
    ) -> str | None:
        """The upstream that has a resource template."""
        known = await self._learn(
            methods.RESOURCE_TEMPLATES_LIST,
            upstreams,
            request,
            caller,
            lambda known: any(written == template for _pattern, _owner, written in known.templates),
        )
        return next((owner for _pattern, owner, written in known.templates if written == template), None)

    def forget(self) -> None:
        """Some list has changed."""
        self._known.clear()

    async def _learn(
        self,
        method: str,
        upstreams: Sequence[Upstream],
        request: InboundRequest,
        caller: Caller,
        is_enough: Callable[[_Known], bool],
    ) -> _Known:
        """What is known of a list; asks for it if that is not enough, or old."""
        key = (method, caller.principal.id, caller.authorization, repr(sorted(request.capabilities)))
        known = self._known.get(key)
        if known is not None:
            age_s = self._now_s() - known.learned_at_s
            if age_s < _LOOK_AGAIN_S or (age_s < _FRESH_S and is_enough(known)):
                return known
        known = _Known(self._now_s())
        for upstream, entries in await self._entries(method, upstreams, request, caller):
            for entry in entries:
                self._note(known, method, upstream, entry)
        self._known[key] = known
        if len(self._known) > _MAX_CALLERS:
            self._known.popitem(last=False)
        return known

    async def _entries(
        self, method: str, upstreams: Sequence[Upstream], request: InboundRequest, caller: Caller
    ) -> list[tuple[str, list[JsonObject]]]:
        """All entries of all upstreams, in the order of the file."""
        found: dict[str, list[JsonObject]] = {upstream.name: [] for upstream in upstreams}
        waiting = [(upstream, list_request(request, method, None)) for upstream in upstreams]
        for _ in range(_MAX_PAGES):
            answers = await self._fan_out.ask(waiting, caller)
            following = []
            for upstream, asked in waiting:
                result = answers[upstream.name].result
                if result is None:
                    continue
                found[upstream.name] += result[methods.LIST_KEYS[method]]
                cursor = result.get("nextCursor")
                if isinstance(cursor, str) and cursor != asked.params.get("cursor"):
                    following.append((upstream, list_request(request, method, cursor)))
            waiting = following
            if not waiting:
                break
        return list(found.items())

    def _note(self, known: _Known, method: str, upstream: str, entry: JsonObject) -> None:
        if method == methods.RESOURCES_LIST:
            known.uris.setdefault(entry["uri"], upstream)
        elif method == methods.RESOURCE_TEMPLATES_LIST:
            known.templates.append((_pattern_of(entry["uriTemplate"]), upstream, entry["uriTemplate"]))
        else:
            known.names.setdefault(self._names.to_public(upstream, entry["name"]), (upstream, entry["name"]))


def list_request(request: InboundRequest, method: str, cursor: str | None) -> InboundRequest:
    """The request for a page of a list, in the name of whoever made another request."""
    params: JsonObject = {"_meta": request.meta}
    if cursor is not None:
        params["cursor"] = cursor
    return replace(
        request,
        method=method,
        params=params,
        target=None,
        progress_token=None,
        log_level=None,
        param_headers={},
        input_responses=None,
        request_state=None,
    )


def _matched(known: _Known, uri: str) -> str | None:
    return next((owner for pattern, owner, _template in known.templates if pattern.fullmatch(uri)), None)


def _pattern_of(template: str) -> re.Pattern[str]:
    """A URI template as a pattern: every expression stands for any text (RFC 6570 has no inverse)."""
    literals = _EXPRESSION.split(template)
    return re.compile(".*".join(map(re.escape, literals)), re.DOTALL)
