"""Runs a client process, which starts an agent, times it and prints the result as JSON."""

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from bench.commands import Command

RUN_TIMEOUT_S = 300


def run_client(client: Command, options: Sequence[str], agent: Command) -> dict[str, Any]:
    """Run a client with an agent and return its report. Raises RuntimeError if either fails."""
    return run_reporter((*client, *options, "--", *agent))


def run_reporter(command: Sequence[str]) -> dict[str, Any]:
    """Run a process that prints one JSON object and return the object. Raises RuntimeError if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout)
