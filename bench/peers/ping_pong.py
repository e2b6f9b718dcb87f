"""The limit for a round trip: one byte to a child and back, through two pipes, without other work.

    ping_pong.py [--roundtrips R]

Prints one JSON object with ``roundtrip_p50_s``.
"""

import argparse
import json
import os
import statistics
from time import perf_counter

WARM_UP_ROUNDTRIPS = 20


def echo(read_fd: int, write_fd: int) -> None:
    while data := os.read(read_fd, 1):
        os.write(write_fd, data)


def time_roundtrip_s(read_fd: int, write_fd: int) -> float:
    started = perf_counter()
    os.write(write_fd, b"x")
    os.read(read_fd, 1)
    return perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--roundtrips", type=int, default=2000)
    options = parser.parse_args()
    (there_read, there_write), (back_read, back_write) = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(there_write)
        echo(there_read, back_write)
        os._exit(0)
    for _ in range(WARM_UP_ROUNDTRIPS):
        time_roundtrip_s(back_read, there_write)
    seconds = [time_roundtrip_s(back_read, there_write) for _ in range(options.roundtrips)]
    print(json.dumps({"roundtrip_p50_s": statistics.median(seconds)}))


if __name__ == "__main__":
    main()
