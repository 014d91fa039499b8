"""Who a request belongs to: the owner of sessions, rounds and limits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated user of the gateway.

    Args:
        id: stable and unique; sessions and rounds are never shared between two ids.
        name: what the log may say.
        scopes: the upstreams that it may use; None: all of them.
    """

    id: str
    name: str
    scopes: frozenset[str] | None = None

    def may_use(self, upstream: str) -> bool:
        """Whether this principal is allowed on an upstream."""
        return self.scopes is None or upstream in self.scopes


ANONYMOUS: Final = Principal("anonymous", "anonymous")
"""Everybody, when the gateway runs without authentication."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The principal of one request, the credential that it came with, and the session that it means.

    Args:
        principal: who asks.
        authorization: the client's own `Authorization` value; only an upstream with passthrough may look at it.
        affinity: the headers by which sessions are chosen, lower-case names (`core.affinity`); None: there are none.
    """

    principal: Principal
    authorization: str | None = None
    affinity: Mapping[str, str] | None = None
