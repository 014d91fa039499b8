"""Every upstream behind one endpoint.

Tools and prompts have their upstream's prefix, resources their own URI. Lists are asked for of all upstreams at once;
what has to do without one says so (`partial: degrade`), or fails (`partial: fail`).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from gateway import __version__
from gateway.core.cursors import Cursors, Place
from gateway.core.inbound_request import InboundRequest, invalid_params
from gateway.core.merging import Page, list_result, merge_discovery, merge_lists
from gateway.core.names import Names
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller, Principal
from gateway.errors import ProtocolError, UpstreamError
from gateway.upstream.background import Background
from gateway.upstream.fan_out import FanOut, Upstream
from gateway.upstream.legacy_call import ClientStream
from gateway.upstream.merged_directory import Directory, list_request
from gateway.upstream.merged_listening import listen
from gateway.wire import codes, meta, methods
from gateway.wire.jsonrpc import JsonObject

log = structlog.get_logger()

_GATEWAY_INFO: Final[JsonObject] = {"name": "era-gateway", "version": __version__}


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """How several upstreams are made one.

    Args:
        is_prefixed: whether names begin with their upstream's.
        fails_partially: whether a result without one of the upstreams is an error.
        page_size: entries of a list in one result; None: as they come.
        deadline_s: seconds that an upstream is waited for when all are asked.
    """

    is_prefixed: bool = True
    fails_partially: bool = False
    page_size: int | None = None
    deadline_s: float = 5.0


class MergedUpstream:
    """Several upstreams, as one.

    Args:
        upstreams: in the order of the file.
        options: how they are made one.
        cursors: seals the cursors of merged lists.
        background: where answers arrive that nobody waits for any more.
        now_s: a monotonic clock.
    """

    name = "*"

    def __init__(
        self,
        upstreams: Sequence[Upstream],
        options: MergeOptions,
        cursors: Cursors,
        background: Background,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._upstreams = {upstream.name: upstream for upstream in upstreams}
        self._options = options
        self._cursors = cursors
        self._names = Names(list(self._upstreams), is_prefixed=options.is_prefixed)
        self._fan_out = FanOut(background, options.deadline_s)
        self._directory = Directory(self._names, self._fan_out, now_s)

    def admits(self, principal: Principal) -> bool:
        """Whether a principal may use any of them."""
        return any(upstream.admits(principal) for upstream in self._upstreams.values())

    def forget(self) -> None:
        """Some upstream's list has changed."""
        self._directory.forget()

    async def serve(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        """Serve one request. Raises GatewayError."""
        admitted = [upstream for upstream in self._upstreams.values() if upstream.admits(caller.principal)]
        if request.method == methods.DISCOVER:
            return await self._discover(request, caller, admitted)
        if request.method in methods.LIST_KEYS:
            return await self._list(request, caller, admitted)
        if request.method == methods.LISTEN:
            return await listen(request, caller, client, admitted)
        if request.method == methods.RESOURCES_READ:
            return await self._read(request, caller, client, admitted)
        upstream, mapped = await self._route(request, caller, admitted)
        return _signed(await self._upstreams[upstream].serve(mapped, caller, client))

    # --- all of them at once ---

    async def _discover(self, request: InboundRequest, caller: Caller, admitted: Sequence[Upstream]) -> Outcome:
        answers = await self._fan_out.ask([(upstream, request) for upstream in admitted], caller)
        unavailable = [name for name, answer in answers.items() if answer.is_missing]
        self._refuse_partial([answers[name].error for name in unavailable])
        results = {name: answer.result for name, answer in answers.items() if answer.result is not None}
        return Outcome.of_result(merge_discovery(results, unavailable, _GATEWAY_INFO))

    async def _list(self, request: InboundRequest, caller: Caller, admitted: Sequence[Upstream]) -> Outcome:
        method, cursor = request.method, request.params.get("cursor")
        if cursor is None:
            places = [Place(upstream.name) for upstream in admitted]
        else:
            may_use = {upstream.name for upstream in admitted}
            opened = self._cursors.open(cursor, method, caller.principal.id)
            places = [place for place in opened if place.upstream in may_use]
        requests = [(self._upstreams[place.upstream], list_request(request, method, place.cursor)) for place in places]
        answers = await self._fan_out.ask(requests, caller)
        asked = [(place, answers[place.upstream]) for place in places]
        self._refuse_partial([answer.error for _place, answer in asked if answer.is_missing])
        pages = [Page(place, answer.result, answer.is_stale) for place, answer in asked if not answer.is_refused]
        entries, following = merge_lists(method, pages, self._names, self._options.page_size)
        next_cursor = self._cursors.seal(method, caller.principal.id, following) if following else None
        return Outcome.of_result(list_result(method, entries, pages, next_cursor, _GATEWAY_INFO))

    def _refuse_partial(self, errors: Sequence[Exception | None]) -> None:
        failures = [error for error in errors if error is not None]
        if failures and self._options.fails_partially:
            raise failures[0]

    # --- one of them ---

    async def _route(
        self, request: InboundRequest, caller: Caller, admitted: Sequence[Upstream]
    ) -> tuple[str, InboundRequest]:
        """Whose a request is, and what it is there."""
        if request.method == methods.COMPLETE:
            return await self._route_completion(request, caller, admitted)
        public = request.params["name"]
        owner = await self._directory.owner_of_name(request.method, public, admitted, request, caller)
        if owner is None or owner[0] not in {upstream.name for upstream in admitted}:
            raise _unknown(request.method, "name", public)
        return owner[0], _renamed(request, owner[1])

    async def _route_completion(
        self, request: InboundRequest, caller: Caller, admitted: Sequence[Upstream]
    ) -> tuple[str, InboundRequest]:
        reference = request.params["ref"]
        names = {upstream.name for upstream in admitted}
        if reference["type"] == "ref/prompt":
            found = await self._directory.owner_of_name(
                methods.PROMPTS_GET, reference["name"], admitted, request, caller
            )
            if found is not None and found[0] in names:
                reference = {**reference, "name": found[1]}
                return found[0], replace(request, params={**request.params, "ref": reference})
        else:
            owner = await self._directory.owner_of_template(reference["uri"], admitted, request, caller)
            if owner is not None and owner in names:
                return owner, request
        raise invalid_params("ref: no such prompt or resource template")

    async def _read(
        self, request: InboundRequest, caller: Caller, client: ClientStream, admitted: Sequence[Upstream]
    ) -> Outcome:
        uri = request.params["uri"]
        owner = await self._directory.owner_of_uri(uri, admitted, request, caller)
        if owner is not None:
            return _signed(await self._upstreams[owner].serve(request, caller, client))
        # Nobody lists it: a tool may have told of it all the same. Reading changes nothing, so each may be asked.
        for upstream in admitted:
            try:
                outcome = await upstream.serve(request, caller, client)
            except UpstreamError as error:
                log.info("not asked further", upstream=upstream.name, reason=error.reason)
                continue
            except ProtocolError as error:
                if error.code in (codes.METHOD_NOT_FOUND, codes.INVALID_PARAMS):
                    continue
                raise
            if "result" in outcome.body:
                return _signed(outcome)
        raise _unknown(request.method, "uri", uri)


def _renamed(request: InboundRequest, name: str) -> InboundRequest:
    if name == request.target:
        return request
    return replace(request, params={**request.params, "name": name}, target=name)


def _unknown(method: str, member: str, value: str) -> ProtocolError:
    kind = {methods.TOOLS_CALL: "tool", methods.PROMPTS_GET: "prompt"}.get(method, "resource")
    return ProtocolError(codes.INVALID_PARAMS, f"Unknown {kind}", {member: value})


def _signed(outcome: Outcome) -> Outcome:
    """On the merged endpoint it is the gateway that answers."""
    result = outcome.body.get("result")
    if not isinstance(result, dict):
        return outcome
    about = {**(result.get("_meta") or {}), meta.SERVER_INFO: _GATEWAY_INFO}
    return replace(outcome, body={"result": {**result, "_meta": about}})
