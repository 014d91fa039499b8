"""Headers, state keys and key digests: values that are checked but never shown."""

import base64
import re
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, SecretStr

from gateway.config.values import all_wrong, split_texts, wrong

SHOWN: Final = "***"

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\x20-\x7e\t]*")
_FERNET_KEY: Final = re.compile(r"[A-Za-z0-9_-]{43}=?")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")

_OWNED: Final = re.compile(
    r"accept(-encoding)?|connection|content-(encoding|length|type)|expect|host|http2-settings|keep-alive|last-event-id"
    r"|mcp-(method|name|protocol-version|session-id|param-.*)|proxy-(authenticate|authorization|connection)|te|trailer"
    r"|transfer-encoding|upgrade",
    re.IGNORECASE,
)
"""Headers that belong to one connection, or that the protocol decides."""


class Secret(SecretStr):
    """Text that prints as `***`; `get_secret_value()` tells it."""

    def _display(self) -> str:
        return SHOWN


def _parse_secret(value: object) -> object:
    if isinstance(value, str | Secret):
        return value
    raise wrong("not text", "text, in quotes", found="", remedy="put the value in quotes")


def is_owned_header(name: str) -> bool:
    """Whether a header is none of the operator's business."""
    return _OWNED.fullmatch(name) is not None


def parse_header_name(value: object) -> str:
    """Check the name of a header that goes to an upstream with every request."""
    name = value if isinstance(value, str) else ""
    if _TOKEN.fullmatch(name) is None:
        raise wrong("not a header name", "letters, digits and -, such as X-Team", remedy="mend the name")
    if is_owned_header(name):
        raise wrong("a header that the gateway sets itself", "any other header", found="", remedy="leave it out")
    return name


def parse_header_value(value: object) -> object:
    """Check a header's value. Space around it is dropped, since HTTP does not count it as part of the value."""
    if isinstance(value, str):
        value = value.strip()
        if _VALUE.fullmatch(value) is None:
            remedy = "remove line breaks and accents"
            raise wrong("not a header value", "printable ASCII on one line", found=SHOWN, remedy=remedy)
    return _parse_secret(value)


def _parse_headers(headers: Mapping[str, Secret]) -> Mapping[str, Secret]:
    names = list(headers)
    again = (name for number, name in enumerate(names) if name.lower() in map(str.lower, names[:number]))
    errors = [
        wrong("written twice, since case does not count", found="", at=(name,), remedy="keep one") for name in again
    ]
    if errors:
        raise all_wrong(errors)
    return headers


def parse_digest(value: object) -> object:
    """Check the SHA-256 of an API key, in hexadecimal digits."""
    digest = value.strip().lower() if isinstance(value, str) else ""
    if _SHA256.fullmatch(digest) is None:
        remedy = "write what this prints: printf %s KEY | sha256sum"
        raise wrong("not a SHA-256 digest", "64 hexadecimal digits", found=SHOWN, remedy=remedy)
    return digest


def parse_state_keys(value: object) -> list[str]:
    """Read the keys that seal what clients carry, newest first.

    They stand in one text, separated by commas or space, or in a list; empty ones are skipped, so that the variable of
    a retired key may be unset.
    """
    texts = split_texts(value)
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise wrong("not keys", "one text, or a list of texts", found="", remedy="run era-gateway keygen")
    keys = [text.strip() for text in texts if text.strip()]
    bad = [number for number, key in enumerate(keys, 1) if not _is_fernet_key(key)]
    if bad:
        which = f"{SHOWN} (key {', '.join(map(str, bad))} of {len(keys)})"
        raise wrong("not a state key", "32 bytes in URL-safe Base64", found=which, remedy="run era-gateway keygen")
    return [f"{key.rstrip('=')}=" for key in keys]


def _is_fernet_key(key: str) -> bool:
    # The pattern comes first: Python's decoder drops characters that it does not know.
    return _FERNET_KEY.fullmatch(key) is not None and len(base64.urlsafe_b64decode(f"{key.rstrip('=')}=")) == 32


Hidden = PlainSerializer(lambda _: SHOWN, return_type=str, when_used="json")
HeaderName = Annotated[str, BeforeValidator(parse_header_name)]
HeaderValue = Annotated[Secret, BeforeValidator(parse_header_value), Hidden]
Headers = Annotated[Mapping[HeaderName, HeaderValue], AfterValidator(_parse_headers)]
Digest = Annotated[Secret, BeforeValidator(parse_digest), Hidden]
StateKeys = Annotated[tuple[Annotated[Secret, Hidden], ...], BeforeValidator(parse_state_keys)]
