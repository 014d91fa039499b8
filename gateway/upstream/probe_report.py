"""What `era-gateway probe` found out, in words that tell an operator what to do next."""

from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from gateway.core import session as facts
from gateway.core.era import Era
from gateway.errors import GatewayError
from gateway.translate.discovery import server_info_of
from gateway.wire import meta
from gateway.wire.jsonrpc import Json, JsonObject, decode
from gateway.wire.versions import MODERN


class ProbeFailed(GatewayError):  # noqa: N818 -- what happened, as the command line says it
    """The server could not be asked; the message says why, and what to try."""


@dataclass(frozen=True, slots=True)
class Description:
    """What a server speaks.

    Attributes:
        era: its era.
        version: the revision that the gateway would use with it.
        transport: `streamable-http`, `sse` for that of 2024-11-05, or `stdio`.
        has_sessions: whether it gave a session id.
        capabilities: what it declares; None if it did not say.
        server_info: who it says it is; None if it did not say.
        instructions: its own, None if it has none.
        notes: what else an operator should know, a sentence each.
    """

    era: Era
    version: str
    transport: str
    has_sessions: bool = False
    capabilities: JsonObject | None = None
    server_info: JsonObject | None = None
    instructions: str | None = None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """A line for each thing that is known."""
        rows = [
            ("era", self.era),
            ("version", self.version),
            ("transport", self.transport),
            ("server", server_name(self.server_info or {})),
            ("capabilities", ", ".join(_capability(name, value) for name, value in (self.capabilities or {}).items())),
            ("instructions", self.instructions),
            *(("note", note) for note in self.notes),
        ]
        return "\n".join(f"{name:14}{printable(str(value))}" for name, value in rows if value)


def server_name(info: JsonObject) -> str:
    title = f"({info['title']})" if info.get("title") else ""
    return " ".join(str(part) for part in (info.get("name"), info.get("version"), title) if part)


def _capability(name: str, value: Json) -> str:
    parts = [key for key, on in value.items() if on is not False] if isinstance(value, dict) else []
    return f"{name} ({', '.join(parts)})" if parts else name


def printable(text: str) -> str:
    """Text of a stranger, without what a terminal would obey."""
    return "".join(character if character.isprintable() else " " for character in text)


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer; of an event stream, `body` is the message that answers the request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def message(self) -> JsonObject:
        """The JSON-RPC message; `{}` if the body is none."""
        try:
            message = decode(self.body)
        except ValueError:
            return {}
        return message if isinstance(message, dict) else {}

    @property
    def is_page(self) -> bool:
        """Whether it is a web page."""
        media_type = self.headers.get("Content-Type", "")
        return media_type.lower().startswith("text/html")


def of_modern(result: JsonObject | None, transport: str = "streamable-http") -> Description:
    """Describe a modern server by its discover result (None: it answered with an error of 2026-07-28)."""
    if result is None:
        note = "the server answers server/discover with an error of 2026-07-28, and tells nothing of itself"
        return Description("modern", MODERN, transport, notes=(note,))
    about = result.get("_meta")
    info = about.get(meta.SERVER_INFO) if isinstance(about, dict) else None
    others = [version for version in result["supportedVersions"] if version != MODERN]
    return Description(
        "modern",
        MODERN,
        transport,
        capabilities=_object(result.get("capabilities")),
        server_info=_object(info),
        instructions=_text(result.get("instructions")),
        notes=(f"also speaks {', '.join(map(str, others))}",) if others else (),
    )


def of_legacy(result: Json, transport: str, *, has_sessions: bool) -> Description:
    """Describe a legacy server by its result of `initialize`.

    Raises:
        ProbeFailed: the gateway cannot use it.
    """
    try:
        negotiated = facts.negotiate(result)
    except ValueError as fault:
        raise ProbeFailed(f"The server cannot be used: {fault}") from fault
    return Description(
        "legacy",
        negotiated.version,
        transport,
        has_sessions=has_sessions,
        capabilities=negotiated.capabilities,
        server_info=server_info_of(negotiated.result),
        instructions=_text(negotiated.result.get("instructions")),
        notes=(_session_note(transport, has_sessions),),
    )


def _session_note(transport: str, has_sessions: bool) -> str:
    if transport == "stdio":
        return "each process is a session"
    return "keeps sessions" if has_sessions else "keeps no sessions: it cannot ask questions during a call"


def _object(value: Json) -> JsonObject | None:
    return value if isinstance(value, dict) else None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def explain_status(answer: Answer) -> str:
    """Say what an HTTP answer means that is no use."""
    status = answer.status
    if status in (401, 403):
        challenge = answer.headers.get("WWW-Authenticate")
        asks = f" It asks for: {challenge}." if challenge else ""
        return f"The server refuses the request (HTTP {status}).{asks} Give credentials with --header"
    if answer.is_page:
        return f"HTTP {status} and a web page: this is no MCP endpoint; is the path missing, such as /mcp?"
    if status == 404:
        return "HTTP 404: there is nothing at this path; is it missing, such as /mcp?"
    if status in (429, 503):
        return f"The server is overloaded or not ready (HTTP {status}); try again later"
    return f"HTTP {status} and no JSON-RPC response: this is no MCP endpoint, or it is out of order"


def explain(error: Exception) -> str:
    """Say what an exception of httpx means."""
    text = str(error)
    if isinstance(error, httpx.TimeoutException):
        return "The server does not answer"
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return f"Not a URL that can be asked: {text}"
    if isinstance(error, httpx.ConnectError):
        if "CERTIFICATE" in text.upper() or "SSL" in text.upper():
            return f"No TLS connection: {text}"
        return f"No connection: {text or 'refused'}"
    return f"The server broke the connection, or does not speak HTTP: {text or type(error).__name__}"
