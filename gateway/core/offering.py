"""What of one upstream is offered: chosen by globs, and under which names and descriptions.

Globs are compared with the server's own names and URIs; case counts, and `*` stands for any text, slashes included.
What is not offered does not exist: it is in no list, and asking for it is answered as asking for anything unknown.
"""

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from gateway.core.merging import KEYS
from gateway.wire import methods
from gateway.wire.jsonrpc import Json, JsonObject

_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)(?:(//)([^/?#]*))?([^?#]*)(.*)", re.DOTALL)
_MOST_DECODINGS: Final = 3


class Patterns:
    """Chooses by globs.

    Args:
        include: one of these has to fit; none: everything does.
        exclude: and none of these.
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self._include = _compile(include) if include else None
        self._exclude = _compile(exclude) if exclude else None

    def __bool__(self) -> bool:
        """Whether there is any choice at all."""
        return self._include is not None or self._exclude is not None

    def admit(self, text: str) -> bool:
        """Whether a name is offered."""
        if self._exclude is not None and self._exclude.fullmatch(text) is not None:
            return False
        return self._include is None or self._include.fullmatch(text) is not None

    def admit_uri(self, uri: str) -> bool:
        """Whether a resource is offered: as its URI is written, and however a server may read it."""
        return not self or all(map(self.admit, readings(uri)))


def _compile(globs: Sequence[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{fnmatch.translate(glob)})" for glob in globs))


def readings(uri: str) -> set[str]:
    """A URI as it is written, and what servers may take it for: without escapes, dot segments and needless capitals.

    A server may take `file:///docs/%2e%2e/secret` for what it stands for: so must whoever decides about it. And where
    a URL has its host, other schemes have the first part of a path.
    """
    decoded = uri
    for _ in range(_MOST_DECODINGS):
        decoded = unquote(before := decoded)
        if decoded == before:
            break
    match = _URI.fullmatch(decoded.replace("\\", "/"))
    if match is None:
        return {uri, decoded}
    scheme, slashes, host, path, rest = match.groups(default="")
    as_url = f"{scheme.lower()}{slashes}{host.lower()}{_without_dots(path)}{rest}"
    as_path = f"{scheme.lower()}{slashes}{_without_dots(host + path)}{rest}"
    return {uri, as_url, as_path}


def _without_dots(path: str) -> str:
    """RFC 3986, 5.2.4."""
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment == "..":
            kept = kept[: max(len(kept) - 1, int(path.startswith("/")))]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/".join(kept)


@dataclass(frozen=True)
class Offer:
    """What of one upstream is offered.

    Args:
        tools: which tools.
        prompts: which prompts.
        resources: which resources and resource templates, by URI.
        rename: what a tool is called, by the server's own name for it.
        describe: how a tool is described, likewise.
    """

    tools: Patterns = field(default_factory=Patterns)
    prompts: Patterns = field(default_factory=Patterns)
    resources: Patterns = field(default_factory=Patterns)
    rename: Mapping[str, str] = field(default_factory=dict)
    describe: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything differs from what the server offers."""
        return bool(self.tools or self.prompts or self.resources or self.rename or self.describe)

    def tool_name(self, own: str) -> str | None:
        """What clients call a tool; None: it is not offered.

        One that is renamed to the name of another hides it: there would be no way to call it.
        """
        if not self.tools.admit(own):
            return None
        if own in self.rename:
            return self.rename[own]
        return None if self._renamed_to(own) is not None else own

    def own_tool_name(self, public: str) -> str | None:
        """What the server calls a tool; None: there is none of that name on offer."""
        renamed = self._renamed_to(public)
        if renamed is not None:
            return renamed
        return public if public not in self.rename and self.tools.admit(public) else None

    def _renamed_to(self, public: str) -> str | None:
        return next((own for own, new in self.rename.items() if new == public and self.tools.admit(own)), None)

    # --- lists ---

    def filtered(self, method: str, result: JsonObject) -> JsonObject:
        """A list result with nothing in it but what is offered; not changed if that is everything."""
        member, patterns = methods.LIST_KEYS[method], self._patterns(method)
        entries = result.get(member)
        if not isinstance(entries, list) or not (patterns or (method == methods.TOOLS_LIST and self)):
            return result
        key = KEYS[method]
        named = [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get(key), str)]
        offered = [self._offered(method, entry, entry[key]) for entry in named]
        return {**result, member: [entry for entry in offered if entry is not None]}

    def _offered(self, method: str, entry: JsonObject, key: str) -> JsonObject | None:
        if method == methods.TOOLS_LIST:
            return self._offered_tool(entry, key)
        if method == methods.RESOURCES_LIST:
            return entry if self.resources.admit_uri(key) else None
        return entry if self._patterns(method).admit(key) else None

    def _offered_tool(self, entry: JsonObject, own: str) -> JsonObject | None:
        name = self.tool_name(own)
        if name is None:
            return None
        changes: dict[str, Json] = {} if name == own else {"name": name}
        if own in self.describe:
            changes["description"] = self.describe[own]
        return {**entry, **changes} if changes else entry

    def _patterns(self, method: str) -> Patterns:
        if method == methods.TOOLS_LIST:
            return self.tools
        return self.prompts if method == methods.PROMPTS_LIST else self.resources
