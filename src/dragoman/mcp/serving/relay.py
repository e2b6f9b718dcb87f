"""A relay from stdio to a Unix socket, for agents that can only start MCP servers.

    python -I relay.py SOCKET

The first line that it sends is `DRAGOMAN_RELAY_TOKEN`. It imports only modules of Python itself. It is started as a
file in isolated mode, so that files in the session's directory cannot replace these modules.
"""

import os
import socket
import sys
import threading

TOKEN = "DRAGOMAN_RELAY_TOKEN"  # noqa: S105 -- the name of the variable

_BYTES = 64 * 1024


def main() -> int:
    """Copy bytes until the server closes the connection."""
    if len(sys.argv) != 2 or TOKEN not in os.environ:
        print(f"usage: relay.py SOCKET, with {TOKEN} in the environment", file=sys.stderr)  # noqa: T201 -- a program
        return 2
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        server.connect(sys.argv[1])
        server.sendall(os.environ[TOKEN].encode() + b"\n")
    except OSError as error:
        problem = f"the program that offers these tools has exited: {error.strerror}"
        print(problem, file=sys.stderr)  # noqa: T201 -- a program
        return 1
    threading.Thread(target=_send, args=[server], daemon=True).start()
    try:
        _receive(server)
    except OSError:
        return 1
    return 0


def _send(server: socket.socket) -> None:
    try:
        while data := os.read(0, _BYTES):
            server.sendall(data)
        server.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # the server is gone, and the other thread notices this as well


def _receive(server: socket.socket) -> None:
    while data := server.recv(_BYTES):
        while data:
            data = data[os.write(1, data) :]


if __name__ == "__main__":
    sys.exit(main())
