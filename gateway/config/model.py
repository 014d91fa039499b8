"""The configuration, checked and typed: one class per section, defaults as people write them.

A key's name in YAML is its alias; durations carry `_s` in Python and are seconds, sizes are bytes. The reference is
docs/configuration.md, and config/gateway.yaml shows every key with its default; tests hold the three together.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, field_serializer, model_validator
from pydantic_core import PydanticCustomError

from gateway.config.addresses import AllowedHost, BindHost, EndpointPath, Origin
from gateway.config.names import QuestionName, Text, UpstreamName
from gateway.config.secret import Digest, StateKeys
from gateway.config.section import Listed, Section, SplitList, key, none_as_mapping
from gateway.config.store import MEMORY, Namespace, StoreUrl
from gateway.config.upstream import Upstream
from gateway.config.values import Count, Duration, Port, PositiveDuration, Size, all_wrong, split_texts, wrong

__all__ = ["ApiKey", "Auth", "Settings", "Upstream"]


def _parse_admin(value: object) -> object:
    if value is False or value == "false":
        return None
    if value is None or isinstance(value, dict | Admin):
        return value or {}
    raise wrong("neither false nor an address", "false, or host and port", remedy="write admin: false")


def _parse_scopes(value: object) -> object:
    return None if value is None else split_texts(value)


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _at_least_one(upstreams: Mapping[str, "Upstream"]) -> Mapping[str, "Upstream"]:
    if not upstreams:
        remedy = "write upstreams: {docs: {url: https://docs.example.com/mcp}}"
        raise wrong("no upstream", "at least one", found="", remedy=remedy)
    return upstreams


class Admin(Section):
    """The address of the operator's own port."""

    host: BindHost = "127.0.0.1"
    port: Port = 9090


class Server(Section):
    """The front door."""

    host: BindHost = "127.0.0.1"
    port: Port = 8080
    path: EndpointPath = "/mcp"
    allowed_origins: SplitList[Origin] = ()
    allowed_hosts: SplitList[AllowedHost] = ()
    max_body_bytes: Size = key("max_body_bytes", "4MiB")
    keepalive_s: PositiveDuration = key("keepalive", "15s")
    stream_after_s: Duration = key("stream_after", "5s")
    drain_s: Duration = key("drain", "30s")
    lame_duck_s: Duration = key("lame_duck", "0s")
    max_listeners: Count = 1000
    admin: Annotated[Admin | None, BeforeValidator(_parse_admin)] = Admin()

    @property
    def clashes(self) -> bool:
        """Whether both ports are the same one."""
        return self.admin is not None and self.port == self.admin.port != 0

    @model_validator(mode="after")
    def _check_ports(self) -> Self:
        if self.clashes:
            at, remedy = ("admin", "port"), "choose another one, or write admin: false"
            raise wrong("the port of the server itself", found=str(self.port), at=at, remedy=remedy)
        return self

    @field_serializer("admin", when_used="json")
    def _write_admin(self, admin: Admin | None) -> Admin | bool:
        return False if admin is None else admin


class Rounds(Section):
    """Calls that wait for an answer of the client."""

    ttl_s: PositiveDuration = key("ttl", "10m")
    max: Count = 1000
    max_per_principal: Count = 20
    max_per_upstream: Count | None = None
    gather_s: Duration = key("gather", "60ms")
    gather_max_s: Duration = key("gather_max", "300ms")
    names: Annotated[Mapping[Text, Listed[QuestionName]], BeforeValidator(none_as_mapping)] = {}
    recovery: Literal["auto", "resume", "replay", "none"] = "auto"
    replay: SplitList[Text] = ()
    replay_hints: SplitList[Literal["read-only", "idempotent"]] = ()

    @model_validator(mode="after")
    def _check_replay(self) -> Self:
        errors = [
            wrong("tools to replay, which recovery rules out", found="", at=(at,), remedy="write recovery: auto")
            for at, tools in (("replay", self.replay), ("replay_hints", self.replay_hints))
            if tools and self.recovery in ("resume", "none")
        ]
        if self.recovery == "replay" and not (self.replay or self.replay_hints):
            remedy = "write replay: [TOOL], or replay_hints: [read-only]"
            errors.append(wrong("replay without tools", found="", at=("recovery",), remedy=remedy))
        if errors:
            raise all_wrong(errors)
        return self

    @model_validator(mode="after")
    def _check_gather(self) -> Self:
        if self.gather_s > self.gather_max_s:
            raise wrong(
                "shorter than gather", "gather, or longer", found="", at=("gather_max",), remedy="raise gather_max"
            )
        return self


class State(Section):
    """What seals the tokens that clients carry, and where suspended calls are known."""

    keys: StateKeys = ()
    store: StoreUrl = MEMORY
    namespace: Namespace = "era-gateway"

    @property
    def shared_store(self) -> str | None:
        """The URL of the store that replicas share, None if there is none."""
        url = self.store.get_secret_value()
        return None if url == MEMORY.get_secret_value() else url

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        if self.shared_store is not None and not self.keys:
            raise wrong(
                "none with a shared store",
                "the same keys at every replica",
                found="",
                at=("keys",),
                remedy="run era-gateway keygen once, and give its key to every replica",
            )
        return self


class Cache(Section):
    """How long lists and resources are kept where an upstream does not say, and for whom."""

    ttl_s: Duration = key("ttl", "0s")
    scope: Literal["private", "public"] = "private"


class ApiKey(Section):
    """One user: the digest of a key, and the upstreams that it opens (None: all)."""

    name: Text
    sha256: Digest
    scopes: Annotated[frozenset[str] | None, BeforeValidator(_parse_scopes)] = None


class Auth(Section):
    """Who may use the gateway."""

    type: Literal["none", "api_key"] = "none"
    keys: Listed[ApiKey] = ()

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        if self.type == "api_key" and not self.keys:
            raise wrong(
                "api_key without keys",
                "at least one key",
                found="",
                at=("keys",),
                remedy='write keys: [{name: alice, sha256: "..."}]',
            )
        if self.type == "none" and self.keys:
            raise wrong("keys without api_key", "no keys", found="", at=("keys",), remedy="write type: api_key")
        errors = self._written_twice("name", [key.name for key in self.keys])
        errors += self._written_twice("sha256", [key.sha256.get_secret_value() for key in self.keys])
        if errors:
            raise all_wrong(errors)
        return self

    @staticmethod
    def _written_twice(what: str, values: list[str]) -> list[PydanticCustomError]:
        again = (number for number, value in enumerate(values) if value in values[:number])
        return [wrong("written twice", found="", at=("keys", number, what), remedy="keep one") for number in again]


class Log(Section):
    """What is logged."""

    level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = "info"


class Settings(Section):
    """Everything the operator decided."""

    server: Server = Server()
    upstreams: Annotated[
        Mapping[UpstreamName, Upstream], BeforeValidator(none_as_mapping), AfterValidator(_at_least_one)
    ] = {}
    prefix: Literal["auto", "always", "never"] = "auto"
    partial: Literal["degrade", "fail"] = "degrade"
    list_timeout_s: PositiveDuration = key("list_timeout", "5s")
    page_size: Count | None = None
    rounds: Rounds = Rounds()
    state: State = State()
    cache: Cache = Cache()
    auth: Auth = Auth()
    log: Log = Log()

    @property
    def is_merged(self) -> bool:
        """Whether one endpoint stands for the upstreams together."""
        return len(self.upstreams) > 1 or self.prefix == "always"

    def cache_of(self, upstream: Upstream) -> Cache:
        """How an upstream's answers are kept."""
        own = {name: value for name, value in upstream.cache if value is not None}
        return self.cache.model_copy(update=own)

    def listening_on(self, host: str | None, port: int | None) -> "Settings":
        """The same settings with another address, as the command line gives it (None: as it is)."""
        changes = {key: value for key, value in (("host", host), ("port", port)) if value is not None}
        return self.model_copy(update={"server": self.server.model_copy(update=changes)})

    @model_validator(mode="after")
    def _check_scopes(self) -> Self:
        errors = [
            wrong(
                "not an upstream",
                ", ".join(self.upstreams),
                found=f'"{scope}"',
                at=("auth", "keys", number, "scopes"),
                remedy="name an upstream",
            )
            for number, key in enumerate(self.auth.keys)
            for scope in sorted((key.scopes or frozenset()) - self.upstreams.keys())
        ]
        if errors:
            raise all_wrong(errors)
        return self
