"""An agent played by the test. It connects stdin and stdout to the test's port.

A line `!CODE WORDS` from the test makes it exit with that code and write these words to stderr.
"""

import os
import socket
import sys
import threading


def main():
    agent = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    threading.Thread(target=speak, args=(agent,), daemon=True).start()
    for line in sys.stdin.buffer:
        agent.sendall(line)


def speak(agent):
    for line in agent.makefile("rb"):
        if line.startswith(b"!"):
            code, _, words = line[1:].decode().strip().partition(" ")
            print(words, file=sys.stderr, flush=True)
            os._exit(int(code))
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
