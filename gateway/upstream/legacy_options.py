"""How one legacy upstream is to be treated: what the operator configured, without the configuration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gateway.upstream.call_clock import CallLimits
from gateway.upstream.pool_limits import PoolLimits
from gateway.upstream.replay import ReplayRule


@dataclass(frozen=True, slots=True)
class LegacyOptions:
    """Args:
    calls: how long a call may take.
    pool: how many sessions there may be.
    connect_timeout_s: for a whole handshake.
    passes_authorization: whether the caller's own `Authorization` goes upstream.
    passes_client_info: whether `initialize` names the client instead of the gateway.
    question_names: the operator's names for the questions of a tool, in the order of asking.
    ttl_ms: the `ttlMs` of a cacheable result to which the server gave none.
    cache_scope: likewise, its `cacheScope`.
    resumes: whether a call is gone on with whose replica is dead.
    replay: which calls may be made again whose replica is dead; None: none.
    watch_s: seconds between two looks at lists whose changes the server does not tell; None: never.
    affinity: the header, in lower case, each value of which has a session of its own; None: there is none.
    """

    calls: CallLimits
    pool: PoolLimits
    connect_timeout_s: float = 10.0
    passes_authorization: bool = False
    passes_client_info: bool = False
    question_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ttl_ms: int = 0
    cache_scope: str = "private"
    resumes: bool = True
    replay: ReplayRule | None = None
    watch_s: float | None = None
    affinity: str | None = None
