"""An agent that is played by the test: what comes on stdin goes to the test's port, what the test says goes to stdout.

A line `!CODE WORDS` from the test ends it with that code and these last words.
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
