"""What becomes of a request state in bad hands: every kind of damage, by name."""

import base64
import random
from collections.abc import Callable
from typing import Final

from cryptography.fernet import Fernet, MultiFernet

from gateway.core.tokens import Sealer

OTHER_KEY: Final = "b3RoZXIgb3RoZXIgb3RoZXIgb3RoZXIgb3RoZXIgb3Q="

Damage = Callable[[str, random.Random], str]


def damages(key: str) -> dict[str, Damage]:
    """Every kind of damage; `key` is the gateway's own, for what a thief of it could not do without being noticed."""
    own, other = (Sealer(MultiFernet([Fernet(text)])) for text in (key, OTHER_KEY))
    return {
        "a bit flipped": _flip,
        "truncated": lambda token, dice: token[: dice.randrange(1, len(token))],
        "text appended": lambda token, _dice: token + "-TAMPERED",
        "text appended after the padding": lambda token, _dice: token + "=" * (-len(token) % 4 or 2) + "-TAMPERED",
        "padding appended": lambda token, _dice: token + "=",
        "stray bits in the last character": _stray,
        "halves swapped": lambda token, _dice: token[len(token) // 2 :] + token[: len(token) // 2],
        "empty": lambda _token, _dice: "",
        "100 KB": lambda token, _dice: (token * 500)[:100_000],
        "from another key": lambda token, _dice: other.seal(own.open(token)),
        "expired": lambda token, _dice: own.seal({**own.open(token), "expires_s": 1}),
        "of another handle": lambda token, _dice: own.seal({**own.open(token), "handle": "x" * 22}),
    }


def _flip(token: str, dice: random.Random) -> str:
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    raw[dice.randrange(len(raw))] ^= 1 << dice.randrange(8)
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _stray(token: str, dice: random.Random) -> str:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return token[:-1] + dice.choice(alphabet.replace(token[-1], ""))
