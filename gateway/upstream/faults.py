"""What went wrong on the way to an upstream: aiohttp's exceptions, mapped in one place.

Rule: a request may be sent again only when the server certainly did not execute it (`retryable`). Once its bytes
may have reached the server, a broken connection leaves the outcome unknown. No message names a URL or an address.
"""

import ssl
from collections.abc import Mapping
from typing import Final

import aiohttp

from gateway.errors import UpstreamError

FAILURES: Final = (aiohttp.ClientError, OSError)
"""What aiohttp raises when it sends or reads."""

_RETRY_AFTER_S = 1
_MAX_DIGITS = 8
_REFUSED_WRITE = "Cannot write to closing transport"


def unreachable(upstream: str, why: str) -> UpstreamError:
    """The upstream never got the request."""
    return UpstreamError(upstream, "unreachable", f"Upstream {upstream!r} cannot be reached: {why}", retryable=True)


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


def to_upstream_error(upstream: str, error: Exception) -> UpstreamError:
    """Say what one of `FAILURES` means for the request that met it."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return unreachable(upstream, "its host name does not resolve")
    if isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError)):
        return unreachable(upstream, "no TLS connection that can be trusted")
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return unreachable(upstream, "connecting took too long")
    if isinstance(error, aiohttp.ClientConnectorError):
        refused = isinstance(error.os_error, ConnectionRefusedError)
        return unreachable(upstream, "connection refused" if refused else "no connection")
    if _is_refused_write(error):
        return unreachable(upstream, "the connection was closed before the request was sent")
    if isinstance(error, aiohttp.ClientResponseError):
        return nonsense(upstream, "sent an answer that cannot be read as HTTP")
    if isinstance(error, (aiohttp.ClientPayloadError, aiohttp.ClientConnectionError, OSError)):
        return outcome_unknown(upstream)
    return nonsense(upstream, "cannot be talked to over HTTP")


def _is_refused_write(error: Exception) -> bool:
    """Whether aiohttp refused to write the request, because the pooled connection was closing already.

    The request is then incomplete at best, since head and body are written in one piece (of a large body, the end is
    missing). aiohttp's writer task reports the refusal as the cause of a plain ClientOSError.
    """
    cause = error if isinstance(error, aiohttp.ClientConnectionResetError) else error.__cause__
    return isinstance(cause, aiohttp.ClientConnectionResetError) and _REFUSED_WRITE in cause.args
