"""What things cost, as `sh scripts/bench --only replicas` and `--only suspended` measured it: docs/sizing.md."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs at the store and at replicas.

    Args:
        idle_commands, idle_bytes: of each replica in each second.
        local_commands, local_bytes: of a round that is retried at its own replica.
        relayed_commands, relayed_bytes: of one that is retried at another.
        recovered_commands, recovered_bytes: of one whose replica is gone: claims, and the looks at heartbeats.
        command_us: processor time of a busy store for a command.
        claim_bytes: what the store keeps of a round that was retried, for `claim_s`.
        ask_ms: processor time of the replica that asks.
        local_ms: of the one that is answered itself.
        relayed_ms: of both together, if the answer comes from another.
        round_kb: memory of a replica for a round that waits.
        connections: the most that a replica has to the store, beside the one that waits for messages.
        noticed_s: how long a replica that was killed is taken for alive.
        look_s: how often who waits for it looks.
    """

    idle_commands: float = 3.2
    idle_bytes: float = 711.0
    local_commands: float = 2.0
    local_bytes: float = 369.0
    relayed_commands: float = 5.8
    relayed_bytes: float = 9_089.0
    recovered_commands: float = 5.0
    recovered_bytes: float = 700.0
    command_us: float = 28.0
    claim_bytes: float = 150.0
    claim_s: float = 660.0
    ask_ms: float = 1.3
    local_ms: float = 1.3
    relayed_ms: float = 3.8
    round_kb: float = 43.0
    connections: int = 64
    noticed_s: int = 5
    look_s: int = 2
