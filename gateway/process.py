"""The process itself: what the operating system lets it have."""

import contextlib
import resource


def raise_descriptor_limit() -> int | None:
    """Raise the soft limit of open files to the hard one; a suspended round holds two of them.

    Returns:
        The limit that now holds; None if there is none.
    """
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return None if limit == resource.RLIM_INFINITY else limit
