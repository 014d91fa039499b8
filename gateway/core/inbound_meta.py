"""The shape of a request's `_meta` (2026-07-28, basic/index, "_meta", and the schema's RequestMetaObject).

Known members must have the shape that the schema gives them; unknown ones pass, since capabilities are an open set.
"""

from typing import Final

from gateway.core.inbound_request import invalid_params
from gateway.wire import meta as keys
from gateway.wire.jsonrpc import Json, JsonObject, is_request_id

_KNOWN_KEYS: Final = frozenset(
    {
        *(keys.PROTOCOL_VERSION, keys.CLIENT_CAPABILITIES, keys.CLIENT_INFO, keys.LOG_LEVEL, keys.PROGRESS_TOKEN),
        *keys.TRACE_KEYS,
    }
)
_CAPABILITY_OBJECTS: Final[dict[str, tuple[str, ...]]] = {
    "roots": (),
    "sampling": ("context", "tools"),
    "elicitation": ("form", "url"),
}
"""Capabilities that are objects, each with its members that are."""

_CAPABILITY_MAPS: Final = frozenset({"experimental", "extensions"})
"""Capabilities that map names to objects."""

_INFO_REQUIRED: Final = ("name", "version")
_INFO_OPTIONAL: Final = ("title", "description", "websiteUrl")
_MAX_KEY_SHOWN = 64


def meta_fault(params: JsonObject) -> str | None:
    """Rung 8: what keeps a request's `_meta` from being read; None: it has a version string and valid keys."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return "params._meta must be an object" if "_meta" in params else "params._meta is missing"
    for key in meta:
        if key not in _KNOWN_KEYS and not keys.is_key(key):
            return f"params._meta has a key that is not [prefix/]name: {key[:_MAX_KEY_SHOWN]}"
    version = meta.get(keys.PROTOCOL_VERSION)
    if not isinstance(version, str):
        return f"params._meta must have {keys.PROTOCOL_VERSION}, a string"
    return None


def check_meta(meta: JsonObject) -> None:
    """Rung 10: capabilities (required), client info, log level and progress token (optional).

    Raises:
        ProtocolError: -32602 naming the member.
    """
    _check_capabilities(meta)
    if keys.CLIENT_INFO in meta:
        _check_client_info(meta[keys.CLIENT_INFO])
    if keys.LOG_LEVEL in meta:
        level = meta[keys.LOG_LEVEL]
        if not isinstance(level, str) or level not in keys.LOG_RANK:
            raise invalid_params(f"{keys.LOG_LEVEL} must be one of {', '.join(keys.LOG_LEVELS)}")
    if keys.PROGRESS_TOKEN in meta and not is_request_id(meta[keys.PROGRESS_TOKEN]):
        raise invalid_params("params._meta.progressToken must be a string of at most 256 bytes or a 64-bit integer")


def _check_capabilities(meta: JsonObject) -> None:
    capabilities = meta.get(keys.CLIENT_CAPABILITIES)
    if not isinstance(capabilities, dict):
        raise invalid_params(f"params._meta must have {keys.CLIENT_CAPABILITIES}, an object; {{}} declares none")
    for name, value in capabilities.items():
        if name in _CAPABILITY_OBJECTS:
            _check_object(name, value, _CAPABILITY_OBJECTS[name])
        elif name in _CAPABILITY_MAPS:
            _check_object(name, value, value if isinstance(value, dict) else ())


def _check_object(name: str, value: Json, members: tuple[str, ...] | JsonObject) -> None:
    if not isinstance(value, dict):
        raise invalid_params(f"{keys.CLIENT_CAPABILITIES}.{name} must be an object")
    for member in members:
        if member in value and not isinstance(value[member], dict):
            raise invalid_params(f"{keys.CLIENT_CAPABILITIES}.{name}.{member[:_MAX_KEY_SHOWN]} must be an object")


def _check_client_info(info: Json) -> None:
    if not isinstance(info, dict):
        raise invalid_params(f"{keys.CLIENT_INFO} must be an object with name and version")
    for member in _INFO_REQUIRED:
        if not isinstance(info.get(member), str):
            raise invalid_params(f"{keys.CLIENT_INFO}.{member} must be a string")
    for member in _INFO_OPTIONAL:
        if member in info and not isinstance(info[member], str):
            raise invalid_params(f"{keys.CLIENT_INFO}.{member} must be a string")
    if "icons" in info and not _is_icons(info["icons"]):
        raise invalid_params(f"{keys.CLIENT_INFO}.icons must be a list of objects, each with src, a string")


def _is_icons(icons: Json) -> bool:
    return isinstance(icons, list) and all(isinstance(i, dict) and isinstance(i.get("src"), str) for i in icons)
