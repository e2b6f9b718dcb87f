"""The bridge under load: the cost per session of a thousand sessions, and the delay of the slowest messages.

The load test provides the clients. It also checks that nothing is lost, mixed up or repeated. A delay lasts from
the creation of a chunk in the agent to its decoding in the viewer. Agent, bridge and clients share this machine.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from typing import Any

from bench import commands
from bench.client_run import run_reporter
from bench.measure import Measure
from bench.size import size

OURS = "dragoman serve"
SESSIONS = size(1_000, 5)
CROWD = (sys.executable, "-m", "tests.bridge.load.crowd")
OPTIONS = (
    "--sessions",
    str(SESSIONS),
    "--chunks",
    "10",
    "--every-s",
    str(size(20, 1) / 10),
    "--returners",
    str(size(20, 1)),
)
AGENT = (sys.executable, str(commands.ROOT / "tests" / "bridge" / "load" / "agents" / "tagging_agent.py"))
STOP_TIMEOUT_S = 10.0


class Crowd:
    """Runs the clients once per round, for all figures together."""

    def __init__(self) -> None:
        self._reports: list[dict[str, Any]] = []
        self._given: Counter[str] = Counter()

    def figure(self, name: str) -> float:
        """Return a figure of the first round that has not yet returned this figure."""
        if self._given[name] == len(self._reports):
            self._reports.append(_run())
        self._given[name] += 1
        return self._reports[self._given[name] - 1][name]


def _run() -> dict[str, Any]:
    command = (*commands.dragoman("serve", "--format", "json", "--port", "0"), "--", *AGENT)
    with (
        tempfile.TemporaryDirectory() as home,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=commands.STDERR, env=os.environ | {"DRAGOMAN_HOME": home}
        ) as process,
    ):
        try:
            assert process.stdout is not None
            said = json.loads(process.stdout.readline())
            url = said["acp"].replace("http://", "ws://")
            return run_reporter((*CROWD, url, f"--token={said['token']}", "--pid", str(process.pid), *OPTIONS))
        finally:
            process.terminate()
            process.wait(STOP_TIMEOUT_S)


_crowd = Crowd()


def _measure(title: str, unit: str, name: str) -> Measure:
    return Measure(
        part="load",
        title=title,
        unit=unit,
        contenders={OURS: lambda: _crowd.figure(name)},
        targets=(),
        rounds=3,
        quick_rounds=1,
    )


MEASURES = (
    _measure(f"memory of a session, {SESSIONS:,} open", "KiB", "open_session_kib"),
    _measure(f"memory of a session, {SESSIONS:,} after a turn each", "KiB", "used_session_kib"),
    _measure(f"delay in {SESSIONS:,} sessions, p50", "ms", "delay_p50_ms"),
    _measure(f"delay in {SESSIONS:,} sessions, p99", "ms", "delay_p99_ms"),
)
