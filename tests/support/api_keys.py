"""Authentication by key, as configuration."""

from hashlib import sha256
from typing import Any


def keys(**named: str) -> dict[str, Any]:
    """The `auth` section for these users and their keys, as part of the settings."""
    entries = [{"name": name, "sha256": sha256(key.encode()).hexdigest()} for name, key in named.items()]
    return {"auth": {"type": "api_key", "keys": entries}}
