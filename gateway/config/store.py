"""Where suspended calls are known: the process's own memory, or a store that replicas share."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

from pydantic import BeforeValidator, PlainSerializer

from gateway.config.secret import SHOWN, Secret
from gateway.config.values import wrong
from gateway.store.urls import SCHEMES, TLS_SCHEMES

MEMORY: Final = Secret("memory://")
_ALLOWED: Final = "memory://, redis://HOST:6379/0, rediss:// (TLS), valkey:// or valkeys://"
_FILES: Final = frozenset({"ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile"})
_CHOICES: Final = {"ssl_cert_reqs": ("required", "optional", "none"), "ssl_check_hostname": ("true", "false")}
_OPTIONS: Final = (*sorted(_FILES), *_CHOICES, "ssl_password")
"""Not the client's timeouts and retries: the gateway relies on its own, so that no command is sent twice."""

_NAMESPACE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


def parse_store(value: object) -> object:
    """Check the URL of a store. It may hold a password, so no problem shows it."""
    if isinstance(value, Secret):
        return value
    if value == MEMORY.get_secret_value():
        return MEMORY
    if not isinstance(value, str):
        raise wrong("not a store", _ALLOWED, found="")
    try:
        parts = urlsplit(value)
        is_complete = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_complete = False
    if not is_complete:
        raise wrong("not a store", _ALLOWED, found="", remedy="write redis://HOST:6379/0")
    if re.fullmatch(r"/?|/\d{1,4}", parts.path) is None:
        raise wrong("not the number of a database", "a number after the last slash, such as /0", found="")
    _check_options(parts)
    if find_spec("redis") is None:
        remedy = 'run pip install "era-gateway[redis]"'
        raise wrong("a store whose client is not installed", "memory://", found="", remedy=remedy)
    return Secret(value)


def _check_options(parts: SplitResult) -> None:
    """What the client would only stumble over when it connects, or would obey to our harm."""
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if parts.scheme not in TLS_SCHEMES:
            raise wrong("options of TLS without TLS", "rediss:// or valkeys:// with options, or none", found="")
        if name not in _OPTIONS:
            raise wrong("an unknown option of the store", ", ".join(_OPTIONS), found="")
        if name in _FILES and not Path(value).exists():
            raise wrong("a file for the store's TLS that does not exist", "the path of a file", found=value)
        if value not in _CHOICES.get(name, (value,)):
            raise wrong("not a value of the store's option", f"{name}={'|'.join(_CHOICES[name])}", found="")


def parse_namespace(value: object) -> object:
    """Check the beginning of every key in the store."""
    if not isinstance(value, str) or _NAMESPACE.fullmatch(value) is None:
        raise wrong("not a namespace", "1 to 64 letters, digits, dots, dashes and underscores")
    return value


def _show(url: Secret) -> str:
    """The URL without what is secret about it."""
    parts = urlsplit(url.get_secret_value())
    if "@" not in parts.netloc and not parts.query:
        return url.get_secret_value()
    host = parts.netloc.rpartition("@")[2]
    user = f"{SHOWN}@" if "@" in parts.netloc else ""
    return parts._replace(netloc=user + host, query=SHOWN if parts.query else "").geturl()


StoreUrl = Annotated[Secret, BeforeValidator(parse_store), PlainSerializer(_show, return_type=str, when_used="json")]
Namespace = Annotated[str, BeforeValidator(parse_namespace)]
