"""An agent process on bare pipes: what is timed is the agent, not a client library."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

READ_BYTES = 64 * 1024
STOP_TIMEOUT_S = 10

INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}\n'


class RawAgent:
    """A started agent; use it as a context manager, which ends it."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._command = command

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
        """Send `initialize` and wait for the whole line of the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        os.write(self._process.stdin.fileno(), INITIALIZE)
        answer = b""
        while not answer.endswith(b"\n"):
            data = os.read(self._process.stdout.fileno(), READ_BYTES)
            if not data:
                raise RuntimeError(f"{self._command[0]} ended before it answered initialize")
            answer += data
        if b'"protocolVersion":' not in answer:
            raise RuntimeError(f"{self._command[0]} refused initialize: {answer[:500]!r}")

    def read_rss_bytes(self) -> int:
        """Return the memory that it has resident."""
        try:
            rollup = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text()
        except FileNotFoundError:  # not on Linux
            return 1024 * int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(self._process.pid)]))
        return next(1024 * int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Rss:"))
