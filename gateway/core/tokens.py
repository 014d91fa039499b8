"""Sealed JSON that a client carries for the gateway: encrypted, authenticated, and spelled in one way only."""

import base64
import binascii
import re
from typing import Final

from cryptography.fernet import InvalidToken, MultiFernet

from gateway.wire.jsonrpc import Json, JsonObject, decode, encode

MAX_TOKEN_CHARS: Final = 1_048_576
"""Ample for a modern upstream's own state, which travels inside."""

_ALPHABET: Final = re.compile(r"[A-Za-z0-9_-]+")


class Sealer:
    """Seals objects with rotating keys.

    Args:
        keys: the newest seals, every one opens.
    """

    def __init__(self, keys: MultiFernet) -> None:
        self._keys = keys

    def seal(self, payload: JsonObject) -> str:
        """A token for the client to bring back.

        Raises:
            ValueError: it would be too long, or the payload is not JSON.
        """
        token = self._keys.encrypt(encode(payload)).decode("ascii").rstrip("=")
        if len(token) > MAX_TOKEN_CHARS:
            raise ValueError("too long")
        return token

    def open(self, token: str) -> JsonObject:
        """The object in a token.

        Raises:
            ValueError: it is not a token of ours, or not as it left the gateway.
        """
        try:
            payload: Json = decode(self._keys.decrypt(_canonical(token)))
        except InvalidToken as error:
            raise ValueError("not a token of ours") from error
        if not isinstance(payload, dict):
            raise ValueError("not an object")
        return payload

    def seal_bytes(self, data: bytes) -> bytes:
        """Seal what the gateway keeps elsewhere for itself; of any length."""
        return self._keys.encrypt(data)

    def open_bytes(self, sealed: bytes) -> bytes:
        """What was sealed.

        Raises:
            ValueError: it is not a seal of ours.
        """
        try:
            return self._keys.decrypt(sealed)
        except InvalidToken as error:
            raise ValueError("not sealed by us") from error


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
