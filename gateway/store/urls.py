"""The addresses of shared stores, as operators write them."""

from typing import Final
from urllib.parse import urlsplit

SCHEMES: Final = ("redis", "rediss", "valkey", "valkeys")
"""Redis or Valkey, in the clear or over TLS."""

TLS_SCHEMES: Final = frozenset({"rediss", "valkeys"})


def to_redis_url(url: str) -> str:
    """The same address as the `redis` package spells it, which also speaks to Valkey."""
    parts = urlsplit(url)
    return parts._replace(scheme="rediss" if parts.scheme in TLS_SCHEMES else "redis").geturl()
