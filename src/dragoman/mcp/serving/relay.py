"""A program between an agent that only starts MCP servers and a server that runs already: stdio to a Unix socket.

    python -I relay.py SOCKET

`DRAGOMAN_RELAY_TOKEN` is the first line that it sends. It imports nothing but a few modules of Python itself and is
started as a file, isolated, so that nothing in the directory of a session can be imported in their place.
"""

import os
import socket
import sys
import threading

TOKEN = "DRAGOMAN_RELAY_TOKEN"  # noqa: S105 -- the name of the variable

_BYTES = 64 * 1024


def main() -> int:
    """Relay until the server is done."""
    if len(sys.argv) != 2 or TOKEN not in os.environ:
        print(f"usage: relay.py SOCKET, with {TOKEN} in the environment", file=sys.stderr)  # noqa: T201 -- a program
        return 2
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        server.connect(sys.argv[1])
        server.sendall(os.environ[TOKEN].encode() + b"\n")
    except OSError as error:
        problem = f"the program that offers these tools is not there any more: {error.strerror}"
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
        pass  # the server is gone, which the other thread sees as well


def _receive(server: socket.socket) -> None:
    while data := server.recv(_BYTES):
        while data:
            data = data[os.write(1, data) :]


if __name__ == "__main__":
    sys.exit(main())
