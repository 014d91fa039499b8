"""What replicas cost at their store, as Markdown."""

from tests.bench.replicas import Share, Shares

_HEAD = """\
| for each | commands | of them | bytes to the store | from it | store CPU µs | replicas' CPU ms | a second |
|---|--:|---|--:|--:|--:|--:|--:|"""
_LEAST = 0.05
"""A command that is rarer than one in twenty belongs to something else."""


def replicas(seen: Shares) -> str:
    """A line for each kind of work."""
    lines = [_HEAD, _line(seen.idle), *map(_line, seen.shares)]
    after = (
        f"Of a round that was retried, the store keeps a key of {seen.claim_bytes:,.0f} bytes until its token is too "
        f"old to be used; of one that waits, nothing. The two replicas had {seen.clients} connections to it. Kept busy "
        f"by a hundred connections, it spends {seen.busy_us:,.0f} µs on a round that is retried at another replica."
    )
    return "\n".join([*lines, "", after])


def _line(share: Share) -> str:
    commands = {name: count for name, count in sorted(share.commands.items()) if count >= _LEAST}
    cells = [
        share.name,
        f"{sum(commands.values()):.1f}",
        ", ".join(f"{name.upper()} {count:.1f}" for name, count in commands.items()) or "none",
        f"{max(0.0, share.bytes_in):,.0f}",
        f"{max(0.0, share.bytes_out):,.0f}",
        f"{max(0.0, share.store_us):,.0f}",
        f"{share.gateway_ms:.2f}",
        f"{share.rate:,.0f}",
    ]
    return "| " + " | ".join(cells) + " |"
