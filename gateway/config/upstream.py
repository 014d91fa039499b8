"""One server behind the gateway: where it is or how it is started, and how it is treated."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from gateway.config.addresses import Url
from gateway.config.affinity import AffinityHeader
from gateway.config.command import (
    Argument,
    Folder,
    Program,
    ShownArguments,
    VariableName,
    VariableValue,
    secrets_in,
)
from gateway.config.offers import Offered, OfferedTools, UpstreamCache
from gateway.config.secret import Headers
from gateway.config.section import Listed, Section, key, none_as_mapping
from gateway.config.values import Count, PositiveDuration, Size, all_wrong, wrong

STDIO_CONNECT_TIMEOUT: Final = "60s"
"""What starts a process may have to download it first."""

STDIO_SESSIONS: Final = "16"
"""Each is a process."""

_URL_REMEDY: Final = "write url: https://docs.example.com/mcp, or the command of a stdio server"


class Sessions(Section):
    """How sessions towards a legacy server are kept."""

    reuse: Literal["pooled", "sticky", "none"] = "pooled"
    affinity: AffinityHeader = None
    max: Count = 64
    idle_s: PositiveDuration = key("idle", "5m")

    @model_validator(mode="after")
    def _check_affinity(self) -> Self:
        if self.affinity is not None and self.reuse != "sticky":
            remedy = "write reuse: sticky, or remove it"
            raise wrong("only for sticky sessions", "reuse: sticky", found="", at=("affinity",), remedy=remedy)
        return self


class UpstreamAuth(Section):
    """Whose credential an upstream gets, beside the configured headers."""

    type: Literal["none", "passthrough"] = "none"


class Upstream(Section):
    """One server behind the gateway."""

    type: Literal["http", "streamable-http", "streamableHttp", "sse", "stdio"] | None = Field(None, exclude=True)
    url: Url | None = Field(None, repr=False)
    command: Program = None
    args: Annotated[Listed[Argument], ShownArguments] = Field((), repr=False)
    env: Annotated[Mapping[VariableName, VariableValue], BeforeValidator(none_as_mapping)] = {}
    cwd: Folder = None
    era: Literal["auto", "modern", "legacy"] = "auto"
    transport: Literal["auto", "streamable-http", "sse"] = "auto"
    headers: Annotated[Headers, BeforeValidator(none_as_mapping)] = Field({})
    timeout_s: PositiveDuration = key("timeout", "60s")
    max_duration_s: PositiveDuration = key("max_duration", "10m")
    connect_timeout_s: PositiveDuration = key("connect_timeout", "10s")
    max_message_bytes: Size = key("max_message_bytes", "64MiB")
    watch_s: PositiveDuration | None = Field(None, alias="watch")
    pass_client_info: bool = False
    sessions: Sessions = Sessions()
    auth: UpstreamAuth = UpstreamAuth()
    tools: OfferedTools = OfferedTools()
    prompts: Offered = Offered()
    resources: Offered = Offered()
    cache: UpstreamCache = UpstreamCache()

    def plain_headers(self) -> dict[str, str]:
        """The configured headers with their secrets told, to be sent and for nothing else."""
        return {name: value.get_secret_value() for name, value in self.headers.items()}

    def plain_env(self) -> dict[str, str]:
        """The configured variables with their secrets told, for the process and for nothing else."""
        return {name: value.get_secret_value() for name, value in self.env.items()}

    def secrets(self) -> list[str]:
        """What must not show in a log although a stdio server may print it."""
        return [*self.plain_env().values(), *secrets_in(self.args)]

    @property
    def has_credentials(self) -> bool:
        """Whether the gateway has something that lets it use the server, so that its callers can."""
        return bool(self.headers or self.env)

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, value: Any) -> Any:
        """What `type` says of the transport, and the defaults of a stdio server."""
        if not isinstance(value, dict):
            return value
        filled = dict(value)
        if filled.get("type") == "sse" and filled.get("transport") in (None, "auto"):
            filled["transport"] = "sse"
        if filled.get("command") is not None:
            filled.setdefault("connect_timeout", STDIO_CONNECT_TIMEOUT)
            sessions = filled.get("sessions")
            if sessions is None or isinstance(sessions, dict):
                filled["sessions"] = {"max": STDIO_SESSIONS, **(sessions or {})}
        return filled

    @model_validator(mode="after")
    def _check(self) -> Self:
        errors = list(self._check_place()) or list(self._check_http() if self.command is None else self._check_stdio())
        if errors:
            raise all_wrong(errors)
        return self

    def _check_place(self) -> Iterator[PydanticCustomError]:
        if self.url is None and self.command is None:
            yield wrong("missing", found="", at=("url",), remedy=_URL_REMEDY)
        if self.url is not None and self.command is not None:
            yield wrong(
                "a url is configured too", "one of both", found="", at=("command",), remedy="remove one of them"
            )

    def _check_http(self) -> Iterator[PydanticCustomError]:
        if self.type == "stdio":
            yield wrong("stdio without a command", found="", at=("type",), remedy="write command: uvx, and args")
        for name, value in (("args", self.args), ("env", self.env), ("cwd", self.cwd)):
            if value:
                yield wrong("only for a command", "url", found="", at=(name,), remedy="write command, or remove it")
        if self.transport == "sse" and self.era == "modern":
            remedy = "write era: auto"
            yield wrong(
                "no server of the sse transport is", "auto, legacy", found='"modern"', at=("era",), remedy=remedy
            )
        if self.auth.type == "passthrough" and any(name.lower() == "authorization" for name in self.headers):
            remedy = "keep the header, or auth: {type: passthrough}"
            yield wrong(
                "an Authorization header is configured too", "one of both", found="", at=("auth",), remedy=remedy
            )

    def _check_stdio(self) -> Iterator[PydanticCustomError]:
        if self.type not in (None, "stdio"):
            yield wrong("a command is stdio", "stdio", found=f'"{self.type}"', at=("type",), remedy="write type: stdio")
        not_for_it = (
            ("transport", self.transport != "auto", "remove it"),
            ("headers", bool(self.headers), "give the server what it needs under env"),
            ("auth", self.auth.type != "none", "give the server what it needs under env"),
        )
        for name, is_there, remedy in not_for_it:
            if is_there:
                yield wrong("only for a url", found="", at=(name,), remedy=remedy)
