"""Environment variables in place of what a client's file has written out, or asks its user for.

`${env:NAME}`, `${NAME}` and `${input:ID}` become references of ours; so does what looks like a secret, for a secret
written out once would be written out again. Rather one variable too many than a secret in the open.
"""

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

_PLACEHOLDER: Final = re.compile(r"\$\$\{|\$\{(?P<body>[^{}]*)\}|\$\{")
_NAMED: Final = re.compile(r"(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-.*)?")
_BARE: Final = re.compile(r"\$(?P<name>[A-Z_][A-Z0-9_]*)")
_FIXED: Final = {"userHome": "${HOME}", "pathSeparator": "/", "/": "/"}
_FOLDER: Final = re.compile(r"workspace(?:Folder|Root)(?::.*)?")
_EDITORS_OWN: Final = re.compile(
    r"(?:workspaceFolderBasename|(?:relative)?[fF]ile\w*|cwd|execPath|lineNumber|selectedText|defaultBuildTask|__dirname)"
)
_EVERYWHERE: Final = frozenset({"HOME", "PATH", "USER"})

_SECRET_NAME: Final = re.compile(
    r"token|secret|passw|pwd|key|auth|credential|bearer|header|cookie|session|private|webhook|dsn|(?:^|_)pat(?:$|_)|\bsig",
    re.IGNORECASE,
)
_HARMLESS: Final = re.compile(r"|true|false|yes|no|on|off|none|null", re.IGNORECASE)
_COUNT_NAME: Final = re.compile(r"tokens|max|min|limit|count|size|length|timeout|ttl|port", re.IGNORECASE)
_SCHEME: Final = re.compile(r"(?:Bearer|Basic|Token|ApiKey)\s+", re.IGNORECASE)
_PATH: Final = re.compile(r"[/~]|\.{1,2}[/\\]|[A-Za-z]:[/\\]|file:|\$\{[^}]*\}[/\\]")
_RUN: Final = re.compile(r"[A-Za-z0-9_+~.-]{12,}={0,2}")
_WITH_PASSWORD: Final = re.compile(r"(?P<user>[a-z][a-z0-9+.-]*://[^/\s:@]*:)(?P<password>[^/\s@]+)@", re.IGNORECASE)
_RANDOM: Final = re.compile(
    r"(?:(?:sk|pk|rk|hf|fc|ntn|npm|xox[a-z]|gh[a-z]|glpat|github_pat|tvly|pplx|figd|sbp|shpat|lin_api|dop_v1)[_-][\w.-]{8,}"
    r"|(?:AKIA|ASIA|AIza|ya29|eyJ|SG\.)[\w.-]{8,}=*"
    r"|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
    r"|[0-9a-f]{32,}"
    r"|(?=(?:\D*\d){4})[a-z0-9]{24,}"
    r"|(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[\w+~.-]{20,}=*)"
)


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that has to be set where the gateway runs.

    Args:
        name: its name.
        places: the keys of the written file that refer to it.
        meaning: what the client's file says of it, or what it was there.
    """

    name: str
    places: tuple[str, ...]
    meaning: str


@dataclass(slots=True)
class _Use:
    meaning: str
    places: list[str] = field(default_factory=list)


class Unfillable(Exception):  # noqa: N818 -- what a placeholder is
    """A placeholder that has no meaning outside of the client's editor."""


class Variables:
    """The variables that one written file refers to; each name stands for one thing.

    Args:
        inputs: what the client's file says of each `${input:ID}`.
        taken: names that the file itself refers to; nothing else may be called so.
    """

    def __init__(self, inputs: Mapping[str, str], taken: Iterable[str]) -> None:
        self._inputs = inputs
        self._names: dict[Hashable, str] = {("variable", name): name for name in taken}
        self._uses: dict[str, _Use] = {}

    def needed(self) -> tuple[Variable, ...]:
        """What has to be set, in the order of the file."""
        uses = ((name, use) for name, use in self._uses.items() if name not in _EVERYWHERE)
        return tuple(Variable(name, tuple(dict.fromkeys(use.places)), use.meaning) for name, use in uses)

    def convert(self, text: str, place: str, wanted: str, *, is_secret: bool = False, owner: str = "") -> str:
        """A value as our file has it.

        Args:
            text: as the client's file has it.
            place: the key that it is written under.
            wanted: the name of a variable that replaces a secret.
            is_secret: whether its name says so.
            owner: the upstream, to tell variables of one name apart.

        Raises:
            Unfillable: it holds a placeholder that nobody but the editor can fill in.
        """
        if bare := _BARE.fullmatch(text):
            return self._refer(("variable", bare["name"]), (bare["name"],), place, "")
        names = tuple(name for name in (wanted, f"{owner}_{wanted}") if name.strip("_"))
        if not _has_placeholder(text) and (
            _WITH_PASSWORD.search(text) or (is_secret and not _HARMLESS.fullmatch(text))
        ):
            scheme = match[0] if (match := _SCHEME.match(text)) else ""
            return scheme + self._secret(text.removeprefix(scheme), names, place)
        if _PATH.match(text):
            names = ()
        parts, end = [], 0
        for match in _PLACEHOLDER.finditer(text):
            parts += [self._literal(text[end : match.start()], names, place), self._fill(match, place)]
            end = match.end()
        return "".join([*parts, self._literal(text[end:], names, place)])

    def _literal(self, text: str, names: tuple[str, ...], place: str) -> str:
        """Text without what looks like a secret; all of it, if it is to have no names."""
        if not names:
            return text
        text = _WITH_PASSWORD.sub(lambda url: f"{url['user']}{self._secret(url['password'], names, place)}@", text)
        return _RUN.sub(lambda run: self._secret(run[0], names, place) if is_random(run[0]) else run[0], text)

    def _secret(self, value: str, names: tuple[str, ...], place: str) -> str:
        return self._refer(("secret", value), tuple(map(variable_name, names)), place, "written out in the file")

    def _fill(self, match: re.Match[str], place: str) -> str:
        body = match["body"]
        if body is None:
            if match[0] == "$${":
                raise Unfillable(match[0])
            return "$${"  # not closed, so none
        kind, _, rest = body.partition(":")
        if kind == "input" and rest:
            return self._refer(("input", rest), (variable_name(rest),), place, self._inputs.get(rest, ""))
        if body in _FIXED:
            return _FIXED[body]
        if _FOLDER.fullmatch(body):
            return self._refer(("folder",), ("WORKSPACE_FOLDER",), place, "the folder of the project")
        named = _NAMED.fullmatch(body)
        if named is None or _EDITORS_OWN.fullmatch(body):
            raise Unfillable(match[0])
        if named["default"]:
            return f"${{{named['name']}{named['default']}}}"
        return self._refer(("variable", named["name"]), (named["name"],), place, "")

    def _refer(self, origin: Hashable, names: tuple[str, ...], place: str, meaning: str) -> str:
        name = self._names.get(origin) or self._free(names)
        self._names[origin] = name
        self._uses.setdefault(name, _Use(meaning)).places.append(place)
        return f"${{{name}}}"

    def _free(self, names: tuple[str, ...]) -> str:
        taken = set(self._names.values())
        numbered = (f"{names[-1]}_{number}" for number in range(2, len(taken) + 3))
        return next(name for name in (*names, *numbered) if name not in taken)


def _has_placeholder(text: str) -> bool:
    return any(match["body"] is not None or match[0] == "$${" for match in _PLACEHOLDER.finditer(text))


def is_named_secret(name: str, text: str) -> bool:
    """Whether a name gives away what it names as a secret; `MAX_TOKENS` of a number does not."""
    is_count = text.isdecimal() and _COUNT_NAME.search(name) is not None
    return _SECRET_NAME.search(name) is not None and not is_count


def is_random(text: str) -> bool:
    """Whether text looks as if a machine had made it up, as tokens do."""
    return _RANDOM.fullmatch(text) is not None


def variable_name(text: str) -> str:
    """A name for a variable, out of any text."""
    name = re.sub(r"[^A-Za-z0-9]+", "_", text.encode("ascii", "ignore").decode()).strip("_").upper()
    return f"V_{name}" if not name or name[0].isdigit() else name


def names_referred_to(text: str) -> set[str]:
    """The variables that a file refers to by name."""
    bodies = (match["body"] for match in _PLACEHOLDER.finditer(text) if match["body"])
    found = {match["name"] for body in bodies if (match := _NAMED.fullmatch(body))}
    return found | {match["name"] for match in re.finditer(rf'"{_BARE.pattern}"', text)} | _EVERYWHERE
