"""A client on bare pipes that starts a proxy with the streaming agent and times its messages."""

import argparse
import json
import statistics
import subprocess
import sys
import time

from tap_agent import MESSAGE, TURN_ENDED

INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}\n'
NEW = b'{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}\n'
PROMPT = (
    b'{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"5f0c1d9e-7f0b-4f55-9a53-2b8f1f5c7d11",'
    b'"prompt":[{"type":"text","text":"go"}]}}\n'
)
PING = b'{"jsonrpc":"2.0","id":%d,"method":"_ping"}\n'
WARM_UP = 200


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=0)
    parser.add_argument("--pings", type=int, default=0)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    process = subprocess.Popen(options.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdin is not None
    for request in (INITIALIZE, NEW):
        process.stdin.write(request)
        read_until(process, b"}\n")
    if options.messages:
        began = time.perf_counter()
        report = {"messages_per_s": time_stream(process, options.messages)}
    else:
        began = 0.0
        report = {"round_trip_us": time_pings(process, options.pings)}
    process.stdin.close()
    code = process.wait()
    print(json.dumps({**report, "done_per_s": options.messages / (time.perf_counter() - began)}))
    sys.exit(code)


def time_stream(process: "subprocess.Popen[bytes]", count: int) -> float:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(PROMPT)
    first = process.stdout.read(1)
    began = time.perf_counter()
    got = len(first) + read_until(process, TURN_ENDED)
    took = time.perf_counter() - began
    expected = count * len(MESSAGE) + len(TURN_ENDED)
    if got != expected:
        raise RuntimeError(f"{got} of {expected} bytes came")
    return count / took


def time_pings(process: "subprocess.Popen[bytes]", count: int) -> float:
    assert process.stdin is not None
    times: list[float] = []
    for number in range(WARM_UP + count):
        began = time.perf_counter()
        process.stdin.write(PING % (number + 10))
        read_until(process, b"}\n")
        times.append(time.perf_counter() - began)
    return statistics.median(times[WARM_UP:]) * 1e6


def read_until(process: "subprocess.Popen[bytes]", end: bytes) -> int:
    assert process.stdout is not None
    got, tail = 0, b""
    while not tail.endswith(end):
        data = process.stdout.read(256 * 1024)
        if not data:
            raise RuntimeError("the agent ended")
        got += len(data)
        tail = (tail + data)[-len(end) :]
    return got


if __name__ == "__main__":
    main()
