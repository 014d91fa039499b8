"""Calls of tools, prompts and completion over several upstreams: each for the one whose it is, under its own name."""

from collections.abc import Mapping
from dataclasses import replace

from gateway.core.inbound_request import InboundRequest
from gateway.core.merged_replies import links_of, refusal_with_public_name, with_public_name
from gateway.core.outcome import Outcome
from gateway.core.unknown import unknown_target
from gateway.errors import ProtocolError
from gateway.upstream.client_stream import ClientStream
from gateway.upstream.contexts import Upstream
from gateway.upstream.merged_directory import Directory
from gateway.upstream.merged_listings import Inquiry
from gateway.wire import methods


class MergedCalls:
    """Makes calls.

    Args:
        directory: knows whose a name is.
        upstreams: by name.
    """

    def __init__(self, directory: Directory, upstreams: Mapping[str, Upstream]) -> None:
        self._directory = directory
        self._upstreams = upstreams

    async def serve(self, inquiry: Inquiry, client: ClientStream) -> Outcome:
        """Serve `tools/call`, `prompts/get` or `completion/complete`.

        Raises:
            ProtocolError: nobody has what it is about.
            UpstreamError: the upstream that has it failed.
        """
        if inquiry.request.method == methods.COMPLETE:
            return await self._complete(inquiry, client)
        return await self._call(inquiry, client)

    async def _call(self, inquiry: Inquiry, client: ClientStream) -> Outcome:
        request, public = inquiry.request, inquiry.request.params["name"]
        found = await self._owner_of_name(request.method, public, inquiry)
        if isinstance(found, Outcome):
            return found
        owner, name = found
        renamed = request
        if name != public:
            renamed = replace(request, params={**request.params, "name": name}, target=name)
        outcome = await self._serve_renamed(owner, renamed, (name, public), inquiry, client)
        for uri in links_of(outcome):
            self._directory.note_hint(uri, owner, inquiry)
        return outcome

    async def _complete(self, inquiry: Inquiry, client: ClientStream) -> Outcome:
        request, reference = inquiry.request, inquiry.request.params["ref"]
        if reference["type"] == "ref/resource":
            owner = await self._owner_of_reference(reference["uri"], inquiry)
            return await self._upstreams[owner].serve(request, inquiry.caller, client)
        public = reference["name"]
        found = await self._owner_of_name(methods.PROMPTS_GET, public, inquiry)
        if isinstance(found, Outcome):
            return found
        owner, name = found
        renamed = replace(request, params={**request.params, "ref": {**reference, "name": name}})
        return await self._serve_renamed(owner, renamed, (name, public), inquiry, client)

    async def _serve_renamed(
        self, owner: str, request: InboundRequest, names: tuple[str, str], inquiry: Inquiry, client: ClientStream
    ) -> Outcome:
        """Make a request of its upstream; what is said of the name is said of the one that the client knows."""
        try:
            outcome = await self._upstreams[owner].serve(request, inquiry.caller, client)
        except ProtocolError as error:
            refusal = refusal_with_public_name(error, *names)
            if refusal is error:
                raise
            raise refusal from error
        return with_public_name(outcome, *names)

    async def _owner_of_name(self, method: str, public: str, inquiry: Inquiry) -> tuple[str, str] | Outcome:
        """Whose a tool or prompt is, and its name there; what there is to say if one that is silent may have it."""
        found = await self._directory.owner_of_name(method, public, inquiry)
        if found is not None and found[0] in {upstream.name for upstream in inquiry.upstreams}:
            return found
        silent = self._directory.silent_on_name(method, public, inquiry)
        if silent is not None:
            return silent
        raise unknown_target(method, public)

    async def _owner_of_reference(self, uri: str, inquiry: Inquiry) -> str:
        """The upstream of a URI template, or of a resource (2026-07-28, server/utilities/completion)."""
        owner = await self._directory.owner_of_template(uri, inquiry)
        if owner is None:
            holders = await self._directory.holders_of(uri, inquiry)
            owner = next(iter(holders.known), None)
        if owner is None:
            raise unknown_target(methods.RESOURCES_READ, uri)
        return owner
