"""What replicas tell each other of a sticky session: its name in the store, and what stands there.

The name is a digest of everything that a session is keyed by, and is part of what is sealed: an entry that was moved to
another user's name opens nothing.
"""

import json
from dataclasses import dataclass
from typing import Final

from gateway.core.request_state import digest
from gateway.core.session import Negotiated, SessionKey, negotiate
from gateway.wire.jsonrpc import decode, encode

MOST_BYTES: Final = 1_048_576
"""What a server may say of itself for its sessions to be shared; it is kept once for each session."""

_SLACK_S: Final = 10.0
"""Replicas look at their sessions every few seconds only."""

_UNFOUND_S: Final = 60.0
_HANDSHAKE_SLACK_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Entry:
    """What the store has under a session's name.

    Args:
        stamp: tells this entry from those before and after it.
        data: the session, as `encode_session` wrote it; b"" if it cannot be read; None: a replica is about to open one.
        is_mine: whether that replica is this one, just now.
        is_sole: whether no other replica has come by it.
    """

    stamp: str
    data: bytes | None = None
    is_mine: bool = False
    is_sole: bool = False


@dataclass(frozen=True, slots=True)
class SharingTimes:
    """When replicas tell each other what, in seconds.

    Args:
        idle_s: after which a session is ended that nobody has used.
        handshake_s: how long it may take to open one.
    """

    idle_s: float
    handshake_s: float

    @property
    def touch_s(self) -> float:
        """Between two times at which one replica says that a session is in use."""
        return self.idle_s / 4

    @property
    def quiet_s(self) -> float:
        """For how long nobody has said so when it is sure that nobody has used it for `idle_s`."""
        return self.idle_s + self.touch_s + _SLACK_S

    @property
    def left_s(self) -> float:
        """How long an entry still stays when it is found that nobody uses the session, lest it goes unfound."""
        return self.quiet_s + _UNFOUND_S

    @property
    def keep_s(self) -> float:
        """How long an entry stays that is not touched."""
        return self.quiet_s + self.left_s

    @property
    def lock_s(self) -> float:
        """How long a replica has for opening a session."""
        return self.handshake_s + _HANDSHAKE_SLACK_S


def name_of(server: str, key: SessionKey) -> str:
    """What a session is called in the store.

    Args:
        server: where the server is, so that a session is never offered to another one.
        key: who may use the session.
    """
    return digest(json.dumps([server, *key]))


def encode_session(name: str, session_id: str, negotiated: Negotiated) -> bytes:
    """A session as JSON.

    Raises:
        ValueError: it is too large, or cannot be written.
    """
    data = encode({"name": name, "id": session_id, "result": negotiated.result})
    if len(data) > MOST_BYTES:
        raise ValueError("too large")
    return data


def decode_session(name: str, data: bytes) -> tuple[str, Negotiated]:
    """The id of a session, and what its `initialize` settled.

    Raises:
        ValueError: it is none, or is another one's.
    """
    members = decode(data)
    if not isinstance(members, dict) or members.get("name") != name or not isinstance(members.get("id"), str):
        raise ValueError("not this session")
    return members["id"], negotiate(members.get("result"))
