"""The limit for streaming: the lines are copied through a pipe and each is decoded once, without other work.

    pipe_limit.py [--chunks N --size BYTES]

A child writes prepared lines as fast as the pipe accepts them. Prints one JSON object with ``chunks_per_s``.
"""

import argparse
import json
import os
from time import perf_counter
from typing import Literal

import msgspec

from dragoman.protocol import v1
from dragoman.protocol.unions import decode_hook

READ_BYTES = 128 * 1024
SESSION_ID = "0" * 32


class Line(msgspec.Struct):
    jsonrpc: Literal["2.0"]
    method: Literal["session/update"]
    params: v1.SessionNotification


def write_lines(fd: int, lines: bytes) -> None:
    rest = memoryview(lines)
    while rest:
        rest = rest[os.write(fd, rest) :]


def read_lines(fd: int) -> int:
    decode = msgspec.json.Decoder(Line, dec_hook=decode_hook).decode
    count = 0
    held = b""
    while data := os.read(fd, READ_BYTES):
        *lines, held = (held + data).split(b"\n")
        for line in lines:
            decode(line)
            count += 1
    return count


def make_line(size: int) -> bytes:
    update = v1.AgentMessageChunk(content=v1.TextContent(text="x" * size))
    params = v1.SessionNotification(session_id=SESSION_ID, update=update)
    return msgspec.json.encode(Line("2.0", "session/update", params)) + b"\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--chunks", type=int, default=50_000)
    parser.add_argument("--size", type=int, default=40)
    options = parser.parse_args()
    lines = make_line(options.size) * options.chunks
    read_fd, write_fd = os.pipe()
    started = perf_counter()
    if os.fork() == 0:
        write_lines(write_fd, lines)
        os._exit(0)
    os.close(write_fd)
    received = read_lines(read_fd)
    print(json.dumps({"chunks_per_s": received / (perf_counter() - started)}))


if __name__ == "__main__":
    main()
