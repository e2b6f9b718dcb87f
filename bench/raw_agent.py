"""An agent process on bare pipes, so that the agent is timed and not a client library."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from bench.commands import STDERR
from bench.measure import MissingError

READ_BYTES = 64 * 1024
STOP_TIMEOUT_S = 10
LINES_BEHIND_ANSWER = 3
"""A notification that may follow a response in the same write: the commands of a session."""

CPU_CLOCK = 2
"""The Linux clock ID of a process's CPU time, with the pid in the higher bits."""

INITIALIZE = {"protocolVersion": 1, "clientCapabilities": {}}


class Answer(msgspec.Struct):
    """The outcome of a request: the number of notifications, and the result."""

    notifications: int
    result: Any


class _Response(msgspec.Struct):
    result: Any = None
    error: Any = None


class RawAgent:
    """A started agent. Use it as a context manager, which ends it."""

    def __init__(
        self, command: Sequence[str], *, environment: Mapping[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        self._process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=STDERR,
            env={**os.environ, **(environment or {})},
            cwd=cwd,
        )
        self._command = command
        self._last_id = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def initialize(self) -> None:
        """Send `initialize` and wait for the whole line of the response."""
        answer = self.call("initialize", INITIALIZE)
        if "protocolVersion" not in answer.result:
            raise RuntimeError(f"{self._command[0]} answered initialize with {answer.result!r}")

    def call(self, method: str, params: Mapping[str, Any]) -> Answer:
        """Send a request and count the notifications. Decode only the response.

        Raises RuntimeError if the response is an error.
        """
        lines = 0
        last = b""
        for block in self.exchange(method, params):
            lines += block.count(b"\n")
            last = _last_line(last, block)
        response = msgspec.json.decode(last, type=_Response)
        if response.error is not None:
            raise RuntimeError(f"{self._command[0]} refused {method}: {response.error}")
        return Answer(lines - 1, response.result)

    def exchange(self, method: str, params: Mapping[str, Any]) -> Iterator[bytes]:
        """Send a request and yield the received bytes, block by block, up to the end of the response."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._last_id += 1
        request = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        os.write(self._process.stdin.fileno(), msgspec.json.encode(request) + b"\n")
        unfinished = b""
        while True:
            block = os.read(self._process.stdout.fileno(), READ_BYTES)
            if not block:
                raise RuntimeError(f"{self._command[0]} ended before it answered {method}")
            behind = _bytes_behind_answer(unfinished + block)
            if behind is not None:
                yield block[: len(block) - behind]
                return
            unfinished = _last_line(unfinished, block)
            yield block

    def read_cpu_s(self) -> float:
        """Return the CPU time used so far. Raises MissingError if the CPU time of other processes cannot be read."""
        if sys.platform != "linux":
            raise MissingError("the processor's time of another process is read on Linux only")
        return time.clock_gettime((~self._process.pid << 3) | CPU_CLOCK)

    def count_descriptors(self) -> int:
        """Return the number of open descriptors of the agent. Raises MissingError."""
        if sys.platform != "linux":
            raise MissingError("the descriptors of another process are counted on Linux only")
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))

    def read_rss_bytes(self) -> int:
        """Return the resident memory of the agent."""
        try:
            rollup = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text()
        except FileNotFoundError:  # other systems than Linux
            return 1024 * int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(self._process.pid)]))
        return next(1024 * int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Rss:"))


def _last_line(before: bytes, block: bytes) -> bytes:
    """Return the last line of the output, complete or not. `before` is the last line of the earlier blocks."""
    begin = block.rfind(b"\n", 0, -1) + 1
    if begin or before.endswith(b"\n"):
        return block[begin:]
    return before + block


def _bytes_behind_answer(output: bytes) -> int | None:
    """Return the number of bytes after a response that is among the last lines, or None."""
    behind = 0
    *_, unfinished = lines = output.rsplit(b"\n", LINES_BEHIND_ANSWER + 1)
    behind = len(unfinished)
    for line in reversed(lines[1:-1] if len(lines) > LINES_BEHIND_ANSWER + 1 else lines[:-1]):
        if line and b'"session/update"' not in line:
            return behind
        behind += len(line) + 1
    return None
