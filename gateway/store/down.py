"""What is said when the shared store is needed and cannot be reached."""

from typing import Final

from gateway.errors import ProtocolError
from gateway.wire import codes

RETRY_AFTER_S: Final = 2
"""When a client may come back that needed the store."""


class StoreDown(ProtocolError):  # noqa: N818 -- it says what is the case
    """What was asked for needs the store, and the store cannot be reached."""

    def __init__(self) -> None:
        super().__init__(
            codes.INTERNAL_ERROR,
            "The store that the gateway's replicas share cannot be reached; send the same request again",
            {"reason": "store", "retryable": True},
            status=503,
            reason="store",
            headers=(("retry-after", str(RETRY_AFTER_S)),),
        )
