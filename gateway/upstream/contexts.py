"""What an answer may depend on beside the request itself: only requests of one context may share one."""

from typing import NamedTuple, Protocol

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller, Principal
from gateway.core.request_state import digest
from gateway.translate.capabilities import canonical
from gateway.upstream.client_stream import ClientStream
from gateway.wire.jsonrpc import JsonObject

_LONGEST = 256


class Upstream(Protocol):
    """What stands behind an endpoint: a configured upstream, or something around one."""

    @property
    def name(self) -> str:
        """Its configured name."""

    def admits(self, principal: Principal) -> bool:
        """Whether a principal may use it."""

    def owner(self, caller: Caller) -> tuple[str, str]:
        """Whom the answers to a caller belong to: a principal, and what else of it the server can tell apart.

        That is a digest of the credential that was passed on, and of the session that it means among its own.
        """

    async def serve(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        """Serve one request. Raises GatewayError."""


class Context(NamedTuple):
    """Whose answer it is, and for a client of which kind.

    Args:
        upstream: who gives it.
        owner: see `Upstream.owner`.
        capabilities: what the client declared, in short.
    """

    upstream: str
    owner: tuple[str, str]
    capabilities: str


def context_of(upstream: Upstream, request: InboundRequest, caller: Caller) -> Context:
    """The context of a request."""
    return Context(upstream.name, upstream.owner(caller), in_short(canonical(request.capabilities)))


def in_short(text: str) -> str:
    """A text that may be part of a key: itself, or a digest of it if it is long."""
    return text if len(text) <= _LONGEST else digest(text)


class Deaf:
    """A client that hears no notifications: the gateway asks for itself."""

    async def notify(self, _notification: JsonObject) -> None:
        """Drop it."""
