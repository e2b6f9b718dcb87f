"""The limit for a replay: after `initialize`, it answers every request by copying a file to the pipe.

file_copy.py FILE
"""

import os
import sys
from pathlib import Path

READ_BYTES = 1 << 20

INITIALIZED = b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}\n'

os.read(0, READ_BYTES)
os.write(1, INITIALIZED)
os.read(0, READ_BYTES)
with Path(sys.argv[1]).open("rb") as file:
    while block := file.read(READ_BYTES):
        rest = memoryview(block)
        while rest:
            rest = rest[os.write(1, rest) :]
