"""Durations, sizes, counts and lists as people write them.

A parser takes what stands in the file and returns what the program wants, or raises `wrong`.
"""

import re
from typing import Annotated, Final, LiteralString

from pydantic import BeforeValidator, Field, PlainSerializer
from pydantic_core import PydanticCustomError

_NUMBER: Final = r"([0-9]{1,15}(?:\.[0-9]{1,15})?)"
_DURATION: Final = re.compile(_NUMBER + r"\s*(ms|s|m|h)?")
_SIZE: Final = re.compile(_NUMBER + r"\s*(?:([kmg]i?)?b)?", re.IGNORECASE)
_WHOLE: Final = re.compile(r"-?[0-9]{1,15}")
_SEPARATORS: Final = re.compile(r"[\s,]+")
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_BYTES: Final = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "ki": 1024, "mi": 1024**2, "gi": 1024**3}


def wrong(
    what: LiteralString,
    allowed: str = "",
    *,
    found: str | None = None,
    at: tuple[str | int, ...] = (),
    remedy: str = "",
) -> PydanticCustomError:
    """The error of a parser.

    Args:
        what: what is wrong with the value.
        allowed: what may stand there.
        found: what to show in place of the value; "" shows nothing, which is how a secret is kept.
        at: the path below the checked section to the key that is meant.
        remedy: what to do; by default, to write the key with its default value.
    """
    return PydanticCustomError("config", what, {"allowed": allowed, "found": found, "at": at, "remedy": remedy})


def all_wrong(errors: list[PydanticCustomError]) -> PydanticCustomError:
    """Several errors of one check, as one that can be raised."""
    return PydanticCustomError("config_many", "several faults", {"errors": errors})


def split_texts(value: object) -> object:
    """Take a list as it is; make one of a text that separates its items by commas or space, and of nothing."""
    if value is None:
        return []
    return [text for text in _SEPARATORS.split(value) if text] if isinstance(value, str) else value


def parse_duration(value: object) -> float:
    """Read a duration: a number with ms, s, m or h; a plain number is seconds."""
    match = _DURATION.fullmatch(_written(value))
    if match is None:
        raise wrong("not a duration", "a number with ms, s, m or h, such as 60s")
    return float(match[1]) * _SECONDS[match[2] or "s"]


def duration_text(seconds: float) -> str:
    """Write a duration in the largest unit that leaves a whole number; one minute is 60s, as people write it."""
    for unit, size in _SECONDS.items():
        count = round(seconds / size, 9)
        if count >= (2 if size > 1 else 1) and count == int(count):
            return f"{int(count)}{unit}"
    return f"{seconds:g}s"


def parse_size(value: object) -> int:
    """Read a size in bytes: a number with B, KB, MB, GB, KiB, MiB or GiB; a plain number is bytes."""
    match = _SIZE.fullmatch(_written(value))
    size = float(match[1]) * _BYTES[(match[2] or "").lower()] if match else 0.5
    if not size.is_integer():
        raise wrong("not a size", "a number of bytes, or one with KB, MB, GB, KiB, MiB or GiB, such as 4MiB")
    return int(size)


def size_text(size: int) -> str:
    """Write a size in the largest binary unit that leaves a whole number."""
    for unit in ("gi", "mi", "ki"):
        if size and size % _BYTES[unit] == 0:
            return f"{size // _BYTES[unit]}{unit.capitalize()}B"
    return str(size)


def parse_whole(value: object) -> int:
    """Read a whole number."""
    text = _written(value)
    if _WHOLE.fullmatch(text) is None:
        raise wrong("not a whole number", "digits only")
    return int(text)


def _written(value: object) -> str:
    """The text of a scalar; "" for what is none. True and False are no numbers, though Python says so."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value).strip()
    return ""


Duration = Annotated[
    float, BeforeValidator(parse_duration), PlainSerializer(duration_text, return_type=str, when_used="json")
]
PositiveDuration = Annotated[Duration, Field(gt=0)]
Size = Annotated[
    int, BeforeValidator(parse_size), PlainSerializer(size_text, return_type=str, when_used="json"), Field(gt=0)
]
Count = Annotated[int, BeforeValidator(parse_whole), Field(ge=1)]
Port = Annotated[int, BeforeValidator(parse_whole), Field(ge=0, le=65535)]
