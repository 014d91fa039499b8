"""Malformed requests, each with the reply that the gateway owes it.

The table is run twice: against the ladder itself, and over a socket against a gateway. For the latter the gateway must
be bound to loopback with its default limits, and its upstream must offer tools (`MARKED_TOOL` among them), prompts,
resources and completions. `Host` and `Content-Length` are the sender's to add where a case does not set them.
"""

from typing import Final

from tests.support.malformed_case import Malformed
from tests.support.malformed_headers import MARKED_TOOL, MARKS, MIRRORS
from tests.support.malformed_http import ENVELOPE, HEAD, JSON
from tests.support.malformed_meta import META, VERSIONS
from tests.support.malformed_params import METHODS, PARAMETERS

__all__ = ["MALFORMED", "MARKED_TOOL", "Malformed"]

MALFORMED: Final[tuple[Malformed, ...]] = (
    *HEAD,
    *JSON,
    *ENVELOPE,
    *VERSIONS,
    *META,
    *MIRRORS,
    *MARKS,
    *METHODS,
    *PARAMETERS,
)
