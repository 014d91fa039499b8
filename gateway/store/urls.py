"""The addresses of shared stores, as operators write them."""

from typing import Final
from urllib.parse import urlsplit

SCHEMES: Final = ("redis", "rediss", "valkey", "valkeys")
"""Redis or Valkey, in the clear or over TLS."""

_TLS: Final = frozenset({"rediss", "valkeys"})


def is_shared(url: str) -> bool:
    """Whether a store is one that replicas share."""
    return urlsplit(url).scheme in SCHEMES


def to_redis_url(url: str) -> str:
    """The same address as the `redis` package spells it, which also speaks to Valkey."""
    parts = urlsplit(url)
    return parts._replace(scheme="rediss" if parts.scheme in _TLS else "redis").geturl()
