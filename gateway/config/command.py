"""How a stdio server is started, checked; what may be a secret of it is never shown."""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Final

from pydantic import BeforeValidator, PlainSerializer

from gateway.config.secret import SHOWN, Hidden, Secret
from gateway.config.values import wrong

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_SECRET_NAME: Final = re.compile(r"token|secret|passw|key|auth|credential|bearer|header", re.IGNORECASE)
_ASSIGNMENT: Final = re.compile(r"(?P<name>-*[A-Za-z][\w.-]*)(?P<sign>\s*[=:]\s*)(?P<value>\S.*)", re.DOTALL)


def parse_program(value: object) -> object:
    """Check a program: a name or a path; null is none."""
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise wrong("not a program", "a name or a path, such as uvx", remedy="write command: uvx")
    return value


def parse_argument(value: object) -> object:
    """Check an argument of a program."""
    if not isinstance(value, str) or "\0" in value:
        raise wrong("not text", "text, in quotes", found="", remedy="put the value in quotes")
    return value


def parse_folder(value: object) -> object:
    """Check a folder; null is none."""
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise wrong("not a folder", "a path, such as /srv/docs", remedy="leave it out")
    return value


def parse_variable_name(value: object) -> object:
    """Check the name of an environment variable."""
    if not isinstance(value, str) or _VARIABLE.fullmatch(value) is None:
        raise wrong("not the name of a variable", "letters, digits and _, such as API_TOKEN", remedy="mend the name")
    return value


def parse_variable_value(value: object) -> object:
    """Check what an environment variable holds; an empty one is empty text."""
    if value is None:
        return ""
    if not isinstance(value, str | Secret) or "\0" in str(value):
        raise wrong("not text", "text, in quotes", found="", remedy="put the value in quotes")
    return value


def shown_arguments(arguments: Iterable[str]) -> list[str]:
    """Arguments without what a name gives away as a secret: `--token X`, `--api-key=X`, `Authorization: X`."""
    shown: list[str] = []
    is_secret = False
    for argument in arguments:
        match = _ASSIGNMENT.fullmatch(argument)
        if is_secret and not argument.startswith("-"):
            shown.append(SHOWN)
        elif match and _SECRET_NAME.search(match["name"]):
            shown.append(f"{match['name']}{match['sign']}{SHOWN}")
        else:
            shown.append(argument)
        is_secret = argument.startswith("-") and match is None and _SECRET_NAME.search(argument) is not None
    return shown


def secrets_in(arguments: Sequence[str]) -> list[str]:
    """What `shown_arguments` does not show."""
    hidden: list[str] = []
    for argument, shown in zip(arguments, shown_arguments(arguments), strict=True):
        if shown != argument:
            hidden.append(argument[len(shown) - len(SHOWN) :])
    return hidden


Program = Annotated[str | None, BeforeValidator(parse_program)]
Argument = Annotated[str, BeforeValidator(parse_argument)]
Folder = Annotated[str | None, BeforeValidator(parse_folder)]
VariableName = Annotated[str, BeforeValidator(parse_variable_name)]
VariableValue = Annotated[Secret, BeforeValidator(parse_variable_value), Hidden]
ShownArguments = PlainSerializer(shown_arguments, return_type=list[str], when_used="json")
