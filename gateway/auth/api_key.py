"""API keys: `X-API-Key: KEY` or `Authorization: Bearer KEY`, known by their SHA-256 alone.

Where both are there, the first is the key: the other is for an upstream that gets the caller's own credential.
"""

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gateway.core.front_door import Headers
from gateway.core.principal import Principal
from gateway.errors import ProtocolError
from gateway.wire import codes

_AUTHORIZATION: Final = b"authorization"
_API_KEY: Final = b"x-api-key"
_SCHEME: Final = b"bearer "
_NOBODY: Final = bytes(32)


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A configured key.

    Args:
        name: whose it is; also the principal's id, so that a key can be replaced without losing what is open.
        sha256: the digest of the key, in hex.
        scopes: the upstreams that it opens; None: all.
    """

    name: str
    sha256: str
    scopes: frozenset[str] | None = None


class ApiKeys:
    """Recognizes principals by their keys."""

    def __init__(self, keys: Iterable[ApiKey]) -> None:
        self._principals = {
            bytes.fromhex(key.sha256): Principal(f"api_key:{key.name}", key.name, key.scopes) for key in keys
        }

    def authenticate(self, headers: Headers) -> Principal:
        """Find whose key a request carries.

        Raises:
            ProtocolError: 401, with a challenge; it does not say whether the key was missing or wrong in any other way
                than RFC 6750 does.
        """
        if headers.is_repeated(_AUTHORIZATION) or headers.is_repeated(_API_KEY):
            raise _unauthorized("Send one key only", 'Bearer error="invalid_request"')
        key = _key_of(headers)
        if key is None:
            raise _unauthorized("An API key is required: Authorization: Bearer KEY, or X-API-Key: KEY", "Bearer")
        principal = self._owner_of(key)
        if principal is None:
            raise _unauthorized("This API key is not known", 'Bearer error="invalid_token"')
        return principal

    def takes_authorization(self, headers: Headers) -> bool:
        """Whether `Authorization` is a key, which no upstream may get to see; some clients send theirs in both."""
        if headers.get(_API_KEY) is None:
            return True
        bearer = _bearer_of(headers)
        return bearer is not None and self._owner_of(bearer) is not None

    def _owner_of(self, key: bytes) -> Principal | None:
        if not key:  # its digest may be configured: made of a variable that was not set
            return None
        digest = hashlib.sha256(key).digest()
        # The digest is not the secret, but comparing it in constant time costs nothing and needs no argument.
        found = _NOBODY
        for known in self._principals:
            if hmac.compare_digest(known, digest):
                found = known
        return self._principals.get(found)


def _key_of(headers: Headers) -> bytes | None:
    key = headers.get(_API_KEY)
    return key if key is not None else _bearer_of(headers)


def _bearer_of(headers: Headers) -> bytes | None:
    authorization = headers.get(_AUTHORIZATION)
    if authorization is not None and authorization[: len(_SCHEME)].lower() == _SCHEME:
        return authorization[len(_SCHEME) :].strip()
    return None


def _unauthorized(message: str, challenge: str) -> ProtocolError:
    return ProtocolError(codes.INVALID_REQUEST, message, status=401, headers=(("www-authenticate", challenge),))
