"""What went wrong on the way to an upstream, and what it means for the request.

Rule: a request may be sent again only when the server certainly did not execute it (`retryable`). Once its bytes
may have reached the server, a broken connection leaves the outcome unknown. No message names a URL or an address.
"""

import socket
import ssl
from collections.abc import Mapping

from gateway.errors import UpstreamError

_RETRY_AFTER_S = 1
_MAX_DIGITS = 8


def unreachable(upstream: str, why: str) -> UpstreamError:
    """The upstream never got the request."""
    return UpstreamError(upstream, "unreachable", f"Upstream {upstream!r} cannot be reached: {why}", retryable=True)


def unresolved(upstream: str) -> UpstreamError:
    """Nobody knows an address of the upstream."""
    return unreachable(upstream, "its host name does not resolve")


def nonsense(upstream: str, what: str) -> UpstreamError:
    """The upstream answered with something that is no answer."""
    return UpstreamError(upstream, "nonsense", f"Upstream {upstream!r} {what}")


def too_large(upstream: str, limit: int) -> UpstreamError:
    """One message of the upstream is over the limit, after decompression."""
    return UpstreamError(upstream, "too_large", f"Upstream {upstream!r} sent a message over the limit of {limit} bytes")


def outcome_unknown(upstream: str) -> UpstreamError:
    """The connection broke after the request was written; it may have been executed."""
    return UpstreamError(
        upstream,
        "outcome_unknown",
        f"The connection to upstream {upstream!r} broke after the request was sent: its outcome is unknown",
    )


def broken_stream(upstream: str) -> UpstreamError:
    """The upstream ended its stream before the response; the request may have been executed."""
    return UpstreamError(
        upstream, "outcome_unknown", f"Upstream {upstream!r} ended its reply without a response: the outcome is unknown"
    )


def no_answer(upstream: str, status: int, headers: Mapping[str, str]) -> UpstreamError:
    """The upstream answered with something that holds no JSON-RPC response."""
    if status in (429, 503):
        message = f"Upstream {upstream!r} is overloaded (HTTP {status})"
        return UpstreamError(
            upstream, "full", message, retryable=True, retry_after_s=retry_after_s(headers) or _RETRY_AFTER_S
        )
    if status in (408, 504):
        return UpstreamError(upstream, "timeout", f"Upstream {upstream!r} timed out (HTTP {status})")
    return nonsense(upstream, f"answered with HTTP {status} and no JSON-RPC response")


def retry_after_s(headers: Mapping[str, str]) -> int | None:
    """The seconds that a server wants to be left alone for; None if it does not say, or gives a date."""
    value = headers.get("Retry-After", "").strip()
    return int(value) if value.isdecimal() and len(value) < _MAX_DIGITS else None


def unreadable(upstream: str) -> UpstreamError:
    """The upstream does not speak HTTP, or breaks its rules."""
    return nonsense(upstream, "sent an answer that cannot be read as HTTP")


def not_connected(upstream: str, error: OSError) -> UpstreamError:
    """Say why no connection could be opened."""
    if isinstance(error, socket.gaierror):
        return unresolved(upstream)
    if isinstance(error, ssl.SSLError):
        return unreachable(upstream, "no TLS connection that can be trusted")
    if isinstance(error, TimeoutError):
        return unreachable(upstream, "connecting took too long")
    refused = isinstance(error, ConnectionRefusedError)
    return unreachable(upstream, "connection refused" if refused else "no connection")
