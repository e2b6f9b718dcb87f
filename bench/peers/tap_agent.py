"""An agent that streams messages of 227 bytes, as fast as it can or at a steady rate, and answers pings."""

import os
import sys
import time

SESSION = "5f0c1d9e-7f0b-4f55-9a53-2b8f1f5c7d11"
MESSAGE_BYTES = 227
BATCH = 20

HEAD = (
    f'{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{SESSION}","update":'
    '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'
)
TAIL = '"}}}}\n'
TEXT = "The quick brown fox jumps over the lazy dog, and so do its many friends. " * 4
MESSAGE = (HEAD + TEXT[: MESSAGE_BYTES - len(HEAD) - len(TAIL)] + TAIL).encode()

INITIALIZED = b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}\n'
SESSION_MADE = b'{"jsonrpc":"2.0","id":1,"result":{"sessionId":"%s"}}\n' % SESSION.encode()
TURN_ENDED = b'{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}\n'


def write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def stream(count: int, rate: int) -> None:
    batch = MESSAGE * BATCH
    began = time.perf_counter()
    for number in range(0, count, BATCH):
        write(batch)
        if rate:
            wait = began + (number + BATCH) / rate - time.perf_counter()
            if wait > 0:
                time.sleep(wait)


def main() -> None:
    count, rate = int(sys.argv[1]), int(sys.argv[2])
    for line in sys.stdin.buffer:
        if b'"initialize"' in line:
            write(INITIALIZED)
        elif b'"session/new"' in line:
            write(SESSION_MADE)
        elif b'"session/prompt"' in line:
            stream(count, rate)
            write(TURN_ENDED)
        elif b'"_ping"' in line:
            write(line.replace(b'"method":"_ping"', b'"result":{}'))


if __name__ == "__main__":
    main()
