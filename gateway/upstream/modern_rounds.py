"""Wraps a modern upstream's `requestState` in one of the gateway's.

With shared upstream credentials the server cannot tell users apart; only the gateway can. So its token is bound to
the gateway's principal, and to the very request, before a client gets to see it.
"""

import time

from gateway.core.inbound_request import InboundRequest
from gateway.core.principal import Caller
from gateway.core.request_state import RequestState, RequestStateSealer, digest, refused, request_digest


class ModernRounds:
    """Seals and opens the states of one modern upstream.

    Args:
        upstream: its configured name.
        sealer: seals request states.
        ttl_s: seconds for which a state is good.
    """

    def __init__(self, upstream: str, sealer: RequestStateSealer, ttl_s: float) -> None:
        self._upstream = upstream
        self._sealer = sealer
        self._ttl_s = ttl_s

    def seal(self, request: InboundRequest, caller: Caller, inner: str | None) -> str:
        """The token that the client gets for the server's state; None: the server sent none, and gets none back."""
        state = RequestState(
            kind="modern",
            upstream=self._upstream,
            principal=digest(caller.principal.id),
            request=request_digest(request.method, request.params),
            expires_s=time.time() + self._ttl_s,
            inner=inner,
        )
        return self._sealer.seal(state)

    def unseal(self, request: InboundRequest, caller: Caller) -> str | None:
        """The server's state out of a retry.

        Raises:
            ProtocolError: the frozen refusal.
        """
        state = self._sealer.open(
            request.request_state or "",
            upstream=self._upstream,
            principal_id=caller.principal.id,
            request=request_digest(request.method, request.params),
        )
        if state.kind != "modern":
            raise refused("of another era")
        return state.inner
