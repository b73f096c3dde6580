"""Ports of 127.0.0.1 that stay ours while their process is away for a while."""

import random
import socket
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 20_000
_TRIES = 1000


def quiet_ports(count: int) -> list[int]:
    """Ports that nobody listens on, below those that the kernel hands to outgoing connections.

    An API server that is away for 20 s would else come back to a port that some client got in the meantime.
    """
    highest = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else 32_768
    found: list[int] = []
    for _ in range(_TRIES):
        if len(found) == count:
            return found
        port = random.randrange(_LOWEST, max(highest, _LOWEST + _TRIES))
        if port not in found and _is_free(port):
            found.append(port)
    raise RuntimeError(f"no {count} free ports between {_LOWEST} and {highest} on 127.0.0.1; end what listens there")


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
