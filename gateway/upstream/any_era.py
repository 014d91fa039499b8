"""An upstream of whatever era: asks once, remembers, and asks again when the answer proves wrong."""

from collections import Counter
from collections.abc import Callable, Mapping

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller, Principal
from gateway.errors import UpstreamError
from gateway.upstream.background import Background
from gateway.upstream.client_stream import ClientStream
from gateway.upstream.era import EraResolver
from gateway.upstream.legacy import LegacyUpstream
from gateway.upstream.modern import ModernUpstream
from gateway.upstream.piped import PipeTransport
from gateway.upstream.refusal import UpstreamRefused
from gateway.upstream.subscriptions import Subscriptions
from gateway.upstream.transport import Transport
from gateway.wire import methods

_DOUBTFUL = frozenset({"nonsense", "session_lost"})
"""Failures that a server of another era than we think would cause."""


class AnyEraUpstream:
    """One configured upstream.

    Args:
        http: the connections to it.
        legacy: serves it as a legacy server.
        modern: serves it as a modern one.
        resolver: knows which of the two it is.
        background: the work that outlives requests.
        credentials: the headers that carry the credential for a caller's request.
        owner: see `AnyEraUpstream.owner`.
        subscriptions: its listeners.
        passes_authorization: whether that credential is the caller's own.

    Attributes:
        requests: how many it was asked to serve.
        failures: how many it failed, by reason: those of `errors.UPSTREAM_STATUS`, and "refused".
    """

    def __init__(
        self,
        http: Transport,
        legacy: LegacyUpstream,
        modern: ModernUpstream,
        resolver: EraResolver,
        background: Background,
        credentials: Callable[[Caller], Mapping[str, str]],
        owner: Callable[[Caller], tuple[str, str]],
        subscriptions: Subscriptions,
        *,
        passes_authorization: bool,
    ) -> None:
        self.name = http.name
        self.requests = 0
        self.failures: Counter[str] = Counter()
        self._http = http
        self._legacy = legacy
        self._modern = modern
        self._resolver = resolver
        self._background = background
        self._credentials = credentials
        self._owner = owner
        self._subscriptions = subscriptions
        self._passes_authorization = passes_authorization

    @property
    def era(self) -> str | None:
        """The era as far as it is known."""
        return self._resolver.known

    @property
    def session_count(self) -> int:
        """How many legacy sessions are open."""
        return self._legacy.session_count

    @property
    def pipe_count(self) -> int | None:
        """How many pipes are open: a process is at the end of each, if the upstream has a command. None: it is HTTP."""
        return len(self._http) if isinstance(self._http, PipeTransport) else None

    def admits(self, principal: Principal) -> bool:
        """Whether a principal may use it."""
        return principal.may_use(self.name)

    def owner(self, caller: Caller) -> tuple[str, str]:
        """Whom the answers to a caller belong to: a principal, and what else of it the server can tell apart."""
        return self._owner(caller)

    async def serve(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        """Serve one request of a modern client. Raises GatewayError."""
        self.requests += 1
        try:
            return await self._serve(request, caller, client)
        except UpstreamRefused as refused:
            self.failures["refused"] += 1
            return refused.to_outcome(request, self.name, is_callers=self._passes_authorization)
        except UpstreamError as error:
            self.failures[error.reason] += 1
            if error.reason in _DOUBTFUL:
                self._resolver.doubt()
            raise

    async def _serve(self, request: InboundRequest, caller: Caller, client: ClientStream) -> Outcome:
        if self._resolver.known is None and self._legacy.knows_round(request, caller):
            return await self._legacy.serve(request, caller, client)  # another replica has asked the server already
        era = await self._resolver.era_of(self._credentials(caller), lambda: self._legacy.greet(request, caller))
        if request.method == methods.LISTEN:
            return await self._subscriptions.serve(request, caller, client)
        upstream: LegacyUpstream | ModernUpstream = self._modern if era == "modern" else self._legacy
        return await upstream.serve(request, caller, client)

    def end_streams(self) -> None:
        """End every listener's stream in order."""
        self._subscriptions.end()

    def sweep(self) -> None:
        """End what has been idle for too long."""
        self._legacy.sweep()

    async def close(self, grace_s: float) -> None:
        """End every session and close every connection."""
        await self._resolver.close()
        await self._legacy.close()
        await self._background.close(grace_s)
        await self._http.close()
