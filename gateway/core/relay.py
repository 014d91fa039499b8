"""What two replicas say to each other about a retry that landed on one and belongs to the other.

The *relayer* has the client, the *owner* has the suspended call. A relay begins with `Serve`; the owner answers with
any number of `Notice` and one `Ended`. The relayer shows with `Still` that it waits, and says with `Done` that its
client has been told, or with `Cancel` that its client has left.
"""

from dataclasses import dataclass
from typing import Any, Final, TypeAlias, get_args

from gateway.core.inbound_request import InboundRequest
from gateway.core.outcome import Outcome
from gateway.core.principal import Caller, Principal
from gateway.errors import GatewayError, ProtocolError, UpstreamError
from gateway.wire.jsonrpc import Json, JsonObject, decode, encode


@dataclass(frozen=True, slots=True)
class Serve:
    """Serve this retry.

    Args:
        relay: its id.
        relayer: the replica to answer to.
        upstream: whose call it is.
        handle: the suspended round.
        request: as the upstream is asked for it.
        caller: as authenticated by the relayer, with credential.
    """

    relay: str
    relayer: str
    upstream: str
    handle: str
    request: JsonObject
    caller: JsonObject


@dataclass(frozen=True, slots=True)
class Still:
    """The relayer still waits.

    Args:
        relay: for what.
        relayer: the replica that does.
        taken: how many notices it has taken.
        is_idle: whether nothing has come for a while: what was sent before, and not taken, is lost.
    """

    relay: str
    relayer: str
    taken: int
    is_idle: bool


@dataclass(frozen=True, slots=True)
class Cancel:
    """The client of the relayer has left."""

    relay: str


@dataclass(frozen=True, slots=True)
class Done:
    """These relays are over, and nobody will ask for their ends again."""

    relays: list[str]


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification for the client; they are counted from 0."""

    relay: str
    number: int
    notification: JsonObject


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a relay: an outcome, or an error that was raised."""

    relay: str
    end: JsonObject


@dataclass(frozen=True, slots=True)
class Unknown:
    """The owner does not know this relay: the `Serve` never reached it."""

    relay: str


@dataclass(frozen=True, slots=True)
class Working:
    """The owner works on this relay."""

    relay: str


FromRelayer: TypeAlias = Serve | Still | Cancel | Done
FromOwner: TypeAlias = Notice | Ended | Unknown | Working
Message: TypeAlias = FromRelayer | FromOwner

_PROTOCOL_ERROR: Final = ("code", "message", "data", "status", "reason", "headers")
_UPSTREAM_ERROR: Final = ("upstream", "reason", "message", "retryable", "retry_after_s")
_KINDS: Final[dict[str, type]] = {kind.__name__.lower(): kind for kind in get_args(Message)}


def encode_message(message: Message, recipient: str) -> bytes:
    """A message as JSON, marked with the replica that it is for.

    Raises:
        ValueError: it holds what cannot be written.
    """
    kind = type(message).__name__.lower()
    members = {name: getattr(message, name) for name in type(message).__slots__}
    return encode({"to": recipient, "kind": kind, **members})


def decode_message(data: bytes, recipient: str) -> Message:
    """Read a message.

    Raises:
        ValueError: it is none, or is for another replica.
    """
    members: Json = decode(data)
    if not isinstance(members, dict) or members.pop("to", None) != recipient:
        raise ValueError("not for this replica")
    name = members.pop("kind", None)
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError("of an unknown kind")
    try:
        message: Message = kind(**members)
    except TypeError as error:
        raise ValueError("of other members") from error
    return message


# --- requests and callers -----------------------------------------------------------------------------------------


def request_members(request: InboundRequest) -> JsonObject:
    """A request, as JSON."""
    members = {name: getattr(request, name) for name in InboundRequest.__slots__}
    members["param_headers"] = {name: value.decode("latin-1") for name, value in request.param_headers.items()}
    return members


def to_request(members: JsonObject) -> InboundRequest:
    """The request that `request_members` wrote.

    Raises:
        ValueError: it is none as this version of the gateway knows them.
    """
    try:
        headers = {name: value.encode("latin-1") for name, value in members["param_headers"].items()}
        return InboundRequest(**{**members, "param_headers": headers})
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("not a request") from error


def caller_members(caller: Caller) -> JsonObject:
    """A caller, as JSON."""
    principal = caller.principal
    scopes = None if principal.scopes is None else sorted(principal.scopes)
    members = {name: getattr(caller, name) for name in Caller.__slots__}
    return {**members, "principal": {"id": principal.id, "name": principal.name, "scopes": scopes}}


def to_caller(members: JsonObject) -> Caller:
    """The caller that `caller_members` wrote.

    Raises:
        ValueError: it is none as this version of the gateway knows them.
    """
    try:
        principal = members["principal"]
        scopes = None if principal["scopes"] is None else frozenset(principal["scopes"])
        return Caller(**{**members, "principal": Principal(principal["id"], principal["name"], scopes)})
    except (KeyError, TypeError) as error:
        raise ValueError("not a caller") from error


# --- ends ---------------------------------------------------------------------------------------------------------


def end_of_outcome(outcome: Outcome) -> JsonObject:
    """An outcome, as JSON."""
    return {"outcome": {"body": outcome.body, "status": outcome.status, "headers": outcome.headers}}


def end_of_error(error: GatewayError) -> JsonObject:
    """A foreseen failure, as JSON.

    Raises:
        ValueError: it is of a kind that no client is told of.
    """
    if isinstance(error, ProtocolError):
        return {"protocol": {name: getattr(error, name) for name in _PROTOCOL_ERROR}}
    if isinstance(error, UpstreamError):
        return {"upstream": {name: getattr(error, name) for name in _UPSTREAM_ERROR}}
    raise ValueError(f"{type(error).__name__} never reaches a client")


def to_outcome(end: JsonObject) -> Outcome:
    """The outcome that the owner came to.

    Raises:
        GatewayError: the failure that it came to instead.
    """
    if (members := end.get("protocol")) is not None:
        known = {**members, "headers": _pairs(members["headers"])}
        code, message = known.pop("code"), known.pop("message")
        raise ProtocolError(code, message, known.pop("data"), **known)
    if (members := end.get("upstream")) is not None:
        known = dict(members)
        raise UpstreamError(known.pop("upstream"), known.pop("reason"), known.pop("message"), **known)
    outcome: dict[str, Any] = end["outcome"]
    return Outcome(outcome["body"], outcome["status"], _pairs(outcome["headers"]))


def _pairs(headers: list[list[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in headers)
