"""What came on a pipe: whether it is a message, and which request it says that it belongs to."""

from typing import Final

from gateway.wire import meta, methods
from gateway.wire.jsonrpc import Json, JsonObject, decode

_BEGINNINGS: Final = (b"{", b"[", b"\xef\xbb\xbf")


def begins_as_message(data: bytes) -> bool:
    """Whether a line begins as messages do, with or without a byte order mark: others cost nothing in a flood."""
    return data.lstrip().startswith(_BEGINNINGS)


def is_message(value: Json) -> bool:
    """Whether a JSON value is a message; servers write log records to stdout that are JSON too."""
    if not isinstance(value, dict):
        return False
    return isinstance(value.get("method"), str) or ("id" in value and not value.keys().isdisjoint(("result", "error")))


def read(data: bytes) -> tuple[Json, bytes]:
    """Read a line: its JSON value, and the bytes that it was read of; (None, data) for what is none."""
    try:
        return decode(data), data
    except ValueError:
        return mend(data)


def mend(data: bytes) -> tuple[Json, bytes]:
    """Read a message whose text is not all UTF-8, as if it were; (None, data) for anything else."""
    if not data.lstrip().startswith(b"{"):
        return None, data
    mended = data.decode("utf-8", "replace").encode()
    try:
        return decode(mended), mended
    except ValueError:
        return None, data


def request_named_by(message: JsonObject) -> str | None:
    """The id of the request that a notification says it belongs to: by token, by subscription, or by name.

    A `notifications/cancelled` may name a request of either side.
    """
    params = message.get("params")
    if "id" in message or not isinstance(params, dict):
        return None
    about = params.get("_meta")
    named: Json = None
    if message["method"] == methods.PROGRESS:
        named = str(params.get(meta.PROGRESS_TOKEN))
    elif isinstance(about, dict):
        named = about.get(meta.SUBSCRIPTION_ID)
    if named is None and message["method"] == methods.CANCELLED:
        named = params.get("requestId")
    return named if isinstance(named, str) else None
