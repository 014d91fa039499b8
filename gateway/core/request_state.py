"""The sealed `requestState`: a capability on somebody's call in flight, so encrypted, dated and bound.

Rule: any failure is one frozen message on the wire; the reason goes to the log only.
A token is bound to principal, upstream, method, target and arguments; it names a handle that is good for one claim.
2026-07-28, basic/patterns/mrtr, "Request state".
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

import orjson

from gateway.core.tokens import Sealer
from gateway.errors import ProtocolError
from gateway.wire import codes
from gateway.wire.jsonrpc import JsonObject

_VERSION: Final = 1
_UNBOUND: Final = frozenset({"_meta", "inputResponses", "requestState"})

Kind = Literal["suspended", "modern"]
"""What the token stands for: a round that this gateway keeps, or a modern upstream's own state."""


@dataclass(frozen=True, slots=True)
class RequestState:
    """What a token says.

    Args:
        kind: what it stands for.
        upstream: the upstream that the call belongs to.
        principal: digest of the principal.
        request: digest of method, target and arguments.
        expires_s: seconds since the epoch.
        handle: names a suspended exchange; 128 random bits.
        owner: the process that holds the exchange.
        inner: a modern upstream's own state, None if it sent none.
        recovery: where the call stands, for a replica that goes on with it (`core.recovery`); None: none can.
        answers: what has been answered so far, where the call may be made again; None: it may not.
    """

    kind: Kind
    upstream: str
    principal: str
    request: str
    expires_s: float
    handle: str = ""
    owner: str = ""
    inner: str | None = None
    recovery: JsonObject | None = None
    answers: JsonObject | None = None


class RequestStateSealer:
    """Seals and opens request states.

    Args:
        sealer: seals what they say.
        now_s: seconds since the epoch.
    """

    def __init__(self, sealer: Sealer, now_s: Callable[[], float]) -> None:
        self._sealer = sealer
        self._now_s = now_s

    def seal(self, state: RequestState) -> str:
        """A token for the client to bring back.

        Raises:
            ValueError: an upstream's own state is too long, or no text.
        """
        members = {name: getattr(state, name) for name in RequestState.__slots__}
        payload = {"v": _VERSION, **{name: value for name, value in members.items() if value is not None}}
        try:
            return self._sealer.seal(payload)
        except ValueError as error:
            raise ValueError(f"its requestState cannot be sealed: {error}") from error

    def open(self, token: str, *, upstream: str, principal_id: str, request: str) -> RequestState:
        """Open a token and compare what it is bound to.

        Raises:
            ProtocolError: the one frozen message; `reason` tells the log why.
        """
        state = self._decrypt(token)
        if state.expires_s <= self._now_s():
            raise refused("expired")
        if state.upstream != upstream:
            raise refused("another upstream")
        if state.principal != digest(principal_id):
            raise refused("another principal")
        if state.request != request:
            raise refused("another request")
        return state

    def _decrypt(self, token: str) -> RequestState:
        try:
            payload = self._sealer.open(token)
        except ValueError as error:
            raise refused("not a token of ours") from error
        if payload.pop("v", None) != _VERSION:
            raise refused("another version")
        try:
            return RequestState(**payload)
        except TypeError as error:
            raise refused("not a request state") from error


def refused(reason: str) -> ProtocolError:
    """The one thing that a client is told about a request state that is not accepted."""
    return ProtocolError(codes.INVALID_PARAMS, "Invalid or expired request state", reason=reason)


def lost() -> ProtocolError:
    """The one error that says: the suspended call is gone, and it may have had effects."""
    return ProtocolError(
        codes.INVALID_PARAMS,
        "The call behind this request state is lost; it must be made anew, and may already have had effects",
        {"reason": "lost"},
    )


def digest(text: str) -> str:
    """A digest that stands for a text without telling it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def request_digest(method: str, params: JsonObject) -> str:
    """A digest of everything that a retry must repeat: the method and all parameters but those of the round itself."""
    bound: Any = [method, {key: value for key, value in params.items() if key not in _UNBOUND}]
    try:
        text = orjson.dumps(bound, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # integers beyond 64 bits, lone surrogates
        text = json.dumps(bound, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(text).hexdigest()
