"""Without a network: the process moves into a namespace that has a loopback interface and nothing else. Linux only."""

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def go_offline() -> bool:
    """Leave the network, with all children to come; False where the system does not allow it."""
    if not sys.platform.startswith("linux"):
        return False
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None)
    if libc.unshare(_CLONE_NEWNET) != 0:
        if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            return False
        with contextlib.suppress(OSError):
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket() as any_socket:
        name = struct.pack("16sh", b"lo", 0)
        [flags] = struct.unpack("16xh", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, name))
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | _IFF_UP))
    return True
