"""A scripted MCP server over stdio: `python -I -S scripted.py '{"name": "weather", "hang_at": "list"}'`.

The options are in `options.py`. It only imports a little of the standard library, because tests start many servers.
"""

import json
import os
import sys
import threading

sys.path.insert(0, os.path.abspath(__file__).rsplit(os.sep, 4)[0])

from tests.mcp.servers import faults
from tests.mcp.servers.conversation import Conversation
from tests.mcp.servers.options import Options

STDOUT = 1


class Stdout:
    """Our end of the pipe to the client. Messages are written whole, unless the options say otherwise."""

    def __init__(self, options):
        self._options = options
        self._lock = threading.Lock()

    def send(self, message, about):
        """Write one message, preceded by the configured garbage."""
        line = json.dumps(message).encode() + b"\n"
        with self._lock:
            for kind in self._options.garbage:
                _write(faults.GARBAGE[kind])
            size = self._options.piece_bytes or len(line)
            for start in range(0, len(line), size):
                _write(line[start : start + size])

    def send_half(self, message, about):
        """Write the first half of a message."""
        line = json.dumps(message).encode()
        with self._lock:
            _write(line[: len(line) // 2])


def _write(data):
    left = memoryview(data)
    try:
        while left:
            left = left[os.write(STDOUT, left) :]
    except BrokenPipeError:
        pass  # the client disconnected, and stdin ends as well


def main():
    """Serve until stdin ends."""
    options = Options(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})
    faults.set_up(options)
    conversation = Conversation(options, Stdout(options))
    for line in sys.stdin.buffer:
        conversation.receive(json.loads(line))
    if options.ignore_eof:
        faults.hang()
    os._exit(0)  # the threads of running calls end with it


if __name__ == "__main__":
    main()
