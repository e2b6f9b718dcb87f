"""Ports for programs that cannot report the port that the system chose."""

import random
import socket

# Below the ephemeral ports, because an outgoing connection could take such a port before the program does.
PORTS = range(20_000, 32_000)
_chance = random.SystemRandom()  # the workers of a run share the seed of `random`


def free_port():
    """Return a port on which nothing listens."""
    while True:
        port = _chance.choice(PORTS)
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
