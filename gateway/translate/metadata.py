"""What may stay in a `_meta` that crosses from one era to the other."""

from gateway.wire import meta
from gateway.wire.jsonrpc import Json, JsonObject


def without_protocol_keys(value: Json) -> JsonObject:
    """Copy a `_meta` without the keys that the protocol itself owns.

    Args:
        value: what stood at `_meta`; anything but an object counts as none.

    Returns:
        A new dict, perhaps empty: vendor keys, trace keys and `progressToken` as they were.
    """
    if not isinstance(value, dict):
        return {}
    return {key: kept for key, kept in value.items() if not key.startswith(meta.PREFIX)}
