"""Stands in front of one upstream and offers less of it, or under other names. What is not offered never reaches it."""

from dataclasses import replace

from gateway.core.inbound_request import InboundRequest
from gateway.core.merged_replies import with_public_name
from gateway.core.offering import Offer
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller
from gateway.core.subscriptions import Filter, change_of
from gateway.core.unknown import unknown_target
from gateway.upstream.client_stream import ClientStream
from gateway.upstream.contexts import Upstream
from gateway.wire import methods
from gateway.wire.jsonrpc import JsonObject


class OfferedUpstream:
    """An upstream of which not everything is offered.

    Args:
        upstream: the whole of it.
        offer: what is offered.
    """

    def __init__(self, upstream: Upstream, offer: Offer) -> None:
        self._upstream = upstream
        self._offer = offer
        self.name = upstream.name
        self.admits = upstream.admits
        self.owner = upstream.owner

    async def serve(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        """Serve one request. Raises GatewayError."""
        method = request.method
        if method == methods.TOOLS_CALL:
            return await self._call(request, caller, client)
        if method == methods.LISTEN:
            return await self._listen(request, caller, client)
        if method in (methods.PROMPTS_GET, methods.RESOURCES_READ, methods.COMPLETE):
            self._require_offered(request)
        outcome = await self._upstream.serve(request, caller, client)
        result = outcome.body.get("result")
        if method not in methods.LIST_KEYS or not isinstance(result, dict):
            return outcome
        return replace(outcome, body={"result": self._offer.filtered(method, result)})

    async def _call(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        public = request.params["name"]
        own = self._offer.own_tool_name(public)
        if own is None:
            raise unknown_target(request.method, public)
        if own == public:
            return await self._upstream.serve(request, caller, client)
        renamed = replace(request, params={**request.params, "name": own}, target=own)
        return with_public_name(await self._upstream.serve(renamed, caller, client), own, public)

    def _require_offered(self, request: InboundRequest) -> None:
        """Raises ProtocolError: what is asked for is unknown here."""
        params, resources = request.params, self._offer.resources
        reference = params["ref"] if request.method == methods.COMPLETE else {}
        if request.method == methods.PROMPTS_GET or reference.get("type") == "ref/prompt":
            name = reference.get("name") or params["name"]
            if not self._offer.prompts.admit(name):
                raise unknown_target(methods.PROMPTS_GET, name)
            return
        uri = reference.get("uri") or params["uri"]
        # A template is its own text and nothing else; a URI that is read may be taken for others.
        is_template = request.method == methods.COMPLETE and "{" in uri
        if not (resources.admit(uri) if is_template else resources.admit_uri(uri)):
            raise unknown_target(methods.RESOURCES_READ, uri)

    async def _listen(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        if not self._offer.resources:
            return await self._upstream.serve(request, caller, client)
        asked = Filter.of_request(request.params)
        offered = Filter(asked.lists, frozenset(uri for uri in asked.uris if self._offer.resources.admit_uri(uri)))
        narrowed = replace(request, params={**request.params, "notifications": offered.to_notifications()})
        return await self._upstream.serve(narrowed, caller, _OfferedChanges(client, self._offer))


class _OfferedChanges:
    """Hears of the changes of what is offered: a server may tell of parts of a resource, which are not."""

    def __init__(self, client: ClientStream, offer: Offer) -> None:
        self._client = client
        self._offer = offer

    async def notify(self, message: JsonObject) -> None:
        """Pass it on, if it is about what is offered."""
        method, uri = change_of(message)
        if method != methods.RESOURCE_UPDATED or self._offer.resources.admit_uri(uri):
            await self._client.notify(message)
