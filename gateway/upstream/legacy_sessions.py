"""Which session a request is made on: the key, the introduction, and the lease.

A key whose client can be asked, or wants the log, has a session to itself for each call: nothing on the wire says which
of two calls a question or a log message on the GET stream belongs to. All other calls of a key share one session.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from gateway import __version__
from gateway.core.affinity import affinity_to
from gateway.core.inbound_request import InboundRequest, invalid_params
from gateway.core.principal import Caller
from gateway.core.request_state import digest
from gateway.core.session import Negotiated, SessionKey
from gateway.translate.capabilities import can_ask, canonical, to_legacy_capabilities
from gateway.upstream.background import Background
from gateway.upstream.contexts import in_short
from gateway.upstream.handshake import Handshake, Introduction
from gateway.upstream.legacy_options import LegacyOptions
from gateway.upstream.legacy_session import LegacySession, OnChange
from gateway.upstream.listener import Listener
from gateway.upstream.pool import SessionPool
from gateway.upstream.shared_sessions import StickySharing
from gateway.upstream.transport import Transport
from gateway.wire.jsonrpc import JsonObject
from gateway.wire.versions import LATEST_LEGACY

GATEWAY_INFO: Final[JsonObject] = {"name": "era-gateway", "version": __version__}


_MOST_WANTED: Final = 10_000
_WORTH_REMEMBERING: Final = 1024
"""The longest that a client may say of itself for that to be kept ready; more is worked out each time."""

_LONGEST_DECLARED: Final = 65_536
"""What a client may declare, in characters: it is kept for as long as the session is, and as a suspended call is."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The session that a request needs.

    Args:
        key: who may use it.
        introduction: what a new one is opened with.
        is_exclusive: whether a call on it must be alone.
    """

    key: SessionKey
    introduction: Introduction
    is_exclusive: bool


class LegacySessions:
    """The sessions of one legacy upstream.

    Args:
        http: the connections to it.
        options: how the operator wants it treated.
        background: where work goes that nobody waits for.
        on_change: told of changed lists and resources, whatever session they are heard on.
        now_s: a monotonic clock.
        sharing: with whom sticky sessions are shared; None: nobody.
    """

    def __init__(
        self,
        http: Transport,
        options: LegacyOptions,
        background: Background,
        on_change: OnChange,
        now_s: Callable[[], float],
        sharing: StickySharing | None = None,
    ) -> None:
        self._options = options
        self._sharing = sharing if options.pool.reuse == "sticky" else None
        self._wanted: dict[tuple[object, ...], Wanted] = {}
        self._handshake = Handshake(http, background, on_change, options.connect_timeout_s)
        end = LegacySession.close if self._sharing is None else self._sharing.end
        self._pool = SessionPool(http.name, options.pool, background, now_s, end)
        self.suspend = self._pool.suspend
        self.unsuspend = self._pool.unsuspend
        self.release = self._pool.release

    def __len__(self) -> int:
        return len(self._pool)

    def wanted(self, request: InboundRequest, caller: Caller) -> Wanted:
        """The session that a request needs; worked out once for all requests that are alike in this.

        Raises:
            ProtocolError: `-32602`, the client declares too much.
        """
        client_info = request.client_info if self._options.passes_client_info else None
        authorization = caller.authorization if self._options.passes_authorization else None
        declared = canonical(request.capabilities)
        info = canonical(client_info) if client_info else ""
        if len(declared) + len(info) > _LONGEST_DECLARED:
            raise invalid_params(f"params._meta declares too much: over {_LONGEST_DECLARED} characters")
        if len(declared) + len(info) + len(authorization or "") > _WORTH_REMEMBERING:
            return self._want(request, caller, client_info)
        named = affinity_to(self._options.affinity, caller)
        alike = (caller.principal.id, authorization, named, declared, info, request.log_level is not None)
        wanted = self._wanted.get(alike)
        if wanted is None:
            if len(self._wanted) >= _MOST_WANTED:
                self._wanted.clear()
            wanted = self._wanted[alike] = self._want(request, caller, client_info)
        return wanted

    def _want(self, request: InboundRequest, caller: Caller, client_info: JsonObject | None) -> Wanted:
        capabilities = to_legacy_capabilities(request.capabilities, LATEST_LEGACY)
        key = SessionKey(
            caller.principal.id,
            self._credentials_digest(caller),
            in_short(canonical(capabilities)),
            in_short(canonical(client_info)) if client_info else "",
            affinity_to(self._options.affinity, caller),
        )
        introduction = Introduction(capabilities, client_info or GATEWAY_INFO, self.credentials(caller))
        return Wanted(key, introduction, can_ask(capabilities) or request.log_level is not None)

    async def lease(self, wanted: Wanted, *, fresh: bool = False) -> LegacySession:
        """A session to make one call on; give it back with `release`.

        Args:
            wanted: what is needed.
            fresh: not one that was idle: the server has just forgotten one.

        Raises:
            UpstreamRefused, UpstreamError: there is none to be had.
        """
        session = await self._pool.lease(
            wanted.key, lambda: self._open(wanted), exclusive=wanted.is_exclusive, fresh=fresh
        )
        if self._sharing is not None:
            self._sharing.note_use(session)
        if wanted.is_exclusive and session.listener is not None:
            try:
                await session.listener.opened()
            except BaseException:
                self._pool.release(session, clean=True)
                raise
        return session

    def sweep(self) -> None:
        """End what has been idle for too long."""
        self._pool.sweep()
        if self._sharing is not None:
            self._sharing.sweep()

    async def close(self) -> None:
        """End every session, but leave to other replicas what they share."""
        if self._sharing is not None:
            self._sharing.close()
        await self._pool.close()

    async def _open(self, wanted: Wanted) -> LegacySession:
        """Open a session, or take that of the other replicas, and begin to read its GET stream."""
        if self._sharing is None:
            session = await self.open_unheard(wanted)
        else:
            take = partial(self._handshake.revive, wanted.key, wanted.introduction.credentials)
            session = await self._sharing.obtain(wanted.key, partial(self.open_unheard, wanted), take)
        if session.id is not None and (wanted.is_exclusive or self._options.pool.reuse != "none"):
            session.listener = Listener(session)
        return session

    async def open_unheard(self, wanted: Wanted) -> LegacySession:
        """Open a session that is not one of the pool's; whoever wants its GET stream reads it."""
        return await self._handshake.open(wanted.key, wanted.introduction)

    def revive(self, wanted: Wanted, session_id: str, negotiated: Negotiated) -> LegacySession:
        """A session that another replica opened, to say something in it; end it with `end_revived`."""
        session = self._handshake.revive(wanted.key, wanted.introduction.credentials, session_id, negotiated)
        session.is_forgotten = self._is_sticky  # its user's other calls go on in it
        if self._sharing is not None:
            session.hearing.is_alone = _never_alone
        return session

    async def end_revived(self, session: LegacySession) -> None:
        """Be done with a session that another replica opened."""
        await session.close()

    def adopt(self, wanted: Wanted, session_id: str, negotiated: Negotiated) -> LegacySession:
        """Go on in a session that another replica opened, for one call; give it back with `release`.

        Its GET stream is read when `listen` is called: it may begin with what nobody has heard, which is for the call.
        """
        session = self.revive(wanted, session_id, negotiated)
        self._pool.adopt(session)
        return session

    async def listen(self, session: LegacySession) -> None:
        """Read the GET stream of a session that was adopted; return when it is open, or is not to be had."""
        session.listener = Listener(session)
        await session.listener.opened()

    @property
    def attempts(self) -> int:
        """How many sessions a request may be sent on before one is found that its server has not forgotten.

        The second one is new, unless it is what other replicas took in place of the first: that may be as dead.
        """
        return 2 if self._sharing is None else 3

    def kind_of_listener(self, request: InboundRequest, caller: Caller) -> str:
        """What the listeners of one caller must have in common to share a session."""
        if not self._is_sticky:
            return ""
        return f"{canonical(request.capabilities)} {affinity_to(self._options.affinity, caller)}"

    def wanted_for_listening(self, request: InboundRequest, caller: Caller) -> Wanted:
        """The session on which changes are heard: nothing is asked on it.

        Where all requests of a user share a session it is that one, since what the server keeps in a session it may
        tell of there alone.
        """
        if self._is_sticky:
            return self.wanted(request, caller)
        key = SessionKey(caller.principal.id, self._credentials_digest(caller), "{}")
        return Wanted(key, Introduction({}, GATEWAY_INFO, self.credentials(caller)), is_exclusive=False)

    async def open_to_listen(self, wanted: Wanted) -> LegacySession:
        """Open a session to listen on; give it back with `end_listening`. Raises like `lease`."""
        if not self._is_sticky:
            return await self.open_unheard(wanted)
        session = await self._pool.lease(wanted.key, lambda: self._open(wanted), exclusive=False)
        if not await _is_heard_elsewhere(session):
            return session
        self._pool.release(session, clean=True)
        return await self.open_unheard(wanted)

    async def end_listening(self, session: LegacySession) -> None:
        """Nobody listens on a session any more."""
        if session.in_flight > 0:
            self._pool.release(session, clean=True)
        else:
            await session.close()

    @property
    def _is_sticky(self) -> bool:
        return self._options.pool.reuse == "sticky"

    def credentials(self, caller: Caller) -> Mapping[str, str]:
        """The headers that carry the credential for a caller's request."""
        if self._options.passes_authorization and caller.authorization:
            return {"Authorization": caller.authorization}
        return {}

    def _credentials_digest(self, caller: Caller) -> str:
        passes = self._options.passes_authorization and caller.authorization
        return digest(caller.authorization) if passes and caller.authorization else ""


async def _never_alone(_is_question: bool) -> bool:
    return False


async def _is_heard_elsewhere(session: LegacySession) -> bool:
    """Whether another replica reads the stream of a session, so that changes must be heard on another one."""
    if not isinstance(session.listener, Listener):
        return False
    await session.listener.opened()
    return session.listener.is_taken
