"""The bridge: one agent with a WebSocket, compared with direct stdio and with npm's `stdio-to-ws`.

Our bridge keeps a journal on disk, maps IDs and requires a token. `stdio-to-ws` copies lines to one socket. Both have
the same client, which only counts frames. Agent, bridge and client share two cores.
"""

import json
import os
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from bench import commands
from bench.client_run import run_client, run_reporter
from bench.measure import Measure, MissingError, Target
from bench.pairs import DRAGOMAN_CLIENT
from bench.roundtrip import read_p50_us
from bench.size import size
from bench.stream import CHUNKS, OPTIONS, read_rate
from tests.ports import free_port

OURS = "dragoman serve"
PEER = "stdio-to-ws (npm)"
DIRECT = "direct stdio"
CLIENT = commands.python("ws_client.py")
AGENT = commands.python("dragoman_agent.py")
ROUNDTRIPS = ("--roundtrips", str(size(2000, 20)))
VIEWERS = size(100, 3)
FAN_OUT_CHUNKS = size(1_000, 50)
START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 10.0


@contextmanager
def bridge(agent: Sequence[str] = AGENT) -> Generator[tuple[str, ...]]:
    """Start our bridge and yield the client's arguments."""
    with tempfile.TemporaryDirectory() as home:
        command = (*commands.dragoman("serve", "--format", "json", "--port", "0"), "--", *agent)
        with _running(command, {"DRAGOMAN_HOME": home}) as process:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            yield said["acp"].replace("http://", "ws://"), f"--token={said['token']}"  # the token may begin with a dash


@contextmanager
def stdio_to_ws() -> Generator[tuple[str, ...]]:
    """Start npm's bridge and yield the client's arguments. Raises MissingError."""
    node = shutil.which("node")
    main = commands.NODE_MODULES / "stdio-to-ws" / "dist" / "main.js"
    if node is None or not main.exists():
        raise MissingError("stdio-to-ws is not installed: make .venv/.peers, which needs Node")
    port = free_port()
    with _running((node, str(main), "--quiet", "--port", str(port), shlex.join(AGENT)), {}):
        _wait_for(port)
        yield (f"ws://127.0.0.1:{port}/",)


@contextmanager
def _running(command: Sequence[str], environment: dict[str, str]) -> Generator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=commands.STDERR, env=os.environ | environment
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(STOP_TIMEOUT_S)


def _wait_for(port: int) -> None:
    until = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"nothing listens on port {port}")


def ours(*options: str) -> dict[str, Any]:
    """Run the client with our bridge."""
    with bridge() as where:
        return run_reporter((*CLIENT, *where, *options))


def theirs(*options: str) -> dict[str, Any]:
    """Run the client with npm's bridge."""
    with stdio_to_ws() as where:
        return run_reporter((*CLIENT, *where, *options))


def fan_out() -> float:
    """Return thousands of messages per second, over all viewers."""
    report = ours("--viewers", str(VIEWERS), "--chunks", str(FAN_OUT_CHUNKS))
    expected = (VIEWERS + 1) * FAN_OUT_CHUNKS
    if report["chunks_received"] != expected:
        raise RuntimeError(f"{report['chunks_received']} of {expected} came")
    return report["chunks_per_s"] / 1000


MEASURES = (
    Measure(
        part="bridge",
        title=f"{CHUNKS:,} chunks through a bridge",
        unit="k msg/s",
        contenders={
            OURS: lambda: read_rate(ours(*OPTIONS)),
            PEER: lambda: read_rate(theirs(*OPTIONS)),
            DIRECT: lambda: read_rate(run_client(DRAGOMAN_CLIENT, OPTIONS, AGENT)),
        },
        targets=(Target(OURS, PEER, "at least", 1.0),),
        ratios=((OURS, DIRECT),),
        rounds=7,
        quick_rounds=3,
    ),
    Measure(
        part="bridge",
        title=f"one session to {VIEWERS} viewers, {FAN_OUT_CHUNKS:,} chunks",
        unit="k msg/s",
        contenders={OURS: fan_out},
        targets=(),
        rounds=5,
        quick_rounds=2,
    ),
    Measure(
        part="bridge",
        title="round trip through a bridge, p50",
        unit="µs",
        contenders={
            OURS: lambda: read_p50_us(ours(*ROUNDTRIPS)),
            PEER: lambda: read_p50_us(theirs(*ROUNDTRIPS)),
            DIRECT: lambda: read_p50_us(run_client(DRAGOMAN_CLIENT, ROUNDTRIPS, AGENT)),
        },
        targets=(),
        ratios=((OURS, PEER), (OURS, DIRECT)),
        rounds=5,
        quick_rounds=3,
    ),
)
