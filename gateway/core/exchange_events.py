"""What can happen to an exchange, and what it can ask to be done about it.

Events are in the past tense, commands in the imperative. Nothing here decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.errors import GatewayError
from gateway.wire.jsonrpc import JsonObject, RequestId


@dataclass(frozen=True, slots=True)
class Leg:
    """One request of the client that drives the exchange: the call itself, or a later retry of it.

    Args:
        capabilities: `clientCapabilities` of this very request.
        progress_token: the client's token, None if it wants no progress.
        log_level: the least severe level it wants to see, None for no logs at all.
        answers: `inputResponses` as received: answers sent ahead, or the answers of a retry.
    """

    capabilities: JsonObject
    progress_token: RequestId | None = None
    log_level: str | None = None
    answers: Mapping[str, JsonObject] = field(default_factory=dict)


# --- events -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Responded:
    """The server answered the call: `{"result": ...}` or `{"error": ...}`."""

    message: JsonObject


@dataclass(frozen=True, slots=True)
class Asked:
    """The server sent a request of its own."""

    message: JsonObject


@dataclass(frozen=True, slots=True)
class Notified:
    """The server sent a notification."""

    message: JsonObject


@dataclass(frozen=True, slots=True)
class Withdrew:
    """The server cancelled a request of its own."""

    request_id: RequestId


@dataclass(frozen=True, slots=True)
class Quieted:
    """No further question came within the gathering time."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A retry came in, its answers already checked by `Exchange.check`.

    Args:
        leg: the retry.
        is_delivered: whether the server has had these answers already, from a process that died over it.
    """

    leg: Leg
    is_delivered: bool = False


@dataclass(frozen=True, slots=True)
class Broke:
    """The server's stream ended without the response; `resumable` if an event id tells where to go on."""

    resumable: bool
    error: GatewayError


@dataclass(frozen=True, slots=True)
class ClientLeft:
    """The client closed the connection while it was being served."""


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The server stayed silent too long, or the call took too long as a whole; `error` is what the client is told."""

    error: GatewayError


@dataclass(frozen=True, slots=True)
class Expired:
    """The client did not come back with answers in time, or the rounds are full, or the gateway ends."""


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Another replica goes on with the call, or may: the server is told nothing more from here, the client `error`."""

    error: GatewayError


Event: TypeAlias = (
    Responded | Asked | Notified | Withdrew | Quieted | Answered | Broke | ClientLeft | TimedOut | Expired | Overtaken
)


# --- commands ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Post:
    """Send a message to the server: an answer, an error reply, a cancellation.

    Args:
        message: what to send.
        is_vital: whether the call cannot go on if the server does not take it.
    """

    message: JsonObject
    is_vital: bool = field(default=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Relay:
    """Send a notification to the client, on the stream of its current request."""

    notification: JsonObject


@dataclass(frozen=True, slots=True)
class Gather:
    """Start, or start again, the quiet time after which the questions are put to the client."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Pick up the server's broken stream where it ended."""


@dataclass(frozen=True, slots=True)
class RequireInput:
    """End the client's current request with these questions, by name; wait for a retry."""

    input_requests: JsonObject


@dataclass(frozen=True, slots=True)
class Complete:
    """End the client's current request with what the server answered: `{"result": ...}` or `{"error": ...}`."""

    message: JsonObject


@dataclass(frozen=True, slots=True)
class Fail:
    """End the client's current request with a failure of the gateway's or the upstream's."""

    error: GatewayError


Command: TypeAlias = Post | Relay | Gather | Resume | RequireInput | Complete | Fail
