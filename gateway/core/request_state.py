"""The sealed `requestState`: a capability on somebody's call in flight, so encrypted, dated and bound.

Rule: any failure is one frozen message on the wire; the reason goes to the log only.
A token is bound to principal, upstream, method, target and arguments; it names a handle that is good for one claim.
2026-07-28, basic/patterns/mrtr, "Request state".
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import orjson
from cryptography.fernet import InvalidToken, MultiFernet

from gateway.errors import ProtocolError
from gateway.wire import codes
from gateway.wire.jsonrpc import Json, JsonObject, decode, encode

MAX_TOKEN_CHARS: Final = 1_048_576
"""Ample for a modern upstream's own state, which travels inside."""

_VERSION: Final = 1
_ALPHABET: Final = re.compile(r"[A-Za-z0-9_-]+")
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
    """

    kind: Kind
    upstream: str
    principal: str
    request: str
    expires_s: int
    handle: str = ""
    owner: str = ""
    inner: str | None = None


class RequestStateSealer:
    """Seals and opens request states with rotating keys.

    Args:
        keys: the newest seals, every one opens.
        now_s: seconds since the epoch.
    """

    def __init__(self, keys: MultiFernet, now_s: Callable[[], float]) -> None:
        self._keys = keys
        self._now_s = now_s

    def seal(self, state: RequestState) -> str:
        """A token for the client to bring back.

        Raises:
            ValueError: an upstream's own state is too long, or no text.
        """
        payload = {"v": _VERSION, **{key: value for key, value in asdict(state).items() if value}}
        if state.inner is not None:
            payload["inner"] = state.inner
        token = self._keys.encrypt(encode(payload)).decode("ascii").rstrip("=")
        if len(token) > MAX_TOKEN_CHARS:
            raise ValueError("its requestState is too long")
        return token

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
            payload: Json = decode(self._keys.decrypt(_canonical(token)))
        except (InvalidToken, ValueError) as error:
            raise refused("not a token of ours") from error
        if not isinstance(payload, dict) or payload.pop("v", None) != _VERSION:
            raise refused("another version")
        try:
            return RequestState(**payload)
        except TypeError as error:
            raise refused("not a request state") from error


def refused(reason: str) -> ProtocolError:
    """The one thing that a client is told about a request state that is not accepted."""
    return ProtocolError(codes.INVALID_PARAMS, "Invalid or expired request state", reason=reason)


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


def _canonical(token: str) -> bytes:
    """A token as it left the gateway, with the padding that Fernet wants; any other spelling is a ValueError.

    A base64 decoder ignores what follows the padding, and the unused bits of the last character: without this,
    `token + "=-TAMPERED"` would be accepted for two lengths in three.
    """
    if len(token) > MAX_TOKEN_CHARS or _ALPHABET.fullmatch(token) is None:
        raise ValueError("not base64url")
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except binascii.Error as error:
        raise ValueError("not base64url") from error
    spelled = base64.urlsafe_b64encode(raw)
    if spelled.rstrip(b"=") != token.encode():
        raise ValueError("not canonical")
    return spelled
