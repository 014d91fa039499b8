"""The heads of the requests to one URL. What is the same in each is written once.

Rule: fields are chosen by allow-list (the operator's, the fixed ones, what the caller names), never copied from a
request. Of two with one name the caller's wins, then the fixed one.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from yarl import URL

from gateway import __version__
from gateway.upstream.decoding import OFFERED

Method: TypeAlias = Literal["POST", "GET", "DELETE"]

USER_AGENT: Final = f"era-gateway/{__version__}"

_BOTH: Final = {"Accept": "application/json, text/event-stream"}
_OWN: Final[Mapping[Method, Mapping[str, str]]] = {
    "POST": {"Content-Type": "application/json", **_BOTH},
    "GET": {"Accept": "text/event-stream"},
    "DELETE": _BOTH,
}
_UNFIT: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # RFC 9110, section 5.5
_FRAMING: Final = frozenset(
    {"host", "connection", "content-length", "expect", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Fields that describe a connection or a body: the client's own affair, whatever is configured."""


@dataclass(frozen=True, slots=True)
class _Beginning:
    """What the requests with one method have in common: the text, and the names of the fields in it, in lower case."""

    text: str
    names: frozenset[str]


class RequestHead:
    """Writes heads.

    Args:
        url: where requests go.
        configured: the operator's fields.
    """

    def __init__(self, url: URL, configured: Mapping[str, str]) -> None:
        self.url = url
        self._configured = [(name, value) for name, value in configured.items() if name.lower() not in _FRAMING]
        self._beginnings = {method: self._begin(method) for method in _OWN}

    def write(self, method: Method, fields: Mapping[str, str], length: int | None) -> bytes:
        """Write one head.

        Args:
            method: of the request.
            fields: what this request needs beyond the configured ones.
            length: of the body, if there is one.

        Raises:
            ValueError: a field cannot be written.
        """
        beginning = self._beginnings[method]
        if not beginning.names.isdisjoint(map(str.lower, fields)):
            beginning = self._begin(method, {name.lower() for name in fields})
        if not (told := "".join((*fields, *fields.values()))).isprintable() and _UNFIT.search(told):
            raise ValueError("a field that no head can carry")
        lines = _lines(fields.items())
        end = "\r\n" if length is None else f"Content-Length: {length}\r\n\r\n"
        return f"{beginning.text}{lines}{end}".encode("utf-8", "surrogateescape")

    def _begin(self, method: Method, without: Iterable[str] = ()) -> _Beginning:
        fields = {"user-agent": ("User-Agent", USER_AGENT)}
        fields |= {name.lower(): (name, value) for name, value in self._configured}
        fields |= {name.lower(): (name, value) for name, value in _OWN[method].items()}
        fields["accept-encoding"] = ("Accept-Encoding", OFFERED)
        for name in without:
            fields.pop(name, None)
        text = f"{method} {self.url.raw_path_qs} HTTP/1.1\r\nHost: {_authority(self.url)}\r\n{_lines(fields.values())}"
        return _Beginning(text, frozenset(fields))


def _authority(url: URL) -> str:
    host = (url.host_subcomponent or "").rstrip(".")
    return host if url.is_default_port() else f"{host}:{url.port}"


def _lines(fields: Iterable[tuple[str, str]]) -> str:
    return "".join([f"{name}: {value}\r\n" for name, value in fields])
