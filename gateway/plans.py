"""From settings to what the shells take: the part of `app` that knows the keys of the configuration."""

from typing import TYPE_CHECKING

from cryptography.fernet import Fernet, MultiFernet

from gateway.auth.anonymous import Anonymous
from gateway.auth.api_key import ApiKey, ApiKeys
from gateway.config import model
from gateway.config.addresses import is_loopback
from gateway.core.front_door import FrontDoor
from gateway.core.offering import Offer, Patterns
from gateway.rounds.memory import RoundLimits
from gateway.server.endpoint import Authenticator
from gateway.upstream.build import UpstreamPlan
from gateway.upstream.connect import Place
from gateway.upstream.merged import MergeOptions
from gateway.upstream.replay import ReplayRule
from gateway.upstream.stdio import Command

if TYPE_CHECKING:  # its package is an extra of the distribution
    from gateway.store.connection import SharedStore


def upstream_plan(name: str, upstream: model.Upstream, settings: model.Settings) -> UpstreamPlan:
    """What the operator wants of one upstream.

    Args:
        name: its configured name.
        upstream: its section.
        settings: all the others.
    """
    rounds, cache = settings.rounds, settings.cache_of(upstream)
    return UpstreamPlan(
        name=name,
        place=_place(upstream),
        era=None if upstream.era == "auto" else upstream.era,
        timeout_s=upstream.timeout_s,
        max_duration_s=upstream.max_duration_s,
        passes_authorization=upstream.auth.type == "passthrough",
        passes_client_info=upstream.pass_client_info,
        reuse=upstream.sessions.reuse,
        gather_s=rounds.gather_s,
        gather_max_s=rounds.gather_max_s,
        question_names=rounds.names,
        ttl_ms=int(cache.ttl_s * 1000),
        cache_scope=cache.scope,
        watch_s=upstream.watch_s,
        resumes=rounds.recovery in ("auto", "resume"),
        replay=_replay_rule(rounds),
        affinity=None if upstream.sessions.affinity is None else upstream.sessions.affinity.lower(),
    )


def _replay_rule(rounds: model.Rounds) -> ReplayRule | None:
    """Which calls may be made again."""
    if rounds.recovery not in ("auto", "replay") or not (rounds.replay or rounds.replay_hints):
        return None
    return ReplayRule(rounds.replay, frozenset(rounds.replay_hints))


def offer_of(upstream: model.Upstream) -> Offer:
    """What of an upstream is offered."""
    tools = upstream.tools
    return Offer(
        Patterns(tools.include, tools.exclude),
        Patterns(upstream.prompts.include, upstream.prompts.exclude),
        Patterns(upstream.resources.include, upstream.resources.exclude),
        tools.rename,
        tools.describe,
    )


def merge_options(settings: model.Settings) -> MergeOptions:
    """How several upstreams are made one."""
    return MergeOptions(
        is_prefixed=settings.prefix != "never",
        fails_partially=settings.partial == "fail",
        page_size=settings.page_size,
        deadline_s=settings.list_timeout_s,
    )


def _place(upstream: model.Upstream) -> Place:
    command = None
    if upstream.command is not None:
        environment, secrets = upstream.plain_env(), tuple(upstream.secrets())
        command = Command(upstream.command, upstream.args, environment, upstream.cwd, secrets)
    return Place(
        command or str(upstream.url),
        transport=upstream.transport,
        headers=upstream.plain_headers(),
        connect_timeout_s=upstream.connect_timeout_s,
        max_message_bytes=upstream.max_message_bytes,
        max_sessions=upstream.sessions.max,
        idle_s=upstream.sessions.idle_s,
    )


def front_door(server: model.Server) -> FrontDoor:
    """Who may knock.

    Host is checked on loopback, where a page in a browser may reach the gateway by a name of its own (DNS rebinding),
    and wherever hosts are listed.
    """
    checks_host = is_loopback(server.host) or bool(server.allowed_hosts)
    bound_host = f"[{server.host}]" if ":" in server.host else server.host
    return FrontDoor(
        allowed_origins=frozenset(server.allowed_origins),
        allowed_hosts=frozenset({*server.allowed_hosts, bound_host}) if checks_host else None,
        max_body_bytes=server.max_body_bytes,
    )


def authenticator(auth: model.Auth) -> Authenticator:
    """Who is who."""
    if auth.type == "none":
        return Anonymous()
    return ApiKeys(ApiKey(key.name, key.sha256.get_secret_value(), key.scopes) for key in auth.keys)


def round_limits(rounds: model.Rounds) -> RoundLimits:
    """How many rounds may be suspended, and for how long."""
    return RoundLimits(rounds.ttl_s, rounds.max, rounds.max_per_principal, rounds.max_per_upstream)


def shared_store(state: model.State) -> "SharedStore | None":
    """The store that replicas share, if there is one; its client is an extra of the distribution."""
    if (url := state.shared_store) is None:
        return None
    from gateway.store.connection import SharedStore

    return SharedStore(url, state.namespace)


def state_keys(state: model.State) -> MultiFernet:
    """The keys that seal what clients carry; without any, one that nobody else will ever have."""
    keys = [key.get_secret_value() for key in state.keys] or [Fernet.generate_key().decode()]
    return MultiFernet([Fernet(key) for key in keys])
