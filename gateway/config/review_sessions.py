"""What `check` says of sticky sessions."""

from collections.abc import Iterator

from gateway.config.addresses import is_loopback
from gateway.config.model import Settings, Upstream


def session_warnings(settings: Settings) -> Iterator[str]:
    """Name what may surprise about sticky sessions, one line each."""
    is_open = settings.auth.type == "none" and not is_loopback(settings.server.host)
    for name, upstream in settings.upstreams.items():
        if upstream.sessions.reuse != "sticky":
            continue
        if is_open and upstream.auth.type != "passthrough":
            yield (
                f"upstreams.{name}.sessions.reuse: sticky while auth.type is none, so everybody is one user and shares "
                "what a session holds; write auth: {type: api_key, ...}"
            )
        if settings.state.shared_store is not None and _is_tied(upstream):
            yield (
                f"upstreams.{name}.sessions.reuse: sticky, but sessions of this kind of server cannot be shared by "
                "replicas, so each of them has one for each user; run one replica, or a server with Streamable HTTP"
            )


def _is_tied(upstream: Upstream) -> bool:
    """Whether a session ends with the process, or the connection, that it was opened in."""
    return upstream.command is not None or upstream.transport == "sse"
