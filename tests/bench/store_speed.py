"""What a round costs a store that is busy: the commands of many relayed rounds at the same time.

A store that is asked now and then spends most of its time on being woken; how many rounds it can bear shows only when
many connections have something for it.
"""

import socket
from typing import Final

from tests.bench.store import Store

_CONNECTIONS: Final = 100
_TURNS: Final = 60
_SWAP: Final = (
    "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL') return 1 end return 0"
)


def busy_round_us(bytes_in: float) -> float:
    """Processor time of the store for the commands of one relayed round, in microseconds.

    Args:
        bytes_in: what the store receives for one; two messages are most of it.
    """
    message = b"x" * int(bytes_in / 2 - 200)
    store = Store()
    try:
        sockets = [socket.create_connection(("127.0.0.1", store.port)) for _ in range(_CONNECTIONS)]
        before = store.work()
        for turn in range(_TURNS):
            _round(sockets, turn, message)
        after = store.work()
        for one in sockets:
            one.close()
    finally:
        store.stop()
    return (after.cpu_s - before.cpu_s) / (_TURNS * _CONNECTIONS) * 1e6


def _round(sockets: list[socket.socket], turn: int, message: bytes) -> None:
    """One relayed round on every connection, in step."""
    names = [f"{number}".encode() for number in range(len(sockets))]
    steps = (
        lambda name: (b"EXISTS", b"ns:alive:" + name),
        lambda name: (b"XADD", b"ns:inbox:" + name, b"*", b"m", message),
        lambda name: (b"XREAD", b"BLOCK", b"1000", b"COUNT", b"64", b"STREAMS", b"ns:inbox:" + name, b"0-0"),
        lambda name: (b"SET", b"ns:claim:%d:" % turn + name, b"a claimed", b"NX", b"PX", b"660000"),
        lambda name: (b"EVAL", _SWAP.encode(), b"1", b"ns:claim:%d:" % turn + name, b"a claimed", b"a posted"),
        lambda name: (b"XADD", b"ns:back:" + name, b"*", b"m", message),
        lambda name: (b"XREAD", b"BLOCK", b"1000", b"COUNT", b"64", b"STREAMS", b"ns:back:" + name, b"0-0"),
        lambda name: (b"DEL", b"ns:inbox:" + name, b"ns:back:" + name),
    )
    for step in steps:
        for text, one in zip([_packed(step(name)) for name in names], sockets, strict=True):
            one.sendall(text)
        for one in sockets:
            if not one.recv(65_536):
                raise SystemExit("bench: the store closed a connection")


def _packed(command: tuple[bytes, ...]) -> bytes:
    """A command as it goes over the wire."""
    parts = [b"*%d\r\n" % len(command)]
    for word in command:
        parts += (b"$%d\r\n" % len(word), word, b"\r\n")
    return b"".join(parts)
