"""URLs, hosts, origins and paths, checked and brought into the one form that is compared later."""

import ipaddress
import re
from typing import Annotated, Final
from urllib.parse import SplitResult, urlsplit

from pydantic import BeforeValidator, PlainSerializer

from gateway.config.values import wrong

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_HOST_NAME: Final = re.compile(r"(?!.*\.\.)[a-z0-9_](?:[a-z0-9_.-]{0,252}[a-z0-9_])?")
_PATH: Final = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
_RESERVED: Final = frozenset({"healthz", "readyz", "metrics"})


def parse_url(value: object) -> str:
    """Check the URL of an upstream.

    Anything that could hide a credential (user information, a query) is kept out of the error.
    """
    url = _text(value)
    parts = _split(url)
    if parts is None or parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        raise wrong(
            "not a URL",
            "http:// or https://, a host and a path, such as https://docs.example.com/mcp",
            found=_veiled(url),
        )
    if "@" in parts.netloc:
        raise wrong(
            "holds a user name or password",
            "a URL without one",
            found="",
            remedy="write an Authorization header under headers",
        )
    if "#" in url:
        raise wrong("holds a fragment", "a URL without #", found=_veiled(url), remedy="leave out what follows #")
    return url


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _split(url: str) -> SplitResult | None:
    """Parse a URL; None if its form, host or port cannot be meant."""
    if not url.isprintable() or " " in url:
        return None
    try:
        parts = urlsplit(url)
        return parts if parts.port != 0 else None
    except ValueError:
        return None


def _veiled(url: str) -> str:
    before, at, after = url.rpartition("@")
    shown = f"{before.partition('//')[0]}//***@{after}" if at else url
    return f'"{shown.partition("?")[0]}?***"' if "?" in shown else f'"{shown}"'


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only mean this machine."""
    name = host.strip("[]").lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_every_address(host: str) -> bool:
    """Whether binding to `host` means binding to every address of the machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def parse_bind_host(value: object) -> str:
    """Check an address or name to listen on."""
    host = _text(value).lower()
    if _is_address(host) or _HOST_NAME.fullmatch(host):
        return host
    raise wrong("not a host", "an address or a host name, without a port or brackets, such as 127.0.0.1")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def parse_origin(value: object) -> str:
    """Check an allowed origin, and write it as browsers do: lower case, no default port."""
    origin = _text(value)
    if origin == "null":
        return origin
    parts = _split(origin)
    if parts is None or not parts.scheme or not parts.hostname or "@" in parts.netloc or "*" in origin:
        raise wrong(
            "not an origin",
            'scheme and host, such as https://app.example.com, or "null" in quotes',
            remedy="name each origin",
        )
    port = "" if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    canonical = f"{parts.scheme}://{_bracketed(parts.hostname)}{port}"
    if parts.path or parts.query or "#" in origin:
        raise wrong("an origin has no path", "scheme and host", remedy=f"write {canonical}")
    return canonical


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def parse_allowed_host(value: object) -> str:
    """Check an allowed value of the Host header: a host, with or without a port."""
    host = _text(value)
    parts = _split(f"//{host}") if "@" not in host else None
    name = parts.hostname if parts else None
    if parts is None or not name or host != parts.netloc or not (_is_address(name) or _HOST_NAME.fullmatch(name)):
        raise wrong("not a host", "a host with or without a port, such as mcp.example.com", remedy="name each host")
    return _bracketed(name) if parts.port is None else f"{_bracketed(name)}:{parts.port}"


def parse_path(value: object) -> str:
    """Check the path that the endpoint is served at."""
    path = _text(value)
    if _PATH.fullmatch(path) is None or path.split("/")[1] in _RESERVED:
        raise wrong("not a path for the endpoint", "a path such as /mcp: no slash at its end, none of the health paths")
    return path


Url = Annotated[
    str,
    BeforeValidator(parse_url),
    PlainSerializer(lambda url: _veiled(url).strip('"'), return_type=str, when_used="json"),
]
BindHost = Annotated[str, BeforeValidator(parse_bind_host)]
Origin = Annotated[str, BeforeValidator(parse_origin)]
AllowedHost = Annotated[str, BeforeValidator(parse_allowed_host)]
EndpointPath = Annotated[str, BeforeValidator(parse_path)]
